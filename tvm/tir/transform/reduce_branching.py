"""Compute for all iterations where the result of some does not matter, rather than branch.

if i < 14:                   ->    B[i] = A[i] * 2
    B[i] = A[i] * 2
else:
    B[i] = undef()

A branch goes as well if RemoveNoOp finds that its statement, where the condition does not hold, has no effect:
it stores what is there, or what is overwritten.
"""

from __future__ import annotations

from dataclasses import dataclass

from tvm.arith import Analyzer
from tvm.ir.expr import PrimExpr
from tvm.ir.structural import structural_equal
from tvm.ir.visitor import Rewriter, Visitor
from tvm.tir.analysis.bounds import AccessChecker
from tvm.tir.analysis.safety import is_safe_anywhere
from tvm.tir.expr import BufferLoad, Call, Range, StringImm, const
from tvm.tir.function import PrimFunc
from tvm.tir.stmt import AttrStmt, BufferStore, For, IfThenElse, Stmt
from tvm.tir.stmt_functor import post_order_visit
from tvm.tir.transform.common import IF_THEN_ELSE, contains, prim_func_pass
from tvm.tir.transform.remove_no_op import RemoveNoOpConfig, remove_no_op
from tvm.tir.transform.remove_store_undef import is_undef


@dataclass(frozen=True)
class ReduceBranchingThroughOvercomputeConfig:
    """How far the program is analysed."""

    use_dataflow_analysis: bool = False  # follow what is stored and read elsewhere


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
        analyzer = self.checker.analyzer
        known = all([is_bounded(analyzer, load) for load in loads.found])
        return known and not self.checker.found


class WithoutLoads(Rewriter):
    """Replaces loads by constants: what is left tells of other dangers."""

    def __init__(self) -> None:
        self.found: list[BufferLoad] = []

    def visit_buffer_load(self, load: BufferLoad) -> PrimExpr:
        self.found.append(load)
        return const(0, load.dtype)


class BranchTrials:
    """Tries for each branch whether its statement may run always."""

    def __init__(self, config: RemoveNoOpConfig) -> None:
        self.config = config

    def without_branches(self, func: PrimFunc) -> PrimFunc:
        """The function with each branch gone that can be missed."""
        for branch in branches_of(func.body):
            if self._same_without(func, branch):
                func = func.with_body(_Replacer(branch, branch.then_case).visit(func.body))
        return func

    def _same_without(self, func: PrimFunc, branch: IfThenElse) -> bool:
        if not _is_in_bounds(func.body, branch):
            return False
        if branch.else_case is not None:
            sides = [branch.then_case, branch.else_case]
            yes, no = [remove_no_op(func.with_body(side), self.config).body for side in sides]
            return structural_equal(yes, no)
        marked = AttrStmt(TRIAL, TRIAL.value, const(0, "int32"), branch.then_case)
        trial = _Replacer(branch, branch.replace(else_case=marked)).visit(func.body)
        left = remove_no_op(func.with_body(trial), self.config).body
        return trial is not func.body and not contains(left, _is_marked)


TRIAL = StringImm("overcompute")


def _is_marked(node: object) -> bool:
    return isinstance(node, AttrStmt) and node.node is TRIAL


def branches_of(body: Stmt) -> list[IfThenElse]:
    """The branches of a statement, inner ones first."""
    found: list[IfThenElse] = []
    post_order_visit(body, lambda s: found.append(s) if isinstance(s, IfThenElse) else None)
    return found


class _Replacer(Rewriter):
    """Puts a statement in the place of another one."""

    def __init__(self, old: Stmt, new: Stmt) -> None:
        self.old, self.new = old, new

    def visit_if_then_else(self, stmt: IfThenElse) -> Stmt:
        return self.new if stmt is self.old else self.rewrite_children(stmt)

    def visit_prim_expr(self, e: PrimExpr) -> PrimExpr:
        return e


def _is_in_bounds(body: Stmt, branch: IfThenElse) -> bool:
    """Whether all that a branch accesses is there where its condition does not hold."""
    checker = BranchChecker(branch)
    checker.visit(body)
    return checker.is_safe


class BranchChecker(Visitor):
    """Walks to a branch with the bounds of the loops around it, and checks its accesses."""

    def __init__(self, branch: IfThenElse) -> None:
        self.branch = branch
        self.checker = AccessChecker()
        self.is_safe = True
        self._is_inside = False

    def visit_for(self, loop: For) -> None:
        bounds = Range.from_min_extent(loop.min, loop.extent)
        self.checker.analyzer.bind(loop.loop_var, bounds, True)
        self.visit_children(loop)

    def visit_if_then_else(self, stmt: IfThenElse) -> None:
        outer = self._is_inside
        self._is_inside |= stmt is self.branch
        self.visit_children(stmt)
        self._is_inside = outer

    def visit_buffer_load(self, load: BufferLoad) -> None:
        self._access(load)

    def visit_buffer_store(self, store: BufferStore) -> None:
        self._access(store)

    def _access(self, node: BufferLoad | BufferStore) -> None:
        if self._is_inside:
            self.is_safe &= is_bounded(self.checker.analyzer, node)
        self.visit_children(node)


def is_bounded(analyzer: Analyzer, node: BufferLoad | BufferStore) -> bool:
    """Whether all indices of an access are within the buffer."""
    return all([
        analyzer.can_prove(index >= 0) and analyzer.can_prove(index < extent)
        for index, extent in zip(node.indices, node.buffer.shape, strict=True)
    ])  # fmt: skip


@prim_func_pass("tir.ReduceBranchingThroughOvercompute", ReduceBranchingThroughOvercomputeConfig)
def reduce_branching(func: PrimFunc, config: ReduceBranchingThroughOvercomputeConfig) -> PrimFunc:
    """Remove branches whose other side is undefined."""
    func = func.with_body(Overcomputer().visit(func.body))
    return BranchTrials(RemoveNoOpConfig(config.use_dataflow_analysis)).without_branches(func)


ReduceBranchingThroughOvercompute = reduce_branching.factory
