"""Split loops where a likely condition starts or ceases to hold, so that the main part does without it.

    for i in range(n):                         ->    for i in range(min(m, n)):
        for j in range(4):                               for j in range(4):
            if likely(i * 4 + j < m * 4 + 2):                B[i * 4 + j] = ...
                B[i * 4 + j] = ...                   for i in range(n - min(m, n)):
                                                         for j in range(4):
                                                             if likely(...): ...

A condition may also begin to hold, or be a conjunction. Only loops of variable extent are split, or others
when asked to, by the options or the pragma ``loop_partition_hint``: a constant tail is a mask of a vector.
With the pragma, conditions of statements count as likely, and what ``if_then_else`` chooses first: the inside
of a tensor, not its border.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from typing import Any

from tvm.arith import Analyzer
from tvm.arith.pattern import conjuncts
from tvm.ir.expr import PrimExpr
from tvm.ir.pass_context import unsupported_option
from tvm.ir.visitor import Rewriter, Visitor
from tvm.tir import op
from tvm.tir.expr import GE, GT, LE, LT, And, Call, IntImm, IterVar, Let, Range, Var, const
from tvm.tir.function import PrimFunc
from tvm.tir.stmt import AttrStmt, BufferStore, For, ForKind, IfThenElse, LetStmt, Stmt, seq
from tvm.tir.stmt_functor import substitute
from tvm.tir.transform.common import (
    IF_THEN_ELSE,
    LIKELY,
    LOOP_PARTITION_HINT,
    constant_extent,
    fresh,
    is_const,
    prim_func_pass,
    variables_of,
)
from tvm.tir.transform.convert_ssa import DefinitionSeparator, defined_by_parameters


@dataclass(frozen=True)
class LoopPartitionConfig:
    """Which loops are split."""

    partition_const_loop: bool = False  # loops of constant extent as well
    no_unroll_loop_with_extent_one: bool = unsupported_option(False, "simplification opens them")
    unroll_loop_with_partition_hint_no_interval: bool = unsupported_option(
        False, "mark the loop with unroll instead"
    )


@dataclass(frozen=True)
class Interval:
    """Values from ``start`` on and below ``limit``; None where there is no bound."""

    start: PrimExpr | None
    limit: PrimExpr | None

    def intersect(self, other: Interval) -> Interval:
        """The values in both."""
        starts = [i.start for i in (self, other) if i.start is not None]
        limits = [i.limit for i in (self, other) if i.limit is not None]
        return Interval(
            reduce(op.maximum, starts) if starts else None,
            reduce(op.minimum, limits) if limits else None,
        )


class ConditionFinder(Visitor):
    """Collects likely conditions in a loop's body, and the ranges of the loops around them."""

    def __init__(self, with_choices: bool = False) -> None:
        self.with_choices = with_choices
        self.conditions: list[PrimExpr] = []
        self.inner: dict[Var, For] = {}
        self.defined: dict[Var, None] = {}  # by other statements inside
        self.has_hint = False

    def visit_for(self, loop: For) -> None:
        self.inner[loop.loop_var] = loop
        self.has_hint |= is_hinted(loop)
        self.visit(loop.body)

    def visit_if_then_else(self, stmt: IfThenElse) -> None:
        if self.with_choices and stmt.else_case is None:
            self.conditions += [c for c in conjuncts(stmt.condition) if not _is_likely(c)]
        self.visit_children(stmt)

    def visit_attr_stmt(self, attr: AttrStmt) -> None:
        if isinstance(attr.node, IterVar):
            self.defined[attr.node.var] = None
        self.has_hint |= attr.attr_key == LOOP_PARTITION_HINT
        self.visit(attr.body)

    def visit_let_stmt(self, stmt: LetStmt) -> None:
        self.defined[stmt.var] = None
        self.visit_children(stmt)

    def visit_let(self, let: Let) -> None:
        self.defined[let.var] = None
        self.visit_children(let)

    def visit_call(self, call: Call) -> None:
        if call.op is LIKELY:
            self.conditions.append(call.args[0])
        elif call.op is IF_THEN_ELSE and self.with_choices:
            self.conditions += [c for c in conjuncts(call.args[0]) if not _is_likely(c)]
            self.visit(call.args[0])
            self.visit(call.args[1])
        else:
            self.visit_children(call)

    def visit_buffer_store(self, store: BufferStore) -> None:
        self.visit(store.value)


def is_hinted(loop: For) -> bool:
    """Whether a loop is annotated to be split."""
    hint = loop.annotations.get(LOOP_PARTITION_HINT, 0)
    return not is_const(hint, 0) if isinstance(hint, PrimExpr) else bool(hint)


def _is_likely(condition: PrimExpr) -> bool:
    return isinstance(condition, Call) and condition.op is LIKELY


def _without_hint(loop: For) -> For:
    if LOOP_PARTITION_HINT not in loop.annotations:
        return loop
    kept = {key: value for key, value in loop.annotations.items() if key != LOOP_PARTITION_HINT}
    return loop.replace(annotations=kept)


class ConditionRemover(Rewriter):
    """Replaces conditions that hold."""

    def __init__(self, known: dict[int, None]) -> None:
        self.known = known  # the identities of the conditions

    def visit(self, node: Any) -> Any:
        return const(True, "bool") if id(node) in self.known else super().visit(node)

    def visit_call(self, call: Call) -> PrimExpr:
        if call.op is LIKELY and id(call.args[0]) in self.known:
            return const(True, "bool")
        return self.rewrite_children(call)


class LoopPartitioner(DefinitionSeparator):
    """Splits loops from the outside in, and those of the main part as well.

    The parts at the edges keep their conditions, unless a loop there has a hint of its own: splitting on would
    triple the code at each level.
    """

    def __init__(self, config: LoopPartitionConfig, defined: Iterable[Var]) -> None:
        super().__init__(defined)
        self.config = config
        self.analyzer = Analyzer()
        self.hinted: dict[Var, None] = {}
        self.in_edge = False

    def visit_for(self, loop: For) -> Stmt:
        hinted, loop = is_hinted(loop), _without_hint(loop)
        if hinted:
            self.hinted[loop.loop_var] = None
        is_open = hinted or not self.in_edge
        if is_open and self._is_candidate(loop) and (bounds := self._always_true(loop)):
            parts = self._split(loop, bounds)
            if parts is not None:
                return seq([self._visit_part(part, is_edge) for part, is_edge in parts])
        self.analyzer.bind(loop.loop_var, Range.from_min_extent(loop.min, loop.extent), True)
        return super().visit_for(loop)

    def _visit_part(self, part: For, is_edge: bool) -> Stmt:
        outer, self.in_edge = self.in_edge, is_edge or self.in_edge
        new: Stmt = super().visit_for(part)
        self.in_edge = outer
        return new

    def visit_attr_stmt(self, attr: AttrStmt) -> Stmt:
        if attr.attr_key != LOOP_PARTITION_HINT:
            return super().visit_attr_stmt(attr)
        if isinstance(attr.node, IterVar) and not is_const(attr.value, 0):
            self.hinted[attr.node.var] = None
        body: Stmt = self.visit(attr.body)
        return body

    def _is_candidate(self, loop: For) -> bool:
        if loop.kind not in (ForKind.SERIAL, ForKind.PARALLEL, ForKind.UNROLLED):
            return False
        if self.config.partition_const_loop or loop.loop_var in self.hinted:
            return True
        return constant_extent(loop) is None

    def _always_true(self, loop: For) -> list[tuple[PrimExpr, Interval]]:
        """The conditions that the loop decides, and for which of its values they hold."""
        finder = ConditionFinder(loop.loop_var in self.hinted)
        finder.visit(loop.body)
        found = []
        for condition in finder.conditions:
            interval = self._interval(condition, loop, finder)
            if interval is not None:
                found.append((condition, interval))
        return found

    def _interval(self, condition: PrimExpr, loop: For, body: ConditionFinder) -> Interval | None:
        """The values of the loop variable for which a condition holds, whatever the loops inside do."""
        if isinstance(condition, And):
            left = self._interval(condition.a, loop, body)
            right = self._interval(condition.b, loop, body)
            return None if left is None or right is None else left.intersect(right)
        if isinstance(condition, (GT, GE)):
            swapped = LT if isinstance(condition, GT) else LE
            condition = swapped(condition.b, condition.a)
        if not isinstance(condition, (LT, LE)):
            return None
        return self._comparison(condition, loop, body)

    def _comparison(self, condition: LT | LE, loop: For, body: ConditionFinder) -> Interval | None:
        """``a < b`` with its least slack inside: b - a = rest - c*var, so var < ceil(rest / c); with a
        growing slack, b - a = rest + c*var, so var > floor(-rest / c)."""
        var = loop.loop_var
        slack = condition.b - condition.a
        step = self.analyzer.simplify(slack - substitute(slack, {var: var + 1}))
        if not isinstance(step, IntImm) or step.value == 0:
            return None
        rest: PrimExpr = substitute(slack, {var: const(0, var.dtype)})
        for inner_var, inner_loop in reversed(list(body.inner.items())):
            worst = self._least_over(rest, inner_var, inner_loop)
            if worst is None:
                return None
            rest = worst
        # the ends of loops inside may depend on this one, and on each other
        unknown = {var, *body.inner, *body.defined}
        if any([name in unknown for name in variables_of(rest)]):
            return None
        if isinstance(condition, LE):
            rest = rest + 1
        size = abs(step.value)
        if step.value > 0:
            limit = op.floordiv(rest + (size - 1), const(size, rest.dtype))
            return Interval(None, self.analyzer.simplify(limit))
        start = op.floordiv(op.negative(rest), const(size, rest.dtype)) + 1
        return Interval(self.analyzer.simplify(start), None)

    def _least_over(self, e: PrimExpr, var: Var, loop: For) -> PrimExpr | None:
        """The least value of a linear expression over the range of an inner loop."""
        if var not in variables_of(e):
            return e
        step = self.analyzer.simplify(substitute(e, {var: var + 1}) - e)
        if not isinstance(step, IntImm):
            return None
        at = loop.min if step.value >= 0 else loop.min + loop.extent - 1
        return self.analyzer.simplify(substitute(e, {var: at}))

    def _split(
        self, loop: For, bounds: list[tuple[PrimExpr, Interval]]
    ) -> list[tuple[For, bool]] | None:
        """The part before all conditions hold, the part where they do, and the part behind; which
        of them are edges."""
        stop = loop.min + loop.extent
        begin, end = loop.min, stop
        for _, interval in bounds:
            if interval.start is not None and not self._is_known(interval.start <= loop.min):
                begin = op.maximum(begin, interval.start)
            if interval.limit is not None and not self._is_known(interval.limit >= stop):
                end = op.minimum(end, interval.limit)
        if begin is not loop.min:
            begin = self.analyzer.simplify(op.minimum(begin, stop))
        end = self.analyzer.simplify(op.maximum(end, begin))
        if end is begin or self.analyzer.can_prove_equal(end, begin):
            return None
        known = {id(condition): None for condition, _ in bounds}
        body = ConditionRemover(known).visit(loop.body)
        parts = [(self._part(loop, begin, end, body), False)]
        if not self.analyzer.can_prove_equal(begin, loop.min):
            parts.insert(0, (self._part(loop, loop.min, begin, loop.body), True))
        if not self.analyzer.can_prove_equal(end, stop):
            parts.append((self._part(loop, end, stop, loop.body), True))
        return parts

    def _part(self, loop: For, begin: PrimExpr, end: PrimExpr, body: Stmt) -> For:
        extent = self.analyzer.simplify(end - begin)
        if begin is loop.min:
            return loop.replace(extent=extent, body=body)
        var = fresh(loop.loop_var)
        moved = substitute(body, {loop.loop_var: var})
        return loop.replace(loop_var=var, min=begin, extent=extent, body=moved)

    def _is_known(self, condition: PrimExpr) -> bool:
        return bool(self.analyzer.can_prove(condition))


@prim_func_pass("tir.LoopPartition", LoopPartitionConfig)
def loop_partition(func: PrimFunc, config: LoopPartitionConfig) -> PrimFunc:
    """Separate the part of a loop that needs no check."""
    finder = ConditionFinder()
    finder.visit(func.body)
    if not finder.conditions and not finder.has_hint:
        return func
    return func.with_body(LoopPartitioner(config, defined_by_parameters(func)).visit(func.body))


LoopPartition = loop_partition.factory
