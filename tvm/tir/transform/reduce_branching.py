"""Compute for all iterations where the result of some does not matter, rather than branch.

if i < 14:                   ->    B[i] = A[i] * 2
    B[i] = A[i] * 2
else:
    B[i] = undef()
"""

from __future__ import annotations

from dataclasses import dataclass

from tvm.ir.expr import PrimExpr
from tvm.ir.pass_context import unsupported_option
from tvm.ir.structural import structural_equal
from tvm.ir.visitor import Rewriter
from tvm.tir.analysis.bounds import AccessChecker
from tvm.tir.analysis.safety import is_safe_anywhere
from tvm.tir.expr import BufferLoad, Call, Range, const
from tvm.tir.function import PrimFunc
from tvm.tir.stmt import BufferStore, For, IfThenElse, Stmt
from tvm.tir.transform.common import IF_THEN_ELSE, prim_func_pass
from tvm.tir.transform.remove_store_undef import is_undef


@dataclass(frozen=True)
class ReduceBranchingThroughOvercomputeConfig:
    """How far the program is analysed."""

    use_dataflow_analysis: bool = unsupported_option(
        False, "say what may be anything: store tir.undef() in the other branch"
    )


class Overcomputer(Rewriter):
    """Takes the first branch wherever the other one gives an undefined value."""

    def __init__(self) -> None:
        self.checker = AccessChecker()

    def visit_for(self, loop: For) -> Stmt:
        bounds = Range.from_min_extent(loop.min, loop.extent)
        self.checker.analyzer.bind(loop.loop_var, bounds, True)
        return self.rewrite_children(loop)

    def visit_if_then_else(self, stmt: IfThenElse) -> Stmt:
        stmt = self.rewrite_children(stmt)
        yes, no = stmt.then_case, stmt.else_case
        if not isinstance(yes, BufferStore) or not isinstance(no, BufferStore):
            return stmt
        same = yes.buffer is no.buffer and structural_equal(yes.indices, no.indices)
        return yes if same and is_undef(no.value) and self._is_harmless(yes.value) else stmt

    def visit_call(self, call: Call) -> PrimExpr:
        call = self.rewrite_children(call)
        if call.op is not IF_THEN_ELSE or not is_undef(call.args[2]):
            return call
        return call.args[1] if self._is_harmless(call.args[1]) else call

    def _is_harmless(self, e: PrimExpr) -> bool:
        """Whether a value can be computed outside of its branch: what it loads is there."""
        loads = WithoutLoads()
        if not is_safe_anywhere(loads.visit(e)):
            return False
        self.checker.found.clear()
        self.checker.visit(e)
        known = all([self._is_bounded(load) for load in loads.found])
        return known and not self.checker.found

    def _is_bounded(self, load: BufferLoad) -> bool:
        analyzer = self.checker.analyzer
        return all([
            analyzer.can_prove(index >= 0) and analyzer.can_prove(index < extent)
            for index, extent in zip(load.indices, load.buffer.shape, strict=True)
        ])  # fmt: skip


class WithoutLoads(Rewriter):
    """Replaces loads by constants: what is left tells of other dangers."""

    def __init__(self) -> None:
        self.found: list[BufferLoad] = []

    def visit_buffer_load(self, load: BufferLoad) -> PrimExpr:
        self.found.append(load)
        return const(0, load.dtype)


@prim_func_pass("tir.ReduceBranchingThroughOvercompute", ReduceBranchingThroughOvercomputeConfig)
def reduce_branching(func: PrimFunc, config: ReduceBranchingThroughOvercomputeConfig) -> PrimFunc:
    """Remove branches whose other side is undefined."""
    return func.with_body(Overcomputer().visit(func.body))


ReduceBranchingThroughOvercompute = reduce_branching.factory
