"""A layout of a buffer in which loops would read it element after element.

for i, j in grid(2, 32): A[j % 4 * 2 + i]    ->    x -> [x % 2, x // 2]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tvm.arith import Analyzer, IterSplitExpr, IterSumExpr, detect_iter_map
from tvm.ir.expr import PrimExpr
from tvm.tir import op
from tvm.tir.buffer import Buffer
from tvm.tir.expr import IntImm, Range, Var, const
from tvm.tir.index_map import IndexMap
from tvm.tir.stmt import For


class _Part(NamedTuple):
    """A part of an index: ``source // lower_factor % extent``."""

    source: Var
    lower_factor: int
    extent: int


def suggest_index_map(
    buffer: Buffer, indices: Sequence[PrimExpr], loops: Sequence[For], predicate: PrimExpr
) -> IndexMap | None:
    """A layout of a buffer that has its elements in the order of the loops that access it.

    Parameters
    ----------
    buffer : Buffer
    indices : list of PrimExpr
        Where it is accessed.
    loops : list of For
        The loops around, from the outside in.
    predicate : PrimExpr
        When it is accessed.

    Returns
    -------
    IndexMap or None
        None if the indices are not made of parts of the loops.
    """
    domains = {loop.loop_var: Range.from_min_extent(loop.min, loop.extent) for loop in loops}
    parts = _parts_of(_flattened(buffer, indices), domains, predicate)
    if not parts:
        return None
    depth = {loop.loop_var: position for position, loop in enumerate(loops)}
    order = sorted(
        range(len(parts)), key=lambda at: (depth[parts[at].source], -parts[at].lower_factor)
    )
    initial = [Var(f"i{axis}", extent.dtype) for axis, extent in enumerate(buffer.shape)]
    rest, digits = _flattened(buffer, initial), list[PrimExpr]()
    analyzer = Analyzer()
    for var, extent in zip(initial, buffer.shape, strict=True):
        analyzer.bind(var, Range.from_min_extent(const(0, extent.dtype), extent))
    for part in reversed(parts):
        rest = analyzer.simplify(rest)
        digits.insert(0, analyzer.simplify(op.floormod(rest, part.extent)))
        rest = op.floordiv(rest, part.extent)
    return IndexMap(tuple(initial), tuple([digits[at] for at in order]))


def _flattened(buffer: Buffer, indices: Sequence[PrimExpr]) -> PrimExpr:
    """The position among the elements in order."""
    position: PrimExpr = const(0, buffer.shape[0].dtype)
    for extent, index in zip(buffer.shape, indices, strict=True):
        position = op.add(op.multiply(position, extent), index)
    return position


def _parts_of(index: PrimExpr, domains: dict[Var, Range], predicate: PrimExpr) -> list[_Part]:
    """The parts of loops that an index is a sum of, outermost first; none if it is no such sum."""
    found = detect_iter_map([index], domains, predicate, "surjective")
    if not found.indices:
        return []
    parts: list[_Part] = []
    return parts if _collect(found.indices[0], parts) else []


def _collect(sum_of_parts: IterSumExpr, parts: list[_Part]) -> bool:
    for split in sum_of_parts.args:
        source = split.source.source
        if isinstance(source, IterSumExpr):
            if not _collect(source, parts):
                return False
            continue
        if not isinstance(source, Var) or not _is_constant(split):
            return False
        parts.append(_Part(source, int(split.lower_factor), int(split.extent)))  # type: ignore[call-overload]
    return True


def _is_constant(split: IterSplitExpr) -> bool:
    return isinstance(split.lower_factor, IntImm) and isinstance(split.extent, IntImm)
