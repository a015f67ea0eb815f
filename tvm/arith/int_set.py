"""Questions about sets that need no analyzer at hand: sets of expressions, unions, regions that loops touch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tvm.ir.expr import PrimExpr
from tvm.tir import expr as tir
from tvm.tir import op
from tvm.tir.constants import is_const
from tvm.tir.stmt_functor import free_vars

from .analyzer import Analyzer
from .interval import (
    NOTHING,
    IntervalSet,
    IntSet,
    PresburgerSet,
    as_interval,
    evaluate_range,
    evaluate_set,
    neg_inf,
    pos_inf,
    union,
)
from .iter_affine_map import detect_iter_map

__all__ = [
    "IntSet",
    "IntervalSet",
    "PresburgerSet",
    "estimate_region_lower_bound",
    "estimate_region_strict_bound",
    "estimate_region_upper_bound",
    "eval_set",
    "neg_inf",
    "pos_inf",
    "union_lower_bound",
]


def eval_set(expr: PrimExpr, dom_map: Mapping[Any, Any]) -> IntervalSet:
    """The interval of the expression's values while the variables run over their sets."""
    return evaluate_set(Analyzer(), expr, dom_map)


def union_lower_bound(sets: Sequence[IntSet]) -> IntervalSet:
    """An interval inside the union of the sets: grown from the first one as long as they touch."""
    analyzer = Analyzer()
    parts = [as_interval(part) for part in sets if not part.is_nothing()]
    if not parts:
        return NOTHING
    total, *rest = parts
    for part in rest:
        touching = _reaches(analyzer, total, part) and _reaches(analyzer, part, total)
        if touching:
            total = union(analyzer, total, part)
    return total


def _reaches(analyzer: Analyzer, a: IntervalSet, b: IntervalSet) -> bool:
    """Whether no integer lies between the end of `a` and the start of `b`."""
    if not a.has_upper_bound() or not b.has_lower_bound():
        return True
    return analyzer.can_prove(op.less_equal(b.min_value, op.add(a.max_value, 1)))


def estimate_region_upper_bound(
    region: Sequence[tir.Range], var_dom: Mapping[tir.Var, tir.Range], predicate: Any = True
) -> list[IntervalSet]:
    """An interval for each dimension that holds all that the region touches over the domain."""
    if (exact := estimate_region_strict_bound(region, var_dom, predicate)) is not None:
        return exact
    analyzer = Analyzer()
    intervals = []
    with analyzer.constraint_scope(predicate):
        for domain in region:
            alone = estimate_region_strict_bound([domain], var_dom, predicate)
            intervals += alone or [evaluate_range(analyzer, domain, var_dom)]
    return intervals


def estimate_region_strict_bound(
    region: Sequence[tir.Range], var_dom: Mapping[tir.Var, tir.Range], predicate: Any = True
) -> list[IntervalSet] | None:
    """Exactly what the region touches over the domain, or None if it is no box that we can find."""
    if any([_moves(domain.extent, var_dom) for domain in region]):
        return None
    starts = [domain.min for domain in region]
    found = detect_iter_map(starts, var_dom, predicate)
    is_padded = not is_const(found.padding_predicate, 0)
    if len(found.indices) != len(region) or is_padded:
        return None
    analyzer = Analyzer()
    intervals: list[IntervalSet] = []
    for total, domain in zip(found.indices, region, strict=True):
        first = total.base
        last = op.add(total.base, op.subtract(domain.extent, 1))
        for split in total.args:
            downwards = analyzer.can_prove(op.less(split.scale, 0))
            step = op.negative(split.scale) if downwards else split.scale
            # steps no longer than what each of them touches leave no gap
            if not analyzer.can_prove(op.less_equal(step, domain.extent)):
                return None
            reach = op.multiply(op.subtract(split.extent, 1), split.scale)
            if downwards:
                first = op.add(first, reach)
            else:
                last = op.add(last, reach)
        intervals.append(IntervalSet(analyzer.simplify(first), analyzer.simplify(last)))
    return intervals


def _moves(expr: PrimExpr, var_dom: Mapping[tir.Var, tir.Range]) -> bool:
    """Whether a value depends on the variables of the domain."""
    if isinstance(expr, tir.IntImm):
        return False
    return any([var in var_dom for var in free_vars(Analyzer().simplify(expr))])


# what is touched for certain is known only where it is known exactly
estimate_region_lower_bound = estimate_region_strict_bound
