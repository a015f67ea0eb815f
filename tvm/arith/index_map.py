"""Ranges and inverses of index maps, by writing their indices as sums of iterators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm.error import TVMError
from tvm.ir import extension
from tvm.ir.expr import PrimExpr
from tvm.ir.structural import structural_equal
from tvm.tir import op
from tvm.tir.expr import IntImm, Range, Var, int_imm
from tvm.tir.stmt_functor import substitute

from .analyzer import Analyzer
from .int_set import IntervalSet
from .iter_affine_map import detect_iter_map, inverse_affine_iter_map
from .iter_map import IterMapLevel, normalize_iter_map_to_expr


class NotInvertibleError(TVMError, ValueError):
    """An index map has no inverse, or none that can be found."""


def mapped_ranges(index_map: Any, ranges: Sequence[Range]) -> list[Range]:
    """What the new indices cover, when the old ones cover some ranges.

    Parameters
    ----------
    index_map : IndexMap
    ranges : sequence of Range
    """
    iterators = dict(zip(index_map.initial_indices, ranges, strict=True))
    found = detect_iter_map(index_map.final_indices, iterators, True, IterMapLevel.NoCheck, False)
    analyzer = Analyzer()
    if found.indices:
        return [
            Range.from_min_extent(total.base, analyzer.simplify(_extent(total)))
            for total in found.indices
        ]
    domains = {
        var: IntervalSet(r.min, op.subtract(op.add(r.min, r.extent), 1))
        for var, r in iterators.items()
    }
    covered = [analyzer.int_set(index, domains) for index in index_map.final_indices]
    return [
        Range.from_min_extent(
            analyzer.simplify(s.min_value),
            analyzer.simplify(op.add(op.subtract(s.max_value, s.min_value), 1)),
        )
        for s in covered
    ]


def _extent(total: Any) -> PrimExpr:
    """The terms do not overlap: the sum reaches as far as the largest of them."""
    extent: PrimExpr | None = None
    for term in total.args:
        reach = op.multiply(term.extent, term.scale)
        extent = reach if extent is None else op.maximum(extent, reach)
    return int_imm(total.dtype, 1) if extent is None else extent


def inverted(
    index_map: Any, ranges: Sequence[Range], bijective: bool
) -> tuple[list[Var], list[PrimExpr], PrimExpr]:
    """The way back: new variables, the old indices in terms of them, where they are padding.

    Parameters
    ----------
    index_map : IndexMap
    ranges : sequence of Range
        What the old indices cover.
    bijective : bool
        Whether each new index has to come from an old one.

    Raises
    ------
    NotInvertibleError
    """
    iterators = dict(zip(index_map.initial_indices, ranges, strict=True))
    level = IterMapLevel.Bijective if bijective else IterMapLevel.NoCheck
    found = detect_iter_map(index_map.final_indices, iterators, True, level, False)
    if len(found.indices) != len(index_map.final_indices):
        reason = "; ".join([str(error) for error in found.errors])
        hint = "; hint: non_surjective_inverse allows padding" if bijective else ""
        raise NotInvertibleError(
            f"an inverse requires sums of parts of the indices, got "
            f"{list(index_map.final_indices)}: {reason}{hint}"
        )
    new = [Var(f"axis{i}", index.dtype) for i, index in enumerate(index_map.final_indices)]
    back = inverse_affine_iter_map(found.indices, new)
    analyzer = Analyzer()
    old = [analyzer.simplify(_old(var, r, back)) for var, r in iterators.items()]
    if not bijective:
        _check_way_back(index_map, iterators, new, old)
    padding = substitute(normalize_iter_map_to_expr(found.padding_predicate), back)
    inner = Analyzer()
    for var, covered in zip(new, mapped_ranges(index_map, ranges), strict=True):
        inner.bind(var, covered)
    return new, old, _simplified(padding, inner)


def _check_way_back(
    index_map: Any, iterators: dict[Var, Range], new: list[Var], old: list[PrimExpr]
) -> None:
    """Reject a map that brings two elements to one place: there is no way back to both."""
    analyzer = Analyzer()
    for var, covered in iterators.items():
        analyzer.bind(var, covered)
    forward = dict(zip(new, index_map.final_indices, strict=True))
    for var, index in zip(iterators, old, strict=True):
        covered = iterators[var]
        is_fixed = type(covered.extent) is IntImm and covered.extent.value == 1
        if not is_fixed and not analyzer.can_prove_equal(substitute(index, forward), var):
            raise NotInvertibleError(
                f"an inverse requires a place of its own for each element, got "
                f"{list(index_map.final_indices)}, which do not tell {var}"
            )


def _simplified(expr: PrimExpr, analyzer: Analyzer) -> PrimExpr:
    """Nested quotients need several rounds."""
    for _ in range(10):
        simple = analyzer.simplify(expr)
        if structural_equal(simple, expr):
            return simple
        expr = simple
    return expr


def _old(var: Var, covered: Range, back: dict[Var, PrimExpr]) -> PrimExpr:
    found = back.get(var)
    if found is not None:
        return found
    if type(covered.extent) is IntImm and covered.extent.value == 1:
        return covered.min
    raise NotInvertibleError(f"an inverse requires every index to be used, {var} is not")


extension.mapped_ranges.provide(mapped_ranges)
extension.inverted_index_map.provide(inverted)
