"""Bounds of a variable deduced from a condition on it.

i*4 + j < 64,  j in [0, 4)    ->    i in (-inf, 15]
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tvm.ir.expr import PrimExpr
from tvm.support import deep
from tvm.tir import expr as tir
from tvm.tir import op

from .analyzer import Analyzer
from .interval import (
    EVERYTHING,
    NOTHING,
    IntervalSet,
    as_interval,
    evaluate_set,
    intersect,
    neg_inf,
    pos_inf,
)
from .pattern import conjuncts, not_negative_forms, split_linear, uses


@deep
def deduce_bound(
    var: tir.Var, cond: Any, hint_map: Mapping[Any, Any], relax_map: Mapping[Any, Any]
) -> IntervalSet:
    """The values of a variable for which a condition is sure to hold.

    Parameters
    ----------
    var : Var
        The variable.
    cond : PrimExpr
        A conjunction of comparisons.
    hint_map : Mapping[Var, IntSet]
        What is known of the other variables, to find the signs of factors.
    relax_map : Mapping[Var, IntSet]
        Variables for all of whose values the condition must hold.

    Returns
    -------
    IntervalSet
        Nothing, if none can be deduced.
    """
    analyzer = Analyzer()
    domains = {**relax_map, **hint_map}
    for other, domain in domains.items():
        _tell(analyzer, other, as_interval(domain))
    relaxed = {v: as_interval(domain) for v, domain in relax_map.items()}
    found = EVERYTHING
    for part in conjuncts(tir.as_expr(cond)):
        forms = not_negative_forms(part)
        if not uses(part, [var]) or not forms:
            if not analyzer.can_prove(part):
                return NOTHING
            continue
        for form in forms:
            interval = _solve(analyzer, var, analyzer.simplify(form), relaxed)
            if interval is None:
                return NOTHING
            found = intersect(analyzer, found, interval)
    return found


def _tell(analyzer: Analyzer, var: Any, domain: IntervalSet) -> None:
    if domain.is_single_point():
        return
    if domain.has_lower_bound() and domain.has_upper_bound():
        extent = analyzer.simplify(op.add(op.subtract(domain.max_value, domain.min_value), 1))
        analyzer.bind(var, tir.Range.from_min_extent(domain.min_value, extent), True)


def _solve(
    analyzer: Analyzer, var: tir.Var, form: PrimExpr, relaxed: Mapping[Any, IntervalSet]
) -> IntervalSet | None:
    """The values of var for which `form >= 0`; None if they are no interval we can find."""
    found = split_linear(form, var)
    if found is None:
        isolated = _isolate_division(form, var)
        return None if isolated is None else _solve_division(analyzer, var, isolated, relaxed)
    factor, rest = analyzer.simplify(found[0]), found[1]
    bound = analyzer.const_int_bound(factor)
    if bound.min_value > 0:
        # var >= -rest/factor, rounded up
        low = op.negative(op.floordiv(rest, factor))
        end = evaluate_set(analyzer, low, relaxed).max_value
        return IntervalSet(end, pos_inf()) if end is not pos_inf() else None
    if bound.max_value < 0:
        high = op.floordiv(rest, op.negative(factor))
        end = evaluate_set(analyzer, high, relaxed).min_value
        return IntervalSet(neg_inf(), end) if end is not neg_inf() else None
    return EVERYTHING if analyzer.can_prove(op.greater_equal(form, 0)) else None


def _isolate_division(
    form: PrimExpr, var: tir.Var
) -> tuple[PrimExpr, tir.IntImm, tir.Var, PrimExpr] | None:
    """(x, c, q, f) where the form is f with q in the place of x//c, the only place with var."""
    divisions: list[tir.FloorDiv] = []
    waiting: list[Any] = [form]
    while waiting:
        node = waiting.pop()
        if isinstance(node, tir.FloorDiv) and uses(node, [var]):
            divisions.append(node)
        elif isinstance(node, (tir.Add, tir.Sub, tir.Mul)):
            waiting += [node.a, node.b]
        elif uses(node, [var]):
            return None
    if len(divisions) != 1:
        return None
    [division] = divisions
    if not isinstance(division.b, tir.IntImm) or division.b.value <= 0:
        return None
    quotient = tir.Var("quotient", division.dtype)
    return division.a, division.b, quotient, _replaced(form, division, quotient)


def _replaced(expr: PrimExpr, old: PrimExpr, new: PrimExpr) -> PrimExpr:
    if expr is old:
        return new
    if isinstance(expr, (tir.Add, tir.Sub, tir.Mul)):
        return type(expr)(_replaced(expr.a, old, new), _replaced(expr.b, old, new))
    return expr


def _solve_division(
    analyzer: Analyzer,
    var: tir.Var,
    isolated: tuple[PrimExpr, tir.IntImm, tir.Var, PrimExpr],
    relaxed: Mapping[Any, IntervalSet],
) -> IntervalSet | None:
    dividend, divisor, quotient, form = isolated
    inner = _solve(analyzer, quotient, form, relaxed)
    if inner is None:
        return None
    found = EVERYTHING
    if inner.has_lower_bound():
        # x//c >= q  if and only if  x >= q*c
        least = op.subtract(dividend, op.multiply(inner.min_value, divisor))
        part = _solve(analyzer, var, analyzer.simplify(least), relaxed)
        if part is None:
            return None
        found = intersect(analyzer, found, part)
    if inner.has_upper_bound():
        # x//c <= q  if and only if  x < (q + 1)*c
        first_above = op.multiply(op.add(inner.max_value, 1), divisor)
        most = op.subtract(op.subtract(first_above, dividend), 1)
        part = _solve(analyzer, var, analyzer.simplify(most), relaxed)
        if part is None:
            return None
        found = intersect(analyzer, found, part)
    return found
