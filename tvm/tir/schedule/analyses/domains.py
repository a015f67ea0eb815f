"""Which values a block's variables need to have for it to access a given region.

B[v0, v1 * 4 : v1 * 4 + 4] is to hold B[h*8 : h*8 + 10, 0:16]    ->    v0 in [h*8, h*8 + 9], v1 in [0, 3]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

from tvm.arith import (
    Analyzer,
    IntervalSet,
    detect_iter_map,
    inverse_affine_iter_map,
)
from tvm.ir.expr import PrimExpr
from tvm.tir import op
from tvm.tir.buffer import Buffer
from tvm.tir.expr import FloorDiv, FloorMod, IterVar, Mul, Range, Var, const
from tvm.tir.stmt import Block, BufferRegion

from .bindings import uses_var
from .regions import Box

Span = tuple[PrimExpr, PrimExpr]  # the least and the greatest value


@dataclass(frozen=True, slots=True)
class Domain:
    """The values that a variable runs over; ``bound``, if they may leave it, is to be checked."""

    first: PrimExpr
    extent: PrimExpr
    bound: Span | None


def block_domains(
    block: Block,
    regions: Sequence[BufferRegion],
    needed: Sequence[tuple[Buffer, Box]],
    analyzer: Analyzer,
) -> list[Domain]:
    """The domains of a block's variables for which the regions hold all that is needed."""
    solver = DomainSolver(block, analyzer)
    for buffer, box in _united(needed, analyzer):
        for region in regions:
            if region.buffer is buffer:
                solver.solve(region, box)
    return [solver.domain(axis) for axis in block.iter_vars]


def _united(needed: Sequence[tuple[Buffer, Box]], analyzer: Analyzer) -> list[tuple[Buffer, Box]]:
    boxes: dict[Buffer, Box] = {}
    for buffer, box in needed:
        known = boxes.get(buffer)
        boxes[buffer] = box if known is None else [
            hull(a, b, analyzer) for a, b in zip(known, box, strict=True)
        ]  # fmt: skip
    return list(boxes.items())


def hull(a: IntervalSet, b: IntervalSet, analyzer: Analyzer) -> IntervalSet:
    low = a.min_value
    if not (a.has_lower_bound() and b.has_lower_bound()):
        low = a.min_value if not a.has_lower_bound() else b.min_value
    elif not analyzer.can_prove_equal(a.min_value, b.min_value):
        low = analyzer.simplify(op.min(a.min_value, b.min_value))
    high = a.max_value
    if not (a.has_upper_bound() and b.has_upper_bound()):
        high = a.max_value if not a.has_upper_bound() else b.max_value
    elif not analyzer.can_prove_equal(a.max_value, b.max_value):
        high = analyzer.simplify(op.max(a.max_value, b.max_value))
    return IntervalSet(low, high)


class DomainSolver:
    """Collects what regions ask of variables; of several the hull is taken."""

    def __init__(self, block: Block, analyzer: Analyzer) -> None:
        self.analyzer = analyzer
        self.axes = {axis.var: axis for axis in block.iter_vars}
        self.spans: dict[Var, IntervalSet] = {}

    def solve(self, region: BufferRegion, box: Box) -> None:
        """Note what the variables need to be for the region to hold the box."""
        rest: list[int] = []
        solved: dict[Var, IntervalSet] = {}
        for position, (side, needed) in enumerate(zip(region.region, box, strict=True)):
            found = self._solve_side(side, self._within(needed, region.buffer.shape[position]))
            if found is None:
                rest.append(position)
            elif found[1] is not None:
                solved[found[0]] = self._both(solved.get(found[0]), found[1])
        if rest:
            self._solve_affine(region, box, rest, solved)
        for var, span in solved.items():
            known = self.spans.get(var)
            self.spans[var] = span if known is None else hull(known, span, self.analyzer)

    def _within(self, needed: IntervalSet, extent: PrimExpr) -> IntervalSet:
        """A side without an end reaches to the buffer's own."""
        low = needed.min_value if needed.has_lower_bound() else const(0, extent.dtype)
        high = needed.max_value if needed.has_upper_bound() else op.subtract(extent, 1)
        return IntervalSet(low, high)

    def _both(self, known: IntervalSet | None, span: IntervalSet) -> IntervalSet:
        return span if known is None else hull(known, span, self.analyzer)

    def _solve_side(
        self, side: Range, needed: IntervalSet
    ) -> tuple[Var, IntervalSet | None] | None:
        """A variable and its values; None where this side alone tells nothing."""
        first = self.analyzer.simplify(side.min)
        low, high = needed.min_value, needed.max_value
        is_point = self.analyzer.can_prove_equal(side.extent, 1)
        match first:
            case Var() if first in self.axes:
                if is_point:
                    return first, IntervalSet(low, high)
                # v .. v + n - 1 holds low .. high for the v from low to high, and a few before
                return None
            case Mul(a=Var() as var, b=factor) if var in self.axes and self._is_constant(factor):
                if is_point or self._fills(side.extent, factor):
                    return var, IntervalSet(op.floordiv(low, factor), op.floordiv(high, factor))
            case FloorDiv(a=Var() as var, b=factor) if var in self.axes and is_point:
                if self._is_constant(factor):
                    last = op.subtract(op.add(op.multiply(high, factor), factor), 1)
                    return var, IntervalSet(op.multiply(low, factor), last)
            case FloorMod(a=Var() as var) if var in self.axes and is_point:
                return var, None
        return None

    def _fills(self, extent: PrimExpr, factor: PrimExpr) -> bool:
        """Whether neighbouring values leave no gap."""
        return self.analyzer.can_prove(op.greater_equal(extent, factor))

    def _is_constant(self, factor: PrimExpr) -> bool:
        return not uses_var(factor, self.axes) and self.analyzer.can_prove(op.greater(factor, 0))

    def _solve_affine(
        self, region: BufferRegion, box: Box, sides: Sequence[int], solved: dict[Var, IntervalSet]
    ) -> None:
        """Invert the sides that have several variables together; what has no inverse stays open."""
        starts = [region.region[i].min for i in sides]
        domain = {
            var: axis.dom
            for var, axis in self.axes.items()
            if axis.dom is not None and uses_var(reduce(op.add, starts), {var: None})
        }
        if not domain or any(
            [not self.analyzer.can_prove_equal(region.region[i].extent, 1) for i in sides]
        ):
            return
        found = detect_iter_map(starts, domain, True, "bijective", False)
        if not found.indices:
            return
        outputs = [Var(f"o{i}", start.dtype) for i, start in enumerate(starts)]
        inverse = inverse_affine_iter_map(found.indices, outputs)
        spans = {
            output: self._within(box[i], region.buffer.shape[i])
            for output, i in zip(outputs, sides, strict=True)
        }
        for var, value in inverse.items():
            solved[var] = self._both(solved.get(var), self.analyzer.int_set(value, spans))

    def domain(self, axis: IterVar) -> Domain:
        """What a variable runs over: what is needed, or all of its own domain."""
        assert axis.dom is not None
        analyzer = self.analyzer
        own: Span = (axis.dom.min, op.subtract(op.add(axis.dom.min, axis.dom.extent), 1))
        span = self.spans.get(axis.var)
        if span is None or axis.iter_type != IterVar.DataPar:
            return Domain(axis.dom.min, axis.dom.extent, None)
        if not span.has_lower_bound() or not span.has_upper_bound():
            return Domain(axis.dom.min, axis.dom.extent, None)
        low, high = analyzer.simplify(span.min_value), analyzer.simplify(span.max_value)
        low = op.cast(low, axis.dom.min.dtype)
        high = op.cast(high, axis.dom.min.dtype)
        above = analyzer.can_prove(op.greater_equal(low, own[0]))
        below = analyzer.can_prove(op.less_equal(high, own[1]))
        if not (above and below):
            covers_low = analyzer.can_prove(op.less_equal(low, own[0]))
            covers_high = analyzer.can_prove(op.less_equal(own[1], high))
            if covers_low and covers_high:
                return Domain(axis.dom.min, axis.dom.extent, None)
        extent = analyzer.simplify(op.add(op.subtract(high, low), 1))
        return Domain(low, extent, None if above and below else own)
