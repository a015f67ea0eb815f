"""Detection of maps from iterators to indices that are made of splits and fusions.

i in [0, 8), j in [0, 16)      [i*16 + j]              ->    one fused iterator of extent 128
k in [0, 128)                  [k // 16, k % 16]       ->    two splits of k
k in [0, 128)                  [k // 16, k // 8]       ->    no: the splits overlap
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tvm.ir.expr import PrimExpr
from tvm.support import deep
from tvm.tir import expr as tir
from tvm.tir import op
from tvm.tir.constants import is_const

from .analyzer import Analyzer
from .iter_map import (
    IterMapExpr,
    IterMapLevel,
    IterMapResult,
    IterMark,
    IterSplitExpr,
    IterSumExpr,
    as_level,
    normalize_iter_map_to_expr,
)
from .iter_map_builder import IterMapBuilder, zero_of
from .iter_padding import NotAffineError
from .pattern import conjuncts, uses

__all__ = [
    "IterMapExpr",
    "IterMapLevel",
    "IterMapResult",
    "IterMark",
    "IterSplitExpr",
    "IterSumExpr",
    "detect_iter_map",
    "inverse_affine_iter_map",
    "iter_map_simplify",
    "normalize_iter_map_to_expr",
    "normalize_to_iter_sum",
    "subspace_divide",
]


@deep
def detect_iter_map(
    indices: Sequence[Any],
    input_iters: Mapping[tir.Var, tir.Range],
    predicate: Any = True,
    check_level: Any = IterMapLevel.Surjective,
    simplify_trivial_iterators: bool = True,
) -> IterMapResult:
    """Each index as a sum of splits and fusions of the iterators.

    Parameters
    ----------
    indices : list of PrimExpr
    input_iters : dict
        The range of each iterator.
    predicate : PrimExpr
        Bounds of iterators and of their sums.
    check_level : IterMapLevel or str
        What the map must be. Where divisions do not come out even, iterators are made longer, unless the map
        must be bijective.
    simplify_trivial_iterators : bool
        Whether an iterator of one value is that value.

    Returns
    -------
    IterMapResult
        With no `indices`, and the reason in `errors`, if there is no such form or the map is not what
        `check_level` asks for; `padding_predicate` holds where iterators stand on what was added.
    """
    level = as_level(check_level)
    never = tir.const(False, "bool")
    pads = level is not IterMapLevel.Bijective
    # of an index map each index counts, also one of a single value
    pads_short = level is IterMapLevel.NoCheck and not simplify_trivial_iterators
    builder = IterMapBuilder(input_iters, Analyzer(), pads, simplify_trivial_iterators, pads_short)
    try:
        builder.limit(tir.as_expr(predicate))
        sums = _read(builder, [tir.as_expr(index) for index in indices])
        if level is not IterMapLevel.NoCheck:
            builder.check(sums, level)
    except NotAffineError as reason:
        return IterMapResult((), (str(reason),), never)
    return IterMapResult(tuple(sums), (), builder.paddings.predicate())


def _read(builder: IterMapBuilder, indices: Sequence[PrimExpr]) -> list[IterSumExpr]:
    while True:
        builder.start_reading()
        sums = [_index_sum(builder, index) for index in indices]
        if builder.paddings.is_settled():
            return sums


def _index_sum(builder: IterMapBuilder, index: PrimExpr) -> IterSumExpr:
    try:
        return builder.fuse(builder.visit(index))
    except NotAffineError:
        simple = builder.analyzer.simplify(index)
        if simple is index:
            raise
        return builder.fuse(builder.visit(simple))


@deep
def normalize_to_iter_sum(index: Any, input_iters: Mapping[tir.Var, tir.Range]) -> IterSumExpr:
    """The index as a sum of splits, largest scale first; what is no split stays in the base."""
    analyzer = Analyzer()
    builder = IterMapBuilder(input_iters, analyzer)
    total = IterSumExpr((), zero_of(tir.as_expr(index)))
    for term in _terms(analyzer.simplify(tir.as_expr(index))):
        try:
            part = builder.visit(term)
        except NotAffineError:
            part = IterSumExpr((), term)
        total = builder.add(total, part, 1)
    return IterSumExpr(builder.sorted_args(total), total.base)


def _terms(expr: Any) -> list[PrimExpr]:
    if isinstance(expr, tir.Add):
        return [*_terms(expr.a), *_terms(expr.b)]
    if isinstance(expr, tir.Sub):
        return [*_terms(expr.a), *[op.negative(term) for term in _terms(expr.b)]]
    return [expr]


@deep
def iter_map_simplify(
    indices: Sequence[Any],
    input_iters: Mapping[tir.Var, tir.Range],
    predicate: Any = True,
    check_level: Any = IterMapLevel.Surjective,
    simplify_trivial_iterators: bool = True,
) -> tuple[PrimExpr, ...]:
    """The indices in the form that their iteration map gives; unchanged if they have none."""
    # a predicate shortens iterators, and those of one value may vanish by that: where they are to be
    # kept, the form without the predicate comes first, which is one with it too
    conditions = [predicate] if is_const(tir.as_expr(predicate), 1) else [predicate, True]
    if not simplify_trivial_iterators:
        conditions.reverse()
    for condition in conditions:
        found = detect_iter_map(
            indices, input_iters, condition, check_level, simplify_trivial_iterators
        )
        if found.indices:
            break
    if found.indices:
        return tuple([normalize_iter_map_to_expr(total) for total in found.indices])
    analyzer = Analyzer()
    for var, domain in input_iters.items():
        analyzer.bind(var, domain, True)
    return tuple([analyzer.simplify(tir.as_expr(index)) for index in indices])


@deep
def inverse_affine_iter_map(
    iter_map: Sequence[IterSumExpr], outputs: Sequence[PrimExpr]
) -> dict[tir.Var, PrimExpr]:
    """The iterators as expressions of the outputs of a bijective map."""
    values: dict[int, PrimExpr] = {}
    marks: dict[int, IterMark] = {}
    for total, output in zip(iter_map, outputs, strict=True):
        _push_back(total, op.subtract(output, total.base), values, marks)
    found: dict[tir.Var, PrimExpr] = {}
    analyzer = Analyzer()
    while marks:
        # a mark's value is complete when all marks that are fused from it have been taken apart
        mark = max(marks.values(), key=_depth)
        value = analyzer.simplify(values[id(mark)])
        del marks[id(mark)]
        if isinstance(mark.source, IterSumExpr):
            inner = op.subtract(value, mark.source.base)
            _push_back(mark.source, inner, values, marks)
        elif isinstance(mark.source, tir.Var):
            found[mark.source] = value
        elif isinstance(mark.source, tir.Sub) and isinstance(mark.source.a, tir.Var):
            found[mark.source.a] = analyzer.simplify(op.add(value, mark.source.b))
    return found


def _depth(mark: IterMark) -> int:
    """How many fusions are inside one another."""
    if not isinstance(mark.source, IterSumExpr):
        return 0
    return 1 + max([_depth(split.source) for split in mark.source.args])


def _push_back(
    total: IterSumExpr, output: PrimExpr, values: dict[int, PrimExpr], marks: dict[int, IterMark]
) -> None:
    """Give every split of a compact sum its part of the sum's value."""
    for position, split in enumerate(total.args):
        part = op.floordiv(output, split.scale)
        if position > 0:
            part = op.floormod(part, split.extent)
        part = op.multiply(part, split.lower_factor)
        key = id(split.source)
        if key in marks:
            part = op.add(values[key], part)
        marks[key] = split.source
        values[key] = part


@deep
def subspace_divide(
    bindings: Sequence[Any],
    input_iters: Mapping[tir.Var, tir.Range],
    sub_iters: Sequence[tir.Var],
    predicate: Any = True,
    check_level: Any = IterMapLevel.Surjective,
    simplify_trivial_iterators: bool = True,
) -> list[list[Any]]:
    """Each binding as `outer * extent of inner + inner`, with inner made of the sub-iterators alone.

    Returns
    -------
    list
        A pair `[outer, inner]` of sums for each binding and a pair of predicates; empty if some
        binding cannot be divided.
    """
    outer: list[PrimExpr] = []
    inner: list[PrimExpr] = []
    others = [var for var in input_iters if not uses(var, sub_iters)]
    for condition in conjuncts(Analyzer().simplify(tir.as_expr(predicate))):
        if not uses(condition, sub_iters):
            outer.append(condition)
        elif not uses(condition, others):
            inner.append(condition)
        else:
            return []
    found = detect_iter_map(
        bindings, input_iters, predicate, check_level, simplify_trivial_iterators
    )
    if len(found.indices) != len(bindings) or not is_const(found.padding_predicate, 0):
        return []
    pairs: list[list[Any]] = []
    for total in found.indices:
        pair = _divide_sum(total, sub_iters)
        if pair is None:
            return []
        pairs.append(pair)
    yes = tir.const(True, "bool")
    return [*pairs, [op.all(yes, *outer), op.all(yes, *inner)]]


def _divide_sum(total: IterSumExpr, sub_iters: Sequence[tir.Var]) -> list[IterSumExpr] | None:
    parts = list(total.args)
    unit: PrimExpr = tir.const(1, total.dtype)
    if len(parts) == 1 and isinstance(source := parts[0].source.source, IterSumExpr):
        whole = Analyzer().can_prove_equal(parts[0].extent, parts[0].source.extent)
        if whole and is_const(source.base, 0):
            unit, parts = parts[0].scale, list(source.args)
    inner: list[IterSplitExpr] = []
    while parts and uses(normalize_iter_map_to_expr(parts[-1]), sub_iters):
        inner.insert(0, parts.pop())
    if any([uses(normalize_iter_map_to_expr(part), sub_iters) for part in parts]):
        return None
    analyzer = Analyzer()
    size: PrimExpr = tir.const(1, total.dtype)
    if inner:
        size = analyzer.simplify(op.multiply(inner[0].scale, inner[0].extent))
    outer = [
        part.replace(scale=analyzer.simplify(op.floordiv(op.multiply(part.scale, unit), size)))
        for part in parts
    ]
    return [IterSumExpr(outer, total.base), IterSumExpr(inner, zero_of(total))]
