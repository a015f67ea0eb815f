"""Statements of one PrimFunc as LLVM blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import tvm.tir.stmt as stmts
from tvm.contrib.clang import create_llvm
from tvm.error import LoweringError
from tvm.ir.expr import GlobalVar, PrimExpr
from tvm.ir.op import Op
from tvm.support.dtype import DType
from tvm.support.dtype import dtype as as_dtype
from tvm.tir.expr import Call, IntImm, Let, StringImm, Var

from .alias import AliasScopes
from .code import Code
from .failure import write_report
from .intrinsics import INTRINSICS
from .memory import MemoryWriter
from .outline_loops import loop_groups, parts_of, write_group
from .packed import RUNTIME_FUNCTIONS, through_slot, without_result
from .parallel import ParallelRegion, partitioned, write_launch
from .polls import write_poll
from .pstate import pstate_attributes
from .static_init import SCOPE, write_static_init
from .tensor_check import reports_itself
from .types import TYPES, quoted
from .unrolling import unroll_hint
from .unsupported import unsupported_error

if TYPE_CHECKING:
    from .module import ModuleWriter

# memory of our own starts at multiples of this many bytes
ALIGNMENT = 64


@dataclass
class Frame:
    """What changes when a part of the function moves to a function of its own."""

    code: Code
    values: dict[Var, str]
    result: str  # LLVM's type of the result
    parallel: ParallelRegion | None = None
    wide_values: dict[Var, str] = field(default_factory=dict)  # loop variables as i64
    workspaces: list[stmts.LetStmt] = field(default_factory=list)  # memory to be freed


class FunctionWriter(MemoryWriter):
    """Writes the body of one PrimFunc, and the functions its parallel loops become."""

    def __init__(self, module: ModuleWriter, name: str, frame: Frame, noalias: bool) -> None:
        self.module = module
        self.name = name
        self.fast = f" {module.options.fast_math}" if module.options.fast_math else ""
        self.no_wrap = " nsw"
        self.noalias = noalias
        self.alignment = {}
        self.volatile = set()
        self.aliases = AliasScopes(module.new_metadata, name)
        self.polls: dict[stmts.For, int] = {}  # loops that look for signals each so many iterations
        self._use(frame)

    def _use(self, frame: Frame) -> None:
        self.frame = frame
        self.code = frame.code
        self.values = frame.values
        self.wide_values = frame.wide_values

    @contextmanager
    def moved_to(self, frame: Frame) -> Iterator[None]:
        """Write into another function inside the block."""
        outer = self.frame
        self._use(frame)
        try:
            yield
        finally:
            self._use(outer)

    # ---- bindings

    def visit_let_stmt(self, stmt: stmts.LetStmt) -> None:
        self._bind(stmt.var, stmt.value)
        if type(stmt.value) is not Call or getattr(stmt.value.op, "name", "") != _WORKSPACE:
            self.visit(stmt.body)
            return
        self.frame.workspaces.append(stmt)
        self.visit(stmt.body)
        self.frame.workspaces.pop()

    def visit_let(self, node: Let) -> str:
        self._bind(node.var, node.value)
        return str(self.visit(node.body))

    def _bind(self, var: Var, value: PrimExpr) -> None:
        self.values[var] = self.visit(value)
        if var.dtype.is_handle and type(value) is Call:
            source = getattr(value.op, "name", "")
            if source in _FRESH_MEMORY or (self.noalias and source == "tir.tvm_struct_get"):
                self.aliases.add(var)
            if source in _FRESH_MEMORY:
                self.alignment[var] = ALIGNMENT

    def visit_attr_stmt(self, stmt: stmts.AttrStmt) -> None:
        key = stmt.attr_key
        if key == "storage_alignment" and isinstance(stmt.node, Var):
            assert isinstance(stmt.value, IntImm)
            self.alignment[stmt.node] = stmt.value.value
        elif key == "volatile_scope" and isinstance(stmt.node, Var):
            self.volatile.add(stmt.node)
        elif key == "pragma_parallel_launch_point":
            write_launch(self, stmt.body)
            return
        elif key == SCOPE:
            write_static_init(self, stmt)
            return
        elif key == "pragma_parallel_stride_pattern" and self.frame.parallel is not None:
            self.frame.parallel.strided = True
        elif key == "pragma_parallel_barrier_when_finish":
            self._with_barrier(stmt)
            return
        elif key == "pragma_import_llvm" and isinstance(stmt.value, StringImm):
            self.module.imports.append(stmt.value.value)
        elif key == "pragma_import_c" and isinstance(stmt.value, StringImm):
            self.module.imports.append(create_llvm(stmt.value.value, options=["-x", "c"]))
        elif key.startswith("pragma_aarch64_pstate_") and isinstance(stmt.value, StringImm):
            self.code.signature += "".join([f' "{a}"' for a in pstate_attributes(stmt.value)])
        elif key in ("thread_extent", "virtual_thread"):
            raise LoweringError(
                f"target llvm has no {key}, got an axis bound to {getattr(stmt.node, 'thread_tag', stmt.node)}",
                hint="use parallel and vectorize on a CPU; bind is for GPU targets",
            )
        self.visit(stmt.body)

    def _with_barrier(self, stmt: stmts.AttrStmt) -> None:
        region = self.frame.parallel
        if region is None:
            raise LoweringError("parallel_barrier_when_finish needs parallel_launch_point", at=stmt)
        self.visit(stmt.body)
        slot = self.module.context_slot("TVMBackendParallelBarrier")
        barrier = self.code.value(f"load ptr, ptr {slot}, align 8")
        failed = self.code.value(f"call i32 {barrier}(i32 {region.task}, ptr {region.environment})")
        self.return_if_failed(failed)

    # ---- memory

    def visit_allocate(self, stmt: stmts.Allocate) -> None:
        size = stmt.constant_size()
        if size is None:
            raise LoweringError(
                "an allocation of variable size must be lowered to a workspace", at=stmt.buffer_var
            )
        type_ = TYPES[stmt.dtype]
        align = max(ALIGNMENT, type_.item_bytes)
        self.values[stmt.buffer_var] = self.code.stack(
            f"[{max(size, 1)} x {type_.memory}]", 1, align
        )
        self.alignment[stmt.buffer_var] = align
        self.aliases.add(stmt.buffer_var)
        self.visit(stmt.body)

    def visit_allocate_const(self, stmt: stmts.AllocateConst) -> None:
        self.values[stmt.buffer_var] = self.module.constant_array(stmt.data)
        self.alignment[stmt.buffer_var] = ALIGNMENT
        self.aliases.add(stmt.buffer_var)
        self.visit(stmt.body)

    def visit_decl_buffer(self, stmt: stmts.DeclBuffer) -> None:
        self.visit(stmt.body)

    # ---- control

    def visit_seq_stmt(self, stmt: stmts.SeqStmt) -> None:
        parts = parts_of(stmt)
        groups = loop_groups(parts) if self.frame.parallel is None else []
        for group in groups:
            write_group(self, group)
        if not groups:
            for part in parts:
                self.visit(part)

    def visit_evaluate(self, stmt: stmts.Evaluate) -> None:
        value = stmt.value
        if type(value) is not IntImm:
            self.visit(without_result(value) if type(value) is Call else value)

    def visit_if_then_else(self, stmt: stmts.IfThenElse) -> None:
        code = self.code
        condition = self.visit(stmt.condition)
        then, done = code.new_label("then"), code.new_label("end")
        other = done if stmt.else_case is None else code.new_label("else")
        code.branch(condition, then, other)
        code.start(then)
        with code.branch_scope():
            self.visit(stmt.then_case)
        code.jump(done)
        if stmt.else_case is not None:
            code.start(other)
            with code.branch_scope():
                self.visit(stmt.else_case)
            code.jump(done)
        code.start(done)

    def visit_while(self, stmt: stmts.While) -> None:
        code = self.code
        test, body, done = code.new_label("test"), code.new_label("while"), code.new_label("end")
        code.jump(test)
        code.start(test)
        code.branch(self.visit(stmt.condition), body, done)
        code.start(body)
        with code.branch_scope():
            self.visit(stmt.body)
        code.jump(test)
        code.start(done)

    def visit_for(self, loop: stmts.For) -> None:
        if loop.kind is stmts.ForKind.PARALLEL:
            region = self.frame.parallel
            if region is None:
                write_launch(self, loop)
            elif region.used:
                self._serial(loop)  # the threads are busy: one thread does the inner loop
            else:
                region.used = True
                partitioned(self, loop, region)
            return
        if loop.kind is stmts.ForKind.THREAD_BINDING:
            raise LoweringError("target llvm cannot bind a loop to GPU threads", at=loop)
        self._serial(loop)

    def _serial(self, loop: stmts.For) -> None:
        begin, extent = loop.min, loop.extent
        first = self.wide(begin)
        if type(extent) is IntImm and type(begin) is IntImm:
            if extent.value >= 1:
                self.counted(loop, first, str(begin.value + extent.value), "1", runs=True)
            return
        end = self.wide(extent)
        if first != "0":
            end = self.code.pure(f"add nsw i64 {first}, {end}")
        self.counted(loop, first, end, "1", runs=False)

    def counted(self, loop: stmts.For, begin: str, end: str, step: str, runs: bool) -> None:
        """A loop from ``begin`` to ``end``, counted in i64, the type of addresses.

        ``runs`` says that it certainly executes once or more.
        """
        polled = self.polls.get(loop) if self.frame.result == "i32" else None

        def iteration(index: str) -> None:
            if polled == 1:
                write_poll(self)
            dtype = loop.loop_var.dtype
            self.values[loop.loop_var] = self._narrowed(index, dtype)
            if dtype.is_int:
                self.wide_values[loop.loop_var] = index
            self.visit(loop.body)

        def chunk(index: str) -> None:
            write_poll(self)
            following = self.code.pure(f"add nsw i64 {index}, {polled}")
            last = self.code.pure(f"call i64 @llvm.smin(i64 {following}, i64 {end})")
            self._repeated(iteration, index, last, step, True, self._loop_metadata(loop))

        if polled is None or polled == 1:
            self._repeated(iteration, begin, end, step, runs, self._loop_metadata(loop))
        else:
            self._repeated(chunk, begin, end, str(polled), runs, "")

    def _repeated(
        self, write: Callable[[str], None], begin: str, end: str, step: str, runs: bool, marks: str
    ) -> None:
        """What ``write`` writes for an index, for each one from ``begin`` to ``end``."""
        code = self.code
        body, done = code.new_label("for"), code.new_label("end")
        before, number = code.label, body[3:]
        if runs:
            code.jump(body)
        else:
            code.branch(code.pure(f"icmp slt i64 {begin}, {end}"), body, done)
        code.start(body)
        index, following = f"%i{number}", f"%n{number}"
        place = len(code.lines)
        code.lines.append("")  # the phi, once the last block of the body is known
        with code.branch_scope():
            write(index)
        code.lines[place] = (
            f"  {index} = phi i64 [ {begin}, %{before} ], [ {following}, %{code.label} ]"
        )
        wrap = "nuw nsw" if begin == "0" else "nsw"
        code.do(f"{following} = add {wrap} i64 {index}, {step}")
        more = code.value(f"icmp slt i64 {following}, {end}")
        code.branch(more, body, done, marks)
        code.start(done)

    def _narrowed(self, index: str, dtype: DType) -> str:
        """A counter as the loop variable's type, which holds it."""
        text = TYPES[dtype].text
        if text == "i64":
            return index
        flag = "nsw" if dtype.is_int else "nuw"
        return self.code.pure(f"trunc {flag} i64 {index} to {text}")

    def _loop_metadata(self, loop: stmts.For) -> str:
        hint = unroll_hint(loop)
        return f", !llvm.loop !{self.module.loop_metadata(hint)}" if hint else ""

    # ---- failure

    def visit_assert_stmt(self, stmt: stmts.AssertStmt) -> None:
        code = self.code
        condition = self.visit(stmt.condition)
        passed, failed = code.new_label("passed"), code.new_label("failed")
        code.branch(condition, passed, failed, USUALLY_FIRST)
        code.start(failed)
        if not reports_itself(stmt.condition):
            with code.branch_scope():
                write_report(self, stmt.message)
        self.fail()
        code.start(passed)
        self.visit(stmt.body)

    def fail(self) -> None:
        """Leave the function with an error."""
        if self.frame.result == "i32":
            self.code.do("ret i32 -1")
        else:
            self.code.do("call void @llvm.trap()")
            self.code.do("unreachable")

    def return_if_failed(self, status: str) -> None:
        """Leave the function with an error unless ``status`` is 0."""
        code = self.code
        passed, failed = code.new_label("passed"), code.new_label("failed")
        is_ok = code.value(f"icmp eq i32 {status}, 0")
        code.branch(is_ok, passed, failed, USUALLY_FIRST)
        code.start(failed)
        with code.branch_scope():
            self._free_workspaces()
        self.fail()
        code.start(passed)

    def _free_workspaces(self) -> None:
        """Give back what the function holds: it is about to be left."""
        for owner in reversed(self.frame.workspaces):
            assert type(owner.value) is Call
            device = owner.value.args[:2]
            through_slot(self, _FREE, _INT32, (*device, owner.var))

    # ---- calls

    def visit_call(self, call: Call) -> Any:
        if isinstance(call.op, GlobalVar):
            return self.call_symbol(call.op.name_hint, call, call.args)
        assert isinstance(call.op, Op)
        write = INTRINSICS.get(call.op.name)
        if write is None:
            raise unsupported_error(call)
        return write(self, call)

    def call_symbol(self, name: str, call: Call, args: tuple[PrimExpr, ...]) -> str:
        """A call of a C function."""
        operands = ", ".join([f"{TYPES[a.dtype].text} {self.visit(a)}" for a in args])
        result = self.module.results.get(name, TYPES[call.dtype].text)
        if name in RUNTIME_FUNCTIONS:
            return through_slot(self, name, call.dtype, args)
        self.module.declare(name, result, [TYPES[a.dtype].text for a in args])
        text = f"call {result} @{quoted(name)}({operands})"
        if result == "void":
            self.code.do(text)
            return "0"
        return self.code.value(text)

    def visit_string_imm(self, node: StringImm) -> str:
        return self.module.string(node.value)

    def visit_stmt(self, stmt: stmts.Stmt) -> None:
        raise LoweringError(
            f"{type(stmt).__name__} must be lowered before code generation", at=stmt
        )

    def visit_prim_expr(self, node: PrimExpr) -> str:
        raise LoweringError(
            f"{type(node).__name__} must be lowered before code generation", at=node
        )


USUALLY_FIRST = ", !prof !0"
_INT32 = as_dtype("int32")
_FREE = "TVMBackendFreeWorkspace"
_WORKSPACE = "tir.TVMBackendAllocWorkspace"
_FRESH_MEMORY = (_WORKSPACE, "tir.nd_mem_alloc_with_scope")
