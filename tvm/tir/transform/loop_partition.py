"""Split loops where a likely condition starts or ceases to hold, so that the main part does without it.

    for i in range(n):                         ->    for i in range(min(m, n)):
        for j in range(4):                               for j in range(4):
            if likely(i * 4 + j < m * 4 + 2):                B[i * 4 + j] = ...
                B[i * 4 + j] = ...                   for i in range(n - min(m, n)):
                                                         for j in range(4):
                                                             if likely(...): ...

Only loops of variable extent are split, or others when asked to: a constant tail is a mask of a vector.
"""

from __future__ import annotations

from dataclasses import dataclass

from tvm.arith import Analyzer
from tvm.ir.expr import PrimExpr
from tvm.ir.pass_context import unsupported_option
from tvm.ir.visitor import Rewriter, Visitor
from tvm.tir import op
from tvm.tir.expr import LE, LT, Call, IntImm, Range, Var, const
from tvm.tir.function import PrimFunc
from tvm.tir.stmt import BufferStore, For, ForKind, Stmt, seq
from tvm.tir.stmt_functor import substitute
from tvm.tir.transform.common import (
    LIKELY,
    constant_extent,
    fresh,
    prim_func_pass,
    variables_of,
)
from tvm.tir.transform.convert_ssa import DefinitionSeparator


@dataclass(frozen=True)
class LoopPartitionConfig:
    """Which loops are split."""

    partition_const_loop: bool = False  # loops of constant extent as well
    no_unroll_loop_with_extent_one: bool = unsupported_option(False, "simplification opens them")
    unroll_loop_with_partition_hint_no_interval: bool = unsupported_option(
        False, "mark the loop with unroll instead"
    )


class ConditionFinder(Visitor):
    """Collects likely conditions in a loop's body, and the ranges of the loops around them."""

    def __init__(self) -> None:
        self.conditions: list[PrimExpr] = []
        self.inner: dict[Var, For] = {}

    def visit_for(self, loop: For) -> None:
        self.inner[loop.loop_var] = loop
        self.visit(loop.body)

    def visit_call(self, call: Call) -> None:
        if call.op is LIKELY:
            self.conditions.append(call.args[0])
        else:
            self.visit_children(call)

    def visit_buffer_store(self, store: BufferStore) -> None:
        self.visit(store.value)


class ConditionRemover(Rewriter):
    """Replaces likely conditions that hold."""

    def __init__(self, known: dict[int, None]) -> None:
        self.known = known  # the identities of the conditions

    def visit_call(self, call: Call) -> PrimExpr:
        if call.op is LIKELY and id(call.args[0]) in self.known:
            return const(True, "bool")
        return self.rewrite_children(call)


class LoopPartitioner(DefinitionSeparator):
    """Splits loops from the outside in; the parts are looked into as well."""

    def __init__(self, config: LoopPartitionConfig, defined: tuple[Var, ...]) -> None:
        super().__init__(defined)
        self.config = config
        self.analyzer = Analyzer()

    def visit_for(self, loop: For) -> Stmt:
        if self._is_candidate(loop) and (bounds := self._always_true(loop)):
            parts = self._split(loop, bounds)
            if parts is not None:
                return seq([super(LoopPartitioner, self).visit_for(part) for part in parts])
        self.analyzer.bind(loop.loop_var, Range.from_min_extent(loop.min, loop.extent), True)
        return super().visit_for(loop)

    def _is_candidate(self, loop: For) -> bool:
        if loop.kind not in (ForKind.SERIAL, ForKind.PARALLEL, ForKind.UNROLLED):
            return False
        return self.config.partition_const_loop or constant_extent(loop) is None

    def _always_true(self, loop: For) -> list[tuple[PrimExpr, PrimExpr]]:
        """For each condition that the loop decides: the condition, and below which value it holds."""
        finder = ConditionFinder()
        finder.visit(loop.body)
        found = []
        for condition in finder.conditions:
            limit = self._limit(condition, loop, finder.inner)
            if limit is not None:
                found.append((condition, limit))
        return found

    def _limit(self, condition: PrimExpr, loop: For, inner: dict[Var, For]) -> PrimExpr | None:
        """The first value of the loop variable for which ``a < b`` may fail: with its greatest inner part,
        a = c*var + rest, so var < ceil((b - rest) / c)."""
        if not isinstance(condition, (LT, LE)):
            return None
        var = loop.loop_var
        slack = condition.b - condition.a
        step = self.analyzer.simplify(slack - substitute(slack, {var: var + 1}))
        if not isinstance(step, IntImm) or step.value <= 0:
            return None
        rest = substitute(slack, {var: const(0, var.dtype)})
        for inner_var, inner_loop in reversed(list(inner.items())):
            worst = self._least_over(rest, inner_var, inner_loop)
            if worst is None:
                return None
            rest = worst
        if any([name in inner for name in variables_of(rest)]):
            return None
        if isinstance(condition, LE):
            rest = rest + 1
        return self.analyzer.simplify(op.floordiv(rest + (step.value - 1), step))

    def _least_over(self, e: PrimExpr, var: Var, loop: For) -> PrimExpr | None:
        """The least value of a linear expression over the range of an inner loop."""
        if var not in variables_of(e):
            return e
        step = self.analyzer.simplify(substitute(e, {var: var + 1}) - e)
        if not isinstance(step, IntImm):
            return None
        at = loop.min if step.value >= 0 else loop.min + loop.extent - 1
        return self.analyzer.simplify(substitute(e, {var: at}))

    def _split(self, loop: For, bounds: list[tuple[PrimExpr, PrimExpr]]) -> list[For] | None:
        stop = loop.min + loop.extent
        middle = stop
        for _, limit in bounds:
            middle = (
                op.minimum(middle, limit) if not self.analyzer.can_prove(limit >= stop) else middle
            )
        middle = self.analyzer.simplify(op.maximum(middle, loop.min))
        if middle is loop.min or self.analyzer.can_prove_equal(middle, loop.min):
            return None
        known = {id(condition): None for condition, _ in bounds}
        body = ConditionRemover(known).visit(loop.body)
        main = loop.replace(extent=self.analyzer.simplify(middle - loop.min), body=body)
        if self.analyzer.can_prove_equal(middle, stop):
            return [main]
        rest = fresh(loop.loop_var)
        tail_body = substitute(loop.body, {loop.loop_var: rest})
        extent = self.analyzer.simplify(stop - middle)
        return [main, loop.replace(loop_var=rest, min=middle, extent=extent, body=tail_body)]


@prim_func_pass("tir.LoopPartition", LoopPartitionConfig)
def loop_partition(func: PrimFunc, config: LoopPartitionConfig) -> PrimFunc:
    """Separate the part of a loop that needs no check."""
    finder = ConditionFinder()
    finder.visit(func.body)
    if not finder.conditions:
        return func
    return func.with_body(LoopPartitioner(config, func.params).visit(func.body))


LoopPartition = loop_partition.factory
