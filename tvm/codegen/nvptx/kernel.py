"""One kernel: threads, the memory that they share and what they do together, as LLVM blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import tvm.tir.stmt as stmts
from tvm.codegen.llvm.statements import FunctionWriter
from tvm.codegen.llvm.types import TYPES
from tvm.error import LoweringError
from tvm.tir.expr import Call, IntImm, IterVar

from .intrinsics import HOST_ONLY, INTRINSICS

if TYPE_CHECKING:
    from tvm.codegen.llvm.statements import Frame

    from .module import KernelModuleWriter

# bytes: what the widest accesses need
ALIGNMENT = 16


class KernelWriter(FunctionWriter):
    """Writes the body of one kernel."""

    module: KernelModuleWriter

    def __init__(self, module: KernelModuleWriter, name: str, frame: Frame, noalias: bool) -> None:
        super().__init__(module, name, frame, noalias)
        self._block: dict[str, int | None] = {}  # the extents of thread axes

    # ---- threads

    def visit_attr_stmt(self, stmt: stmts.AttrStmt) -> None:
        axis = stmt.node
        if stmt.attr_key == "virtual_thread":
            raise LoweringError("virtual threads must be lowered before code generation", at=stmt)
        if stmt.attr_key != "thread_extent" or not isinstance(axis, IterVar):
            super().visit_attr_stmt(stmt)
            return
        self._block[axis.thread_tag] = stmt.value.value if isinstance(stmt.value, IntImm) else None
        self._bind_thread(axis)
        self.visit(stmt.body)

    def _bind_thread(self, axis: IterVar) -> None:
        """The index of the thread or block along an axis such as ``threadIdx.x``."""
        kind, _, direction = axis.thread_tag.partition(".")
        register = f"{_REGISTERS[kind]}.{direction}"
        index = self.code.pure(f"call i32 @llvm.nvvm.read.ptx.sreg.{register}()")
        wide = self.code.pure(f"zext i32 {index} to i64")
        self.values[axis.var] = wide if TYPES[axis.var.dtype].text == "i64" else index
        self.wide_values[axis.var] = wide

    def threads_of_block(self) -> int | None:
        """How many there are, if it is known."""
        extents = [self._block.get(f"threadIdx.{axis}", 1) for axis in "xyz"]
        threads = 1
        for extent in extents:
            if extent is None:
                return None
            threads *= extent
        return threads

    # ---- memory

    def visit_allocate(self, stmt: stmts.Allocate) -> None:
        var = stmt.buffer_var
        scope = str(getattr(var.type_annotation, "storage_scope", "")) or "global"
        size = stmt.constant_size()
        if size is None and scope != "shared.dyn":
            raise LoweringError(
                f"memory of scope {scope} in a kernel needs a constant size", at=var
            )
        item, count = TYPES[stmt.dtype].memory, max(size or 1, 1)
        if scope in ("shared", "shared.dyn"):
            is_static = scope == "shared"
            self.values[var] = self.module.add_shared(
                item if is_static else "i8", count if is_static else None, var.name
            )
        elif scope in ("local", "global"):
            self.values[var] = self.code.stack(f"[{count} x {item}]", 1, ALIGNMENT)
        else:
            raise LoweringError(
                f"nvptx has no memory of scope {scope}", at=var,
                hint="local, shared and shared.dyn are there",
            )  # fmt: skip
        self.alignment[var] = ALIGNMENT
        self.aliases.add(var)
        self.visit(stmt.body)

    # ---- control

    def visit_seq_stmt(self, stmt: stmts.SeqStmt) -> None:
        for part in stmt.seq:
            self.visit(part)

    def visit_for(self, loop: stmts.For) -> None:
        if loop.kind is stmts.ForKind.THREAD_BINDING:
            raise LoweringError(
                "loops over threads must be lowered before code generation", at=loop
            )
        self._serial(loop)

    def visit_assert_stmt(self, stmt: stmts.AssertStmt) -> None:
        """A kernel has nobody to report to: the host checks what it was given."""
        self.visit(stmt.body)

    # ---- calls

    def visit_call(self, call: Call) -> Any:
        name = getattr(call.op, "name", "")
        if name in HOST_ONLY:
            raise LoweringError(f"nvptx has no code for the intrinsic {name}", at=call)
        write = INTRINSICS.get(name)
        return super().visit_call(call) if write is None else write(self, call)


_REGISTERS = {"threadIdx": "tid", "blockIdx": "ctaid"}
