"""Statements of one PrimFunc as C."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import tvm.tir.stmt as stmts
from tvm.codegen.llvm.tensor_check import reports_itself
from tvm.error import LoweringError
from tvm.ir.expr import PrimExpr
from tvm.ir.type import PointerType, PrimType
from tvm.tir.expr import Call, IntImm, StringImm, Var

from .arithmetic import bare
from .code import Code
from .failure import write_report
from .intrinsics import write_call
from .memory import MemoryWriter, is_mentioned, loads_in
from .packed import without_result
from .parallel import ParallelRegion, partitioned, write_launch
from .types import TYPES, string_text
from .vectors import is_lane_wise

if TYPE_CHECKING:
    from .module import ModuleWriter


class FunctionWriter(MemoryWriter):
    """Writes the body of one PrimFunc, and the functions its parallel loops become."""

    def __init__(
        self, module: ModuleWriter, name: str, code: Code, result: str, taken: Sequence[str]
    ) -> None:
        self.module = module
        self.name = name
        self.code = code
        self.taken = taken  # names that variables must not have
        self.result = result  # C's type of the function's result
        self.parallel: ParallelRegion | None = None
        self.noalias = False
        self.wraps = True
        self.lane = None
        self.before = []
        self.of_lane = set()
        self.values = {}
        self.used = set()
        self.read = set()
        self.pointees = {}
        self.constants = set()
        self.restricted: set[Var] = set()

    @contextmanager
    def moved_to(self, code: Code, result: str, region: ParallelRegion) -> Iterator[None]:
        """Write into another function inside the block."""
        outer = self.code, self.result, self.parallel
        self.code, self.result, self.parallel = code, result, region
        try:
            yield
        finally:
            self.code, self.result, self.parallel = outer

    # ---- variables

    def define(self, var: Var) -> str:
        """A name for a variable."""
        if var.dtype.is_handle:
            annotation = var.type_annotation
            if isinstance(annotation, PointerType) and isinstance(
                annotation.element_type, PrimType
            ):
                self.pointees.setdefault(var, TYPES[annotation.element_type.dtype.element].memory)
            if self.pointees.get(var) == "void":
                del self.pointees[var]
        # an unrolled body defines the same variable again
        self.used.discard(var)
        self.read.discard(var)
        name = self.values[var] = self.code.name(var.name)
        return name

    def pointer_type(self, var: Var) -> str:
        """The type of a variable, without promises."""
        if var.dtype.lanes > 1:
            return f"{TYPES[var.dtype.element].text}*"
        return (
            f"{self.pointees.get(var, 'void')}*" if var.dtype.is_handle else TYPES[var.dtype].text
        )

    def declared_type(self, var: Var) -> str:
        """The type of a variable as it is declared."""
        text = self.pointer_type(var)
        if var in self.restricted:
            return f"{text} TVM_RESTRICT"
        return text if var.dtype.is_handle or var.dtype.lanes > 1 else f"const {text}"

    def visit_var(self, var: Var) -> str:
        found = super().visit_var(var)
        return f"(({self.pointees[var]}*){found})" if var in self.constants else found

    def bind(self, var: Var, value: PrimExpr) -> None:
        """Define a variable."""
        if var.dtype.lanes > 1:
            self.values[var] = self.array_of(value)
            return
        text = bare(self.visit(value))
        source = getattr(value.op, "name", "") if type(value) is Call else ""
        name = self.define(var)
        if var.dtype.is_handle:
            text = f"({self.pointer_type(var)}){self._as_operand(text)}"
            is_given = self.noalias and source == "tir.tvm_struct_get" and var in self.pointees
            if source in _FRESH_MEMORY or is_given:
                self.restricted.add(var)
        self.code.do(f"{self.declared_type(var)} {name} = {text}")

    @staticmethod
    def _as_operand(text: str) -> str:
        """A pointer's text as the operand of a cast."""
        return text if text.replace("_", "a").isalnum() else f"({text})"

    @contextmanager
    def bound(self, var: Var, value: PrimExpr) -> Iterator[None]:
        """The variable is defined; C compilers are told if nothing uses it."""
        self.bind(var, value)
        yield
        if var not in self.used and var.dtype.lanes == 1:
            self.code.do(f"(void){self.values[var]}")

    def visit_let_stmt(self, stmt: stmts.LetStmt) -> None:
        with self.bound(stmt.var, stmt.value):
            self.visit(stmt.body)

    def visit_attr_stmt(self, stmt: stmts.AttrStmt) -> None:
        key = stmt.attr_key
        if key == "pragma_parallel_launch_point":
            write_launch(self, stmt.body)
            return
        if key == "pragma_parallel_barrier_when_finish":
            self._with_barrier(stmt)
            return
        if key == "pragma_parallel_stride_pattern" and self.parallel is not None:
            self.parallel.strided = True
        elif key == "pragma_import_c" and isinstance(stmt.value, StringImm):
            self.module.add_import(stmt.value.value)
        elif key == "pragma_import_llvm":
            raise LoweringError(
                "target c cannot take LLVM code, got import_llvm", at=stmt,
                hint="import_c takes C code",
            )  # fmt: skip
        elif key == "coproc_uop_scope":
            raise LoweringError(
                f"target c cannot give statements to {stmt.value}, got coproc_uop_scope", at=stmt,
                hint="target llvm can",
            )  # fmt: skip
        elif key in ("thread_extent", "virtual_thread"):
            tag = getattr(stmt.node, "thread_tag", stmt.node)
            raise LoweringError(
                f"target c has no {key}, got an axis bound to {tag}",
                hint="use parallel and vectorize on a CPU; bind is for GPU targets",
            )
        self.visit(stmt.body)

    def _with_barrier(self, stmt: stmts.AttrStmt) -> None:
        if self.parallel is None:
            raise LoweringError("parallel_barrier_when_finish needs parallel_launch_point", at=stmt)
        self.visit(stmt.body)
        self.fail_if(f"{self.module.slot('TVMBackendParallelBarrier')}(task_id, env) != 0")

    # ---- memory

    def visit_allocate(self, stmt: stmts.Allocate) -> None:
        size = stmt.constant_size()
        if size is None:
            raise LoweringError(
                "an allocation of variable size must be lowered to a workspace", at=stmt.buffer_var
            )
        type_ = TYPES[stmt.dtype.element]
        self.pointees[stmt.buffer_var] = type_.memory
        name = self.define(stmt.buffer_var)
        count = max(size * stmt.dtype.lanes, 1)
        self.code.do(f"TVM_ALIGNED({self.module.alignment.memory}) {type_.memory} {name}[{count}]")
        self.visit(stmt.body)
        if stmt.buffer_var not in self.read:
            self.code.do(f"(void){name}")

    def visit_allocate_const(self, stmt: stmts.AllocateConst) -> None:
        dtype = stmt.dtype
        self.pointees[stmt.buffer_var] = TYPES[dtype.element].memory
        self.constants.add(stmt.buffer_var)
        is_argument = is_mentioned(stmt.buffer_var, stmt.body)
        self.values[stmt.buffer_var] = self.module.constant_array(stmt.data, dtype, is_argument)
        self.visit(stmt.body)

    def visit_decl_buffer(self, stmt: stmts.DeclBuffer) -> None:
        self.visit(stmt.body)

    # ---- control

    def visit_seq_stmt(self, stmt: stmts.SeqStmt) -> None:
        for part in stmt.seq:
            self.visit(part)

    def visit_evaluate(self, stmt: stmts.Evaluate) -> None:
        value = stmt.value
        if type(value) is IntImm:
            return
        if value.dtype.lanes > 1:
            with self.lanes(value.dtype.lanes):
                self.code.do(f"(void){self.visit(value)}")
            return
        text = self.visit(without_result(value) if type(value) is Call else value)
        if text not in ("0", "NULL"):
            self.code.do(f"(void){text}")

    def visit_if_then_else(self, stmt: stmts.IfThenElse) -> None:
        # indices do not overflow; data may
        with self.wrapping(bool(loads_in(stmt.condition))):
            test = bare(self.visit(stmt.condition))
        with self.code.block(f"if ({test})"):
            self.visit(stmt.then_case)
        if stmt.else_case is not None:
            with self.code.block("else"):
                self.visit(stmt.else_case)

    def visit_while(self, stmt: stmts.While) -> None:
        with self.code.block("for (;;)"):
            test = self.visit(stmt.condition)
            self.code.do(f"if (!{test}) break")
            self.visit(stmt.body)

    def visit_for(self, loop: stmts.For) -> None:
        if loop.kind is stmts.ForKind.THREAD_BINDING:
            raise LoweringError("target c cannot bind a loop to GPU threads", at=loop)
        if loop.kind is not stmts.ForKind.PARALLEL:
            self._serial(loop)
        elif self.parallel is None:
            write_launch(self, loop)
        elif self.parallel.used:
            self._serial(loop)  # the threads are busy: one thread does the inner loop
        else:
            self.parallel.used = True
            partitioned(self, loop, self.parallel)

    def _serial(self, loop: stmts.For) -> None:
        begin, extent, dtype = loop.min, loop.extent, loop.loop_var.dtype
        counter = "int64_t" if dtype.bits < 32 else TYPES[dtype].text
        if isinstance(begin, IntImm) and isinstance(extent, IntImm):
            last = begin.value + extent.value
            if last > _LARGEST_INT32:
                counter = "int64_t"
            if extent.value >= 1:
                suffix = "LL" if counter == "int64_t" else ""
                self.counted(loop, str(begin.value), f"{last}{suffix}", "1", counter)
            return
        with self.wrapping(False):
            first, count = self.operand(begin), self.visit(extent)
            starts_at_zero = isinstance(begin, IntImm) and begin.value == 0
            end = self.named(count if starts_at_zero else f"({first} + {count})", extent.dtype)
        self.counted(loop, first, end, "1", counter)

    def counted(self, loop: stmts.For, begin: str, end: str, step: str, counter: str) -> None:
        """A loop from ``begin`` to ``end``, counted in the type ``counter``."""
        var = loop.loop_var
        name = self.define(var)
        type_ = TYPES[var.dtype].text
        index = name if counter == type_ else self.code.name("iteration")
        following = f"++{index}" if step == "1" else f"{index} += {step}"
        with self.code.block(f"for ({counter} {index} = {begin}; {index} < {end}; {following})"):
            place = len(self.code.lines)
            self.visit(loop.body)
            if index is not name and var in self.used:
                self.code.lines.insert(place, f"const {type_} {name} = ({type_}){index};")

    # ---- failure

    def visit_assert_stmt(self, stmt: stmts.AssertStmt) -> None:
        condition = self.visit(stmt.condition)
        with self.code.block(f"if (!{condition})"):
            if not reports_itself(stmt.condition):
                write_report(self, stmt.message)
            self.fail()
        self.visit(stmt.body)

    def fail(self) -> None:
        """Leave the function with an error."""
        self.code.do("return -1" if self.result in ("int32_t", "int") else "abort()")

    def fail_if(self, failed: str) -> None:
        """Leave the function with an error if the condition holds."""
        with self.code.block(f"if ({failed})"):
            self.fail()

    # ---- calls

    def visit_call(self, call: Call) -> Any:
        return write_call(self, call)

    def choose_lane(self, call: Call) -> str:
        """``if_then_else``; one that cannot be evaluated lane by lane is computed as a whole."""
        if self.lane is not None and not all([is_lane_wise(arg) for arg in call.args]):
            return self.array_of(call) if call.dtype.lanes == 1 else self.lane_of(call)
        return self.choose(call.dtype, *call.args)

    def visit_string_imm(self, node: StringImm) -> str:
        return f"((void*){string_text(node.value)})"

    def visit_stmt(self, stmt: stmts.Stmt) -> None:
        raise LoweringError(
            f"{type(stmt).__name__} must be lowered before code generation", at=stmt
        )

    def visit_prim_expr(self, node: PrimExpr) -> str:
        raise LoweringError(
            f"{type(node).__name__} must be lowered before code generation", at=node
        )


_LARGEST_INT32 = (1 << 31) - 1
_FRESH_MEMORY = ("tir.TVMBackendAllocWorkspace", "tir.nd_mem_alloc_with_scope")
