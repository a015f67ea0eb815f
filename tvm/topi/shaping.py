"""Moving elements: reshape, transpose, expand_dims, squeeze, flip."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from tvm import te, tir
from tvm.error import RuntimeValueError
from tvm.ir import structural_equal

from . import tag
from .utils import dims, is_dynamic_shape, prod, ravel_index, real_axis


def expand_dims(a: te.Tensor, axis: int, num_newaxis: int = 1) -> te.Tensor:
    """Insert axes of extent 1."""
    at = axis + len(a.shape) + 1 if axis < 0 else axis
    shape = (*a.shape[:at], *[1] * num_newaxis, *a.shape[at:])
    return te.compute(
        shape,
        lambda *i: a(*i[:at], *i[at + num_newaxis :]),
        name="T_expand_dims",
        tag=tag.BROADCAST,
    )


def expand_like(a: te.Tensor, shape_like: te.Tensor, axis: Sequence[int]) -> te.Tensor:
    """Repeat a tensor along axes of another that it lacks.

    Parameters
    ----------
    a : te.Tensor
        The tensor; a vector of one element may fill all axes.
    shape_like : te.Tensor
        The tensor that has the result's shape.
    axis : sequence of int
        The axes of the result along which `a` is repeated.
    """
    rank = len(shape_like.shape)
    new = {real_axis(k, rank) for k in axis}
    one = len(a.shape) == 1 and dims(a.shape) == (1,) and len(new) == rank
    if not one and len(a.shape) + len(new) != rank:
        raise RuntimeValueError(
            f"expand_like requires {rank - len(a.shape)} axes to reach {rank}, got {len(new)}"
        )

    def element(*i: Any) -> Any:
        return a(0) if one else a(*[index for k, index in enumerate(i) if k not in new])

    return te.compute(shape_like.shape, element, name="T_expand_like", tag=tag.BROADCAST)


def squeeze(a: te.Tensor, axis: int | Sequence[int] | None = None) -> te.Tensor:
    """Remove axes of extent 1."""
    extents = dims(a.shape)
    if axis is None:
        gone = [i for i, d in enumerate(extents) if d == 1 and isinstance(d, int)]
    else:
        gone = [real_axis(x, len(extents)) for x in ([axis] if isinstance(axis, int) else axis)]
        long = [i for i in gone if isinstance(extents[i], int) and extents[i] != 1]
        if long:
            raise RuntimeValueError(
                f"squeeze requires axes of extent 1, got {extents} and axis {long[0]}"
            )

    def element(*indices: Any) -> Any:
        kept = iter(indices)
        return a(*[0 if i in gone else next(kept) for i in range(len(extents))])

    shape = [d for i, d in enumerate(a.shape) if i not in gone]
    return te.compute(shape, element, name="T_squeeze", tag=tag.INJECTIVE)


def transpose(a: te.Tensor, axes: Sequence[int] | None = None) -> te.Tensor:
    """Permute the axes."""
    rank = len(a.shape)
    order = [real_axis(x, rank) for x in axes] if axes is not None else list(range(rank))[::-1]
    if sorted(order) != list(range(rank)):
        raise RuntimeValueError(
            f"transpose requires each of {rank} axes once, got {tuple(axes or ())}"
        )
    source = [order.index(i) for i in range(rank)]
    return te.compute(
        [a.shape[x] for x in order],
        lambda *i: a(*[i[k] for k in source]),
        name="T_transpose",
        tag=tag.INJECTIVE,
    )


def flip(a: te.Tensor, axis: int = 0) -> te.Tensor:
    """Turn the order along an axis round."""
    at = real_axis(axis, len(a.shape))
    return te.compute(
        a.shape,
        lambda *i: a(*i[:at], a.shape[at] - 1 - i[at], *i[at + 1 :]),
        name="T_reverse",
        tag=tag.INJECTIVE,
    )


def reshape(a: te.Tensor, newshape: Sequence[Any]) -> te.Tensor:
    """The same elements in another shape.

    Runs of axes of equal product are mapped on their own: splitting 768 into (12, 64) indexes
    with i * 64 + j and no division.
    """
    have, want = dims(a.shape), dims(newshape)
    counts = prod(have), prod(want)
    if all(isinstance(count, int) for count in counts) and counts[0] != counts[1]:
        raise RuntimeValueError(
            f"reshape requires a shape of as many elements as {have}, got {want}"
        )
    runs = _equal_runs(have, want)

    def element(*indices: Any) -> Any:
        at: list[Any] = []
        for (a0, a1), (b0, b1) in runs:
            at += _mapped(indices[b0:b1], want[b0:b1], have[a0:a1])
        return a(*at)

    return te.compute(list(newshape), element, name="T_reshape", tag=tag.INJECTIVE)


def _mapped(indices: Sequence[Any], shape: Sequence[Any], source: Sequence[Any]) -> list[Any]:
    if len(source) == 0:
        return []
    # no element of an empty axis is asked for
    inner = [i for i, d in enumerate(source) if not (isinstance(d, int) and d <= 1)]
    significant = [(i, d) for i, d in zip(indices, shape, strict=True) if d != 1]
    position = ravel_index([i for i, _ in significant], [d for _, d in significant])
    at: list[Any] = [0] * len(source)
    if not inner:
        return at
    rest = position
    for k in reversed(inner[1:]):
        at[k] = tir.indexmod(rest, source[k])
        rest = tir.indexdiv(rest, source[k])
    at[inner[0]] = rest
    return at


def _equal_runs(
    have: Sequence[Any], want: Sequence[Any]
) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Runs of axes of both shapes that hold the same elements."""
    whole = [((0, len(have)), (0, len(want)))]
    if any(isinstance(d, int) and d <= 0 for d in (*have, *want)):
        return whole
    if is_dynamic_shape((*have, *want)):
        return _open_runs(have, want)
    runs = []
    i = j = 0
    while i < len(have) or j < len(want):
        i0, j0 = i, j
        a = b = 1
        if i < len(have):
            a, i = have[i], i + 1
        if j < len(want):
            b, j = want[j], j + 1
        while a != b:
            if a < b and i < len(have):
                a, i = a * have[i], i + 1
            elif b < a and j < len(want):
                b, j = b * want[j], j + 1
            else:
                return whole
        runs.append(((i0, i), (j0, j)))
    return runs


def _open_runs(
    have: Sequence[Any], want: Sequence[Any]
) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """The same where only the run knows some extents: products are equal if their factors are."""
    atoms: list[Any] = []
    counts, wanted = _counts_before(have, atoms), _counts_before(want, atoms)
    cuts = [(0, 0)]
    for i, count in enumerate(counts[1:], 1):
        first = cuts[-1][1] + 1
        if count in wanted[first:]:
            cuts.append((i, wanted.index(count, first)))
    if cuts[-1] != (end := (len(have), len(want))):
        cuts.append(end)
    return [((i, k), (j, m)) for (i, j), (k, m) in pairwise(cuts)]


def _counts_before(shape: Sequence[Any], atoms: list[Any]) -> list[tuple[int, tuple[int, ...]]]:
    """The elements of the axes before each: a number, and which of the atoms it is multiplied by."""
    number: int = 1
    positions: tuple[int, ...] = ()
    found: list[tuple[int, tuple[int, ...]]] = [(number, positions)]
    for extent in shape:
        for factor in _factors(extent):
            if isinstance(factor, int):
                number *= factor
                continue
            position = next(
                (i for i, atom in enumerate(atoms) if structural_equal(atom, factor)), None
            )
            if position is None:
                position = len(atoms)
                atoms.append(factor)
            positions = tuple(sorted((*positions, position)))
        found.append((number, positions))
    return found


def _factors(extent: Any) -> list[Any]:
    if isinstance(extent, tir.Mul):
        return [*_factors(extent.a), *_factors(extent.b)]
    return list(dims((extent,)))


def flatten(data: te.Tensor) -> te.Tensor:
    """Merge all axes but the first."""
    return reshape(data, (data.shape[0], prod(data.shape[1:])))


__all__ = [
    "expand_dims",
    "expand_like",
    "flatten",
    "flip",
    "reshape",
    "squeeze",
    "transpose",
]
