"""Questions about sets that need no analyzer at hand: sets of expressions, unions, regions of buffers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tvm.ir.expr import PrimExpr
from tvm.tir import op

from .analyzer import Analyzer
from .int_set import NOTHING, IntervalSet, IntSet, as_interval, evaluate_set, union


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
