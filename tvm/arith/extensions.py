"""Proofs and rewrites that cost more, done where ``Analyzer.enabled_extensions`` or the strength of a proof asks.

a and b                       ->    a and (b where a holds)
x*y >= x + y                  ->    true        where x >= 2 and y >= 2
x*y < (x + y)*8               ->    true        where 0 < x <= 8 and 0 < y
i*m + j < n*m                 ->    true        where i < n and j < m
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from tvm.ir.expr import PrimExpr
from tvm.ir.visitor import Rewriter
from tvm.tir import expr as tir
from tvm.tir import op
from tvm.tir.scalable import is_vscale

from .const_int_bound import MOST_VSCALE, NEG_INF, POS_INF, ConstIntBound
from .interval import IntervalSet, evaluate_set

if TYPE_CHECKING:
    from .analyzer import Analyzer

COMPARISONS = (tir.LT, tir.LE, tir.GT, tir.GE)


class BranchSimplifier(Rewriter):
    """Simplifies each operand of ``and`` and ``or`` where the other one does not decide."""

    def __init__(self, analyzer: Analyzer) -> None:
        self.analyzer = analyzer

    def visit_and(self, e: tir.And) -> PrimExpr:
        return self._branches(e, lambda operand: operand)

    def visit_or(self, e: tir.Or) -> PrimExpr:
        return self._branches(e, op.logical_not)

    def _branches(self, e: tir.And | tir.Or, known: Callable[[PrimExpr], PrimExpr]) -> PrimExpr:
        with self.analyzer.constraint_scope(known(e.a)):
            b = self.analyzer.plainly_simplified(self.visit(e.b))
        with self.analyzer.constraint_scope(known(b)):
            a = self.analyzer.plainly_simplified(self.visit(e.a))
        return self.analyzer.plainly_simplified(type(e)(a, b))


class ProductComparer(Rewriter):
    """Decides comparisons of a product with a sum of the same factors."""

    def __init__(self, analyzer: Analyzer) -> None:
        self.analyzer = analyzer

    def visit_lt(self, e: tir.LT) -> PrimExpr:
        return self._decided(e, e.a, e.b, True)

    def visit_gt(self, e: tir.GT) -> PrimExpr:
        return self._decided(e, e.b, e.a, True)

    def visit_le(self, e: tir.LE) -> PrimExpr:
        return self._decided(e, e.a, e.b, False)

    def visit_ge(self, e: tir.GE) -> PrimExpr:
        return self._decided(e, e.b, e.a, False)

    def _decided(self, e: PrimExpr, small: PrimExpr, large: PrimExpr, strict: bool) -> PrimExpr:
        if self._holds(small, large, strict) or self._is_below(small, large, strict):
            return tir.const(True, "bool")
        if self._holds(large, small, not strict) or self._is_below(large, small, not strict):
            return tir.const(False, "bool")
        return e

    def _holds(self, total: PrimExpr, product: PrimExpr, strict: bool) -> bool:
        """(x + y)*c < x*y*d follows from (1/x + 1/y)*c < d, for positive x and y."""
        found = self._compared(total, product)
        if found is None:
            return False
        c, d, bounds = found
        most = sum([Fraction(1, bound.min_value) for bound in bounds]) * c
        return most < d if strict else most <= d

    def _is_below(self, product: PrimExpr, total: PrimExpr, strict: bool) -> bool:
        """x*y*d < (x + y)*c follows from d < (1/x + 1/y)*c, for positive x and y."""
        found = self._compared(total, product)
        if found is None:
            return False
        c, d, bounds = found
        highs = [bound.max_value for bound in bounds if bound.max_value < POS_INF]
        least = sum([Fraction(1, high) for high in highs]) * c
        return d < least if strict and len(highs) == len(bounds) else bool(highs) and d <= least

    def _compared(
        self, total: PrimExpr, product: PrimExpr
    ) -> tuple[int, int, list[ConstIntBound]] | None:
        """c and d of (x + y)*c and x*y*d, and the bounds of x and y if they are positive."""
        left, right = _scaled(total), _scaled(product)
        if not isinstance(left[0], tir.Add) or not isinstance(right[0], tir.Mul):
            return None
        x, y = right[0].a, right[0].b
        equal = self.analyzer.can_prove_equal
        if not equal(left[0], op.add(x, y)) or left[1] <= 0 or right[1] <= 0:
            return None
        bounds = [self.analyzer.const_int_bound(factor) for factor in (x, y)]
        is_positive = min([bound.min_value for bound in bounds]) > 0
        return (left[1], right[1], bounds) if is_positive else None


def _scaled(e: PrimExpr) -> tuple[PrimExpr, int]:
    """An expression as another one and a factor."""
    if isinstance(e, tir.Mul) and isinstance(e.b, tir.IntImm):
        return e.a, e.b.value
    return e, 1


# ---- scalable vectors


class _VscaleReplacer(Rewriter):
    """Puts a number in the place of ``vscale()``."""

    def __init__(self, value: int) -> None:
        self.value = value

    def visit_call(self, call: tir.Call) -> PrimExpr:
        if is_vscale(call):
            return tir.const(self.value, call.dtype)
        return self.rewrite_children(call)


def holds_for_each_vscale(analyzer: Analyzer, condition: PrimExpr) -> bool:
    """Whether a condition holds for each power of two that ``vscale()`` may be."""
    value = 1
    while value <= MOST_VSCALE:
        case = _VscaleReplacer(value).visit(condition)
        if case is condition or not analyzer.can_prove(case):
            return False
        value *= 2
    return True


# ---- symbolic bounds


def holds_by_symbolic_bounds(
    analyzer: Analyzer, condition: PrimExpr, ranges: dict[tir.Var, tir.Range]
) -> bool:
    """Whether a condition follows from the ends of the variables' ranges, taken as expressions."""
    if isinstance(condition, tir.And):
        sides = (condition.a, condition.b)
        return all([holds_by_symbolic_bounds(analyzer, side, ranges) for side in sides])
    if not isinstance(condition, COMPARISONS) or not condition.a.dtype.is_int:
        return False
    is_upper = isinstance(condition, (tir.LT, tir.LE))
    small, large = (condition.a, condition.b) if is_upper else (condition.b, condition.a)
    excess: Any = analyzer.canonical_simplify(op.subtract(large, small))
    domains = {
        var: IntervalSet(domain.min, op.subtract(op.add(domain.min, domain.extent), 1))
        for var, domain in ranges.items()
    }
    interval = evaluate_set(analyzer, excess, domains)
    if not interval.has_lower_bound():
        return False
    least = analyzer.const_int_bound(analyzer.canonical_simplify(interval.min_value)).min_value
    wanted = 1 if isinstance(condition, (tir.LT, tir.GT)) else 0
    return NEG_INF < least >= wanted
