"""Places and borders of axes, for both importers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tvm.ir.expr import RelayExpr
from tvm.relay import op as _op
from tvm.relay.expr import Constant
from tvm.relay.frontend.common import constant, infer_dtype, infer_shape, scalar_like

Array = np.ndarray[Any, Any]

SLICE_END = 2**31 - 1  # the end of a slice that goes on to the last element; torch's are larger


def along_axis(axis: int, rank: int) -> list[int]:
    """The shape of a vector along one axis of several, to broadcast."""
    return [-1 if i == axis % rank else 1 for i in range(rank)]


def move_axis(x: RelayExpr, source: int, destination: int) -> RelayExpr:
    """``x`` with one of its axes at another position, the others in order."""
    rank = len(infer_shape(x))
    order = [axis for axis in range(rank) if axis != source % rank]
    order.insert(destination % rank, source % rank)
    return x if order == list(range(rank)) else _op.transpose(x, order)


def from_front(indices: RelayExpr, extent: Any) -> RelayExpr:
    """Indices, of which negative ones count from the end of an extent (a number or an expression)."""
    if isinstance(indices, Constant) and (indices.data.numpy() >= 0).all():
        return indices
    if isinstance(extent, RelayExpr):
        shift = _op.cast(extent, infer_dtype(indices))
        shift = _op.reshape(shift, ()) if infer_shape(shift) else shift
    elif isinstance(indices, Constant):
        values = indices.data.numpy()
        return constant(np.where(values < 0, values + extent, values).astype(values.dtype))
    else:
        shift = scalar_like(extent, indices)
    return _op.where(_op.less(indices, scalar_like(0, indices)), indices + shift, indices)


def padded(
    x: RelayExpr, widths: Sequence[tuple[int, int]], fill: float | RelayExpr, mode: str
) -> RelayExpr:
    """Borders of given widths before and behind each axis, negative ones cut off.

    Parameters
    ----------
    mode : of `nn.pad`, or "wrap": each axis goes on with its other end.
    """
    is_cut = any(side < 0 for pair in widths for side in pair)
    if mode == "wrap" or (mode == "edge" and is_cut):
        positions = _wrapped if mode == "wrap" else _edges
        for axis, (before, after) in enumerate(widths):
            if before or after:
                at = positions(infer_shape(x)[axis], before, after)
                x = _op.take(x, constant(at, "int64"), axis)
        return x
    if is_cut:
        begin = [max(0, -before) for before, _ in widths]
        end = [dim - max(0, -after) for dim, (_, after) in zip(infer_shape(x), widths, strict=True)]
        x = _op.strided_slice(x, begin, end, [1] * len(widths))
        widths = [(max(0, before), max(0, after)) for before, after in widths]
    return _op.nn.pad(x, widths, fill, mode)


def _wrapped(extent: int, before: int, after: int) -> Array:
    """An axis goes on with the other end of what is left of it."""
    first, last = max(0, -before), extent - max(0, -after)
    count = last - first
    return first + np.arange(-max(0, before), count + max(0, after)) % max(count, 1)


def _edges(extent: int, before: int, after: int) -> Array:
    return np.clip(np.arange(-before, extent + after), 0, extent - 1)


def windows_along(x: RelayExpr, axis: int, size: int, step: int) -> RelayExpr:
    """Windows along an axis, their elements along a new last one."""
    starts = np.arange(0, infer_shape(x)[axis] - size + 1, step)
    picked = _op.take(x, constant(starts[:, None] + np.arange(size), "int64"), axis)
    return move_axis(picked, axis + 1, -1)
