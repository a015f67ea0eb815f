"""Joining and parting tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tvm import te, tir
from tvm.error import RuntimeValueError

from . import tag
from .utils import dims, real_axis


def concatenate(a_tuple: Sequence[te.Tensor], axis: int = 0) -> te.Tensor:
    """Join tensors along an axis."""
    if not a_tuple:
        raise RuntimeValueError("concatenate requires at least one tensor")
    at = real_axis(axis, len(a_tuple[0].shape))
    _require_equal_shapes("concatenate", a_tuple, at)
    begins: list[Any] = [0]
    for x in a_tuple:
        begins.append(begins[-1] + dims(x.shape)[at])

    def element(*i: Any) -> Any:
        def part(k: int) -> Any:
            index = i[at] - begins[k] if k else i[at]
            return a_tuple[k](*i[:at], index, *i[at + 1 :])

        return _halved(part, lambda k: i[at] < begins[k], 0, len(a_tuple))

    shape = list(a_tuple[0].shape)
    shape[at] = begins[-1]
    return te.compute(shape, element, name="T_concat", tag=tag.INJECTIVE)


def _require_equal_shapes(name: str, tensors: Sequence[te.Tensor], joined: int | None) -> None:
    """Extents that are known must be equal, but for those along the joined axis."""
    shapes = [dims(x.shape) for x in tensors]
    for shape in shapes[1:]:
        pairs = enumerate(zip(shapes[0], shape, strict=False))
        if len(shape) != len(shapes[0]) or any(
            isinstance(a, int) and isinstance(b, int) and a != b
            for axis, (a, b) in pairs
            if axis != joined
        ):
            where = "" if joined is None else f" but for axis {joined}"
            raise RuntimeValueError(
                f"{name} requires equal shapes{where}, got {shapes[0]} and {shape}"
            )


def _halved(
    part: Callable[[int], Any], is_before: Callable[[int], Any], first: int, end: int
) -> Any:
    """One of many parts, found by halves: nested as deep as their number has bits."""
    if end - first == 1:
        return part(first)
    middle = (first + end) // 2
    return tir.if_then_else(
        is_before(middle),
        _halved(part, is_before, first, middle),
        _halved(part, is_before, middle, end),
    )


def stack(a: Sequence[te.Tensor], axis: int) -> te.Tensor:
    """Join tensors of one shape along a new axis."""
    if not a:
        raise RuntimeValueError("stack requires at least one tensor")
    _require_equal_shapes("stack", a, None)
    rank = len(a[0].shape) + 1
    at = real_axis(axis, rank)

    def element(*i: Any) -> Any:
        inner = (*i[:at], *i[at + 1 :])
        return _halved(lambda k: a[k](*inner), lambda k: i[at] < k, 0, len(a))

    shape = [*a[0].shape[:at], len(a), *a[0].shape[at:]]
    return te.compute(shape, element, name="T_stack", tag=tag.INJECTIVE)


def split(
    ary: te.Tensor, indices_or_sections: int | Sequence[int], axis: int = 0
) -> list[te.Tensor]:
    """Part a tensor along an axis."""
    at = real_axis(axis, len(ary.shape))
    extent = dims(ary.shape)[at]
    if isinstance(indices_or_sections, int):
        # of a constant extent the last part is what is left
        step = (
            -(-extent // indices_or_sections)
            if isinstance(extent, int)
            else extent // indices_or_sections
        )
        begins = [step * k if k else 0 for k in range(indices_or_sections)]
    else:
        begins = [0, *dims(indices_or_sections)]
    ends = [*begins[1:], extent]
    parts = []
    for begin, end in zip(begins, ends, strict=True):
        is_equal = isinstance(indices_or_sections, int) and not isinstance(extent, int)
        shape = [*ary.shape[:at], step if is_equal else end - begin, *ary.shape[at + 1 :]]

        def element(*i: Any, begin: Any = begin) -> Any:
            index = i[at] if isinstance(begin, int) and begin == 0 else i[at] + begin
            return ary(*i[:at], index, *i[at + 1 :])

        parts.append(_computed(shape, element, "T_split"))
    return parts


def _computed(shape: Sequence[Any], element: Any, name: str) -> te.Tensor:
    return te.compute(shape, lambda *i: element(*i), name=name, tag=tag.INJECTIVE)


def repeat(a: te.Tensor, repeats: int, axis: int) -> te.Tensor:
    """Repeat each element along an axis."""
    at = real_axis(axis, len(a.shape))
    shape = list(a.shape)
    shape[at] = shape[at] * repeats
    count = max(repeats, 1)  # nothing is repeated no times
    return te.compute(
        shape,
        lambda *i: a(*i[:at], tir.indexdiv(i[at], count), *i[at + 1 :]),
        name="T_repeat",
        tag=tag.BROADCAST,
    )


def tile(a: te.Tensor, reps: Sequence[int]) -> te.Tensor:
    """Repeat a tensor as a whole along its axes."""
    rank = max(len(a.shape), len(reps))
    have = [1] * (rank - len(a.shape)) + list(dims(a.shape))
    times = [1] * (rank - len(reps)) + list(reps)
    lead = rank - len(a.shape)

    def element(*i: Any) -> Any:
        at: list[Any] = []
        for k in range(lead, rank):
            if isinstance(have[k], int) and have[k] < 2:
                at.append(0)
            else:
                at.append(i[k] if times[k] == 1 else tir.indexmod(i[k], have[k]))
        return a(*at)

    shape = [d * t for d, t in zip(have, times, strict=True)]
    return te.compute(shape, element, name="T_tile", tag=tag.BROADCAST)


def meshgrid(a_tuple: Sequence[te.Tensor], indexing: str) -> list[te.Tensor]:
    """Coordinate tensors from coordinate vectors."""
    order = list(range(len(a_tuple)))
    if indexing == "xy" and len(order) > 1:
        order[0], order[1] = 1, 0
    shape = [a_tuple[k].shape[0] if len(a_tuple[k].shape) else 1 for k in order]
    grids = []
    for k, x in enumerate(a_tuple):
        at = order.index(k)

        def element(*i: Any, x: te.Tensor = x, at: int = at) -> Any:
            return x(i[at]) if len(x.shape) else x()

        grids.append(_computed(shape, element, "T_meshgrid"))
    return grids


__all__ = [
    "concatenate",
    "meshgrid",
    "repeat",
    "split",
    "stack",
    "tile",
]
