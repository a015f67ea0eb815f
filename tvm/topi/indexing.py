"""Picking elements by index."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

from tvm import te, tir
from tvm.error import RuntimeValueError
from tvm.te import tensor_ops
from tvm.tir.constants import fits

from . import tag
from .utils import dims, equals, prod, real_axis, unravel_index, wide_index


def _in_range(index: Any, extent: Any, mode: str) -> Any:
    index = wide_index(index)
    if mode not in ("clip", "wrap", "fast"):
        raise RuntimeValueError(f"indices require a mode of clip, wrap or fast, got {mode!r}")
    if mode == "fast":
        return index
    if mode == "wrap":
        if not isinstance(extent, int):
            return tir.floormod(index, extent)
        dtype = index.dtype if fits(extent, index.dtype) else "int64"
        return tir.floormod(index.astype(dtype), tir.const(extent, dtype))
    last = extent - 1
    return tir.min(tir.max(index, 0), last)


def take(
    a: te.Tensor,
    indices: te.Tensor,
    axis: int | None = None,
    batch_dims: int = 0,
    mode: str = "clip",
) -> te.Tensor:
    """Pick elements by index along an axis (of the flattened tensor without one)."""
    if axis is None:
        count = prod(dims(a.shape))
        return te.compute(
            indices.shape,
            lambda *i: a(*unravel_index(_in_range(indices(*i), count, mode), a.shape)),
            name="T_take",
            tag=tag.INJECTIVE,
        )
    at = real_axis(axis, len(a.shape))
    batch = real_axis(batch_dims, len(indices.shape)) if batch_dims < 0 else batch_dims
    picked = len(indices.shape) - batch
    shape = (*a.shape[:at], *indices.shape[batch:], *a.shape[at + 1 :])

    def element(*i: Any) -> Any:
        index = indices(*i[:batch], *i[at : at + picked])
        index = _in_range(index, dims(a.shape)[at], mode)
        return a(*i[:at], index, *i[at + picked :])

    return te.compute(shape, element, name="T_take", tag=tag.INJECTIVE)


def gather(data: te.Tensor, axis: int, indices: te.Tensor) -> te.Tensor:
    """Pick one element for each index along an axis; indices outside pick the nearest element."""
    at = real_axis(axis, len(data.shape))
    extent = dims(data.shape)[at]
    return te.compute(
        indices.shape,
        lambda *i: data(*i[:at], _in_range(indices(*i), extent, "clip"), *i[at + 1 :]),
        name="T_gather",
        tag=tag.INJECTIVE,
    )


def gather_nd(
    a: te.Tensor, indices: te.Tensor, batch_dims: int = 0, shape: Sequence[Any] | None = None
) -> te.Tensor:
    """Pick slices by index tuples held along the first axis of the indices.

    Parameters
    ----------
    a : te.Tensor
        The tensor.
    indices : te.Tensor
        (depth, ...): one index for each of the axes; those outside pick the nearest slice.
    batch_dims : int
        The leading axes that the tensor and the indices share.
    shape : sequence, optional
        The result's shape, if it is known better; its rank tells the depth, if only the run does.
    """
    picked = len(indices.shape) - 1
    depth = dims(indices.shape)[0]
    if not isinstance(depth, int) and shape is not None:
        depth = picked + len(a.shape) - batch_dims - len(shape)
    depth = int(depth)
    out = shape or (*indices.shape[1:], *a.shape[depth + batch_dims :])
    extents = dims(a.shape)[batch_dims:]

    def element(*i: Any) -> Any:
        at = [_in_range(indices(k, *i[:picked]), extents[k], "clip") for k in range(depth)]
        return a(*i[:batch_dims], *at, *i[picked:])

    return te.compute(list(out), element, name="T_gather_nd", tag=tag.INJECTIVE)


def adv_index(data: te.Tensor, indices: Sequence[te.Tensor]) -> te.Tensor:
    """Pick elements by one index tensor for each of the leading axes; the indices broadcast."""
    picked = reduce(tensor_ops.broadcast_shape, [x.shape for x in indices])

    def element(*i: Any) -> Any:
        at = []
        for x, extent in zip(indices, dims(data.shape), strict=False):
            index = wide_index(x(*tensor_ops.broadcast_indices(i[: len(picked)], x.shape, picked)))
            at.append(_in_range(tir.if_then_else(index < 0, index + extent, index), extent, "clip"))
        return data(*at, *i[len(picked) :])

    shape = [*picked, *data.shape[len(indices) :]]
    return te.compute(shape, element, name="advanced_index", tag=tag.INJECTIVE)


def unravel(indices: te.Tensor, shape: te.Tensor) -> te.Tensor:
    """The index in each dimension of row-major positions; dimensions run along a new first axis."""
    rank = dims(shape.shape)[0]

    def element(which: Any, *i: Any) -> Any:
        rest = wide_index(indices(*i))
        found = tir.const(0, rest.dtype)
        for axis in reversed(range(rank)):
            extent = shape(axis).astype(rest.dtype)
            # the leading index is what is left
            part = tir.indexmod(rest, extent) if axis else rest
            found = tir.Select(equals(which, axis), part, found)
            rest = tir.indexdiv(rest, extent)
        return found.astype(indices.dtype)

    return te.compute([rank, *indices.shape], element, name="T_unravel", tag=tag.INJECTIVE)


def where(condition: te.Tensor, x: te.Tensor, y: te.Tensor) -> te.Tensor:
    """Elements of `x` where the condition holds, of `y` elsewhere, with broadcasting."""
    shape = te.tensor_ops.broadcast_shape(x.shape, y.shape, "where")
    shape = te.tensor_ops.broadcast_shape(condition.shape, shape, "where")

    def load(t: te.Tensor, i: Sequence[Any]) -> Any:
        return t(*te.tensor_ops.broadcast_indices(i, t.shape, shape))

    def element(*i: Any) -> Any:
        holds = load(condition, i)
        if not holds.dtype.is_bool:
            holds = tir.NE(holds, tir.const(0, holds.dtype))
        return tir.Select(holds, load(x, i), load(y, i))

    return te.compute(shape, element, name="T_where", tag=tag.BROADCAST)


def one_hot(
    indices: te.Tensor, on_value: Any, off_value: Any, depth: Any, axis: int, dtype: str
) -> te.Tensor:
    """Vectors that are `on_value` at each index and `off_value` elsewhere."""
    at = len(indices.shape) if axis == -1 else axis
    shape = [*indices.shape[:at], depth, *indices.shape[at:]]
    on, off = [
        v.astype(dtype) if hasattr(v, "astype") else tir.const(v, dtype)
        for v in (on_value, off_value)
    ]

    def element(*i: Any) -> Any:
        index = wide_index(indices(*i[:at], *i[at + 1 :]))
        return tir.Select(tir.EQ(index, i[at].astype(index.dtype)), on, off)

    return te.compute(shape, element, name="T_one_hot", tag=tag.INJECTIVE)


def trilu(data: te.Tensor, k: Any, upper: bool) -> te.Tensor:
    """Keep the upper or the lower triangle of each matrix.

    Parameters
    ----------
    k : the diagonal that bounds it, a number or a tensor without dimensions.
    """
    if isinstance(k, te.Tensor):
        k = k()

    def element(*i: Any) -> Any:
        diagonal = k.astype("int64") if hasattr(k, "astype") else tir.const(k, "int64")
        first = i[-1].astype("int64") - diagonal
        row = i[-2].astype("int64")
        kept = row <= first if upper else row >= first
        return tir.Select(kept, data(*i), tir.const(0, data.dtype))

    return te.compute(data.shape, element, name="T_trilu", tag=tag.INJECTIVE)


__all__ = [
    "adv_index",
    "gather",
    "gather_nd",
    "one_hot",
    "take",
    "trilu",
    "where",
]
