"""Reductions: their axes' domains are facts about what is combined, and results that nothing needs leave.

sum(select(k < 12, k, 0), k in 0..9)      ->    sum(k, k in 0..9)
(sum, product)((A[k], B[k]), k)[0]        ->    sum(A[k], k)
sum(A[3], no axis)                        ->    A[3]
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tvm.tir import expr as tir
from tvm.tir.intrinsics import effect_of
from tvm.tir.math_op import if_then_else
from tvm.tir.stmt_functor import free_vars, post_order_visit

if TYPE_CHECKING:
    from .analyzer import Analyzer


def simplify_reduction(
    analyzer: Analyzer, reduction: tir.Reduce, visit: Callable[[Any], Any]
) -> Any:
    """The simple form of an interned reduction, whose operands `visit` simplifies."""
    for iv in reduction.axis:
        if iv.dom is not None and analyzer.facts.bound_of(iv.var) is None:
            analyzer.bind(iv.var, iv.dom)
    visited = reduction.map_children(visit)
    if not visited.axis:
        return visit(analyzer.interner.intern(_of_no_axis(visited)))
    return analyzer.interner.intern(_without_unused(visited))


def _of_no_axis(reduction: tir.Reduce) -> Any:
    """The one combination that is left: of the start with the source, where the condition holds."""
    index, combiner = reduction.value_index, reduction.combiner
    start = (reduction.init or combiner.identity_element)[index]
    value = reduction.source[index]
    if reduction.init:
        value = combiner(reduction.init, reduction.source)[index]
    condition = reduction.condition
    if type(condition) is tir.IntImm:
        return value if condition.value else start
    return if_then_else(condition, value, start)


def _without_unused(reduction: tir.Reduce) -> tir.Reduce:
    """The reduction with those of its parallel results only on which the asked one depends."""
    needed = _needed(reduction)
    if len(needed) == len(reduction.source):
        return reduction
    combiner = reduction.combiner
    picked: list[Any] = [
        tuple([values[i] for i in needed])
        for values in (combiner.lhs, combiner.rhs, combiner.result, combiner.identity_element)
    ]
    return tir.Reduce(
        tir.CommReducer(*picked),
        [reduction.source[i] for i in needed],
        reduction.axis,
        reduction.condition,
        needed.index(reduction.value_index),
        [reduction.init[i] for i in needed] if reduction.init else None,
    )


def _needed(reduction: tir.Reduce) -> list[int]:
    """The results that the asked one is made of, and those whose sources have effects."""
    combiner = reduction.combiner
    pending = [reduction.value_index]
    pending += [i for i, source in enumerate(reduction.source) if _has_effects(source)]
    found: set[int] = set()
    while pending:
        index = pending.pop()
        if index in found:
            continue
        found.add(index)
        used = set(free_vars(combiner.result[index]))
        pairs = zip(combiner.lhs, combiner.rhs, strict=True)
        pending += [i for i, (a, b) in enumerate(pairs) if a in used or b in used]
    return sorted(found)


def _has_effects(expr: Any) -> bool:
    """Whether evaluating the expression does more than to give its value."""
    calls: list[tir.Call] = []
    post_order_visit(expr, lambda node: calls.append(node) if type(node) is tir.Call else None)
    return any([effect_of(call.op) > tir.CallEffectKind.ReadState for call in calls])
