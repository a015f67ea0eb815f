"""Operators that pick elements by index: take, gather, where, one_hot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tvm import topi
from tvm.error import OpNotImplemented
from tvm.ir.attrs import Attrs
from tvm.ir.expr import RelayExpr
from tvm.ir.type import TensorType, Type
from tvm.relay.analysis.infer import tensor_type_of
from tvm.relay.expr import Call, const

from .computes import RESULT_SHAPE, computed_by
from .known_shapes import known_shape
from .layout import layout_broadcast
from .operator import Expr, operator
from .registry import OpPattern, ops
from .run_time import RunTime
from .scatter_gradient import added_elements, element_numbers
from .types import (
    broadcast_shapes,
    expect,
    expect_same_dtype,
    positive_axis,
    shape_of_type,
    show,
    tensor,
)
from .unary import numpy_dtype


def _take_type(attrs: Any, data: TensorType, indices: TensorType) -> Type:
    """A tensor of the dtype of `data`: in its shape the axis is replaced by the shape of the
    indices behind `batch_dims` dimensions; without an axis it has the shape of the indices."""
    expect(
        indices.dtype.is_int or indices.dtype.is_uint,
        f"take requires integer indices, got {indices.dtype}",
    )
    expect(
        attrs.mode in ("clip", "wrap", "fast"),
        f"take requires a mode of clip, wrap or fast, got {attrs.mode!r}",
    )
    shape, picked = shape_of_type(data), shape_of_type(indices)
    if attrs.axis is None:
        return tensor(picked, data.dtype)
    axis = positive_axis(attrs.axis, len(shape), "take")
    batch = attrs.batch_dims % len(picked) if attrs.batch_dims < 0 else attrs.batch_dims
    return tensor(shape[:axis] + picked[batch:] + shape[axis + 1 :], data.dtype)


def _fold_take(attrs: Any, arrays: Sequence[np.ndarray], out_type: Type) -> list[np.ndarray]:
    data, indices = arrays
    if attrs.batch_dims and attrs.axis is not None:
        inner = attrs.replace(
            batch_dims=attrs.batch_dims % indices.ndim - 1, axis=attrs.axis % data.ndim - 1
        )
        pairs = zip(data, indices, strict=True)
        return [np.stack([_fold_take(inner, pair, out_type)[0] for pair in pairs])]
    extent = data.size if attrs.axis is None else data.shape[attrs.axis]
    if not extent and indices.size:  # what a mask leaves out: any value will do
        data, extent = np.insert(data, 0, 0, attrs.axis), 1
    indices = indices.astype("int64", copy=False)  # the extent need not fit the type of indices
    if attrs.mode == "wrap":
        indices = indices % extent
    else:
        if attrs.mode == "fast":
            indices = np.where(indices < 0, indices + extent, indices)
        indices = np.clip(indices, 0, extent - 1)
    return [np.asarray(np.take(data, indices, axis=attrs.axis))]


def _take_gradient(call: Call, grad: RelayExpr) -> list[RelayExpr]:
    data, indices = call.args
    attrs = call.attrs
    if attrs.batch_dims:
        raise OpNotImplemented("the gradient of take requires batch_dims=0")
    shape, picked = known_shape(data, "take"), known_shape(indices, "take")
    flat = attrs.axis is None
    axis = 0 if flat else attrs.axis % len(shape)
    extents = (int(np.prod(shape)),) if flat else shape
    where = _index_in_range(ops.reshape(indices, newshape=(1, -1)), extents[axis], attrs.mode)
    rank = len(picked)
    rest = (*extents[:axis], *extents[axis + 1 :])
    # the axes of the indices come first, as scatter_nd wants them
    order = (*range(axis, axis + rank), *range(axis), *range(axis + rank, len(rest) + rank))
    updates = ops.transpose(grad, axes=order) if len(order) > 1 else grad
    updates = ops.reshape(updates, newshape=(int(np.prod(picked)), *rest))
    zeros = ops.cast_like(ops.zeros(shape=(extents[axis], *rest), dtype="float32"), data)
    total = ops.scatter_nd(zeros, where, updates, mode="add")
    back = (*range(1, axis + 1), 0, *range(axis + 1, len(extents)))
    if len(extents) > 1:
        total = ops.transpose(total, axes=back)
    return [ops.reshape(total, newshape=shape) if flat else total, ops.zeros_like(indices)]


def _index_in_range(indices: RelayExpr, extent: int, mode: str) -> RelayExpr:
    if mode == "wrap":
        dtype = tensor_type_of(indices).dtype
        return ops.floor_mod(indices, const(extent, dtype))
    return ops.clip(indices, a_min=0.0, a_max=float(extent - 1)) if mode == "clip" else indices


@operator(
    "take",
    support_level=3,
    fields=("batch_dims", "axis", "mode"),
    infer_type=_take_type,
    fuse=OpPattern.INJECTIVE,
    compute=computed_by(topi.take, "axis", "batch_dims", "mode"),
    fold=_fold_take,
    gradient=_take_gradient,
)
def take(
    data: Expr, indices: Expr, axis: int | None = None, batch_dims: int = 0, mode: str = "clip"
) -> RelayExpr:
    """Pick elements by index along an axis.

    Parameters
    ----------
    data, indices : relay.Expr
        The tensor, and the indices.
    axis : int, optional
        The axis; the flattened tensor by default.
    batch_dims : int
        The number of leading axes that data and indices share.
    mode : str
        Indices out of range: "clip", "wrap", or "fast" (not checked).
    """


def _gather_type(attrs: Any, data: TensorType, indices: TensorType) -> Type:
    """A tensor of the shape of the indices and the dtype of `data`."""
    shape, picked = shape_of_type(data), shape_of_type(indices)
    axis = positive_axis(attrs.axis, len(shape), "gather")
    expect(
        len(shape) == len(picked),
        f"gather requires indices of the data's rank, got {show(shape)} and {show(picked)}",
    )
    for i, (have, want) in enumerate(zip(shape, picked, strict=True)):
        expect(
            i == axis or not (isinstance(have, int) and isinstance(want, int)) or want <= have,
            f"gather requires indices no larger than the data but along axis {axis}, "
            f"got {show(shape)} and {show(picked)}",
        )
    return tensor(picked, data.dtype)


def _fold_gather(attrs: Any, arrays: Sequence[np.ndarray], out_type: Type) -> list[np.ndarray]:
    data, indices = arrays
    axis = attrs.axis % data.ndim
    window = tuple([slice(None) if i == axis else slice(0, n) for i, n in enumerate(indices.shape)])
    return [np.take_along_axis(data[window], indices.astype("int64"), axis=axis)]


def _gather_gradient(call: Call, grad: RelayExpr) -> list[RelayExpr]:
    data, indices = call.args
    extent = known_shape(data, "gather")[call.attrs.axis]
    inside = ops.clip(indices, a_min=0.0, a_max=float(extent - 1))
    total = ops.scatter_elements(
        ops.zeros_like(data), inside, grad, axis=call.attrs.axis, reduction="add"
    )  # fmt: skip
    return [total, ops.zeros_like(indices)]


@operator(
    "gather",
    support_level=3,
    defaults={"axis": 0},
    infer_type=_gather_type,
    fuse=OpPattern.INJECTIVE,
    compute=lambda attrs, inputs, out_type: [topi.gather(inputs[0], attrs.axis, inputs[1])],
    fold=_fold_gather,
    gradient=_gather_gradient,
)
def gather(data: Expr, axis: int, indices: Expr) -> RelayExpr:
    """Pick one element for each index, along an axis.

    Parameters
    ----------
    indices : relay.Expr
        A tensor of the data's rank.
    """


def _gather_nd_type(attrs: Any, data: TensorType, indices: TensorType) -> Type:
    """A tensor of the dtype of `data`: the shape of the indices behind their first axis, and the
    dimensions of `data` that an index leaves."""
    shape, picked = shape_of_type(data), shape_of_type(indices)
    expect(len(picked) > 0, "gather_nd requires indices of at least one dimension")
    depth = picked[0] if isinstance(picked[0], int) else attrs.index_rank
    expect(
        depth is not None,
        "gather_nd requires index_rank where the indices' first dimension is unknown",
    )
    expect(
        depth + attrs.batch_dims <= len(shape),
        f"gather_nd requires at most {len(shape)} indices an element, got {depth}",
    )
    return tensor(picked[1:] + shape[depth + attrs.batch_dims :], data.dtype)


def _fold_gather_nd(attrs: Any, arrays: Sequence[np.ndarray], out_type: Type) -> list[np.ndarray]:
    data, indices = arrays
    if attrs.batch_dims == 0:
        return [np.asarray(data[tuple(indices)])]
    inner = attrs.replace(batch_dims=attrs.batch_dims - 1)
    pairs = zip(data, np.moveaxis(indices, 1, 0), strict=True)
    return [np.stack([_fold_gather_nd(inner, pair, out_type)[0] for pair in pairs])]


def _gather_nd_gradient(call: Call, grad: RelayExpr) -> list[RelayExpr]:
    data, indices = call.args
    shape = known_shape(data, "gather_nd")
    if call.attrs.batch_dims == 0:
        return [
            ops.scatter_nd(ops.zeros_like(data), indices, grad, mode="add"),
            ops.zeros_like(indices),
        ]
    positions = Call(ops.gather_nd, (element_numbers(shape), indices), call.attrs)
    return [added_elements(grad, positions, shape), ops.zeros_like(indices)]


@operator(
    "gather_nd",
    "GatherNDAttrs",
    support_level=3,
    infer_type=_gather_nd_type,
    fuse=OpPattern.INJECTIVE,
    compute=computed_by(topi.gather_nd, "batch_dims", RESULT_SHAPE),
    fold=_fold_gather_nd,
    gradient=_gather_nd_gradient,
)
def gather_nd(
    data: Expr, indices: Expr, batch_dims: int = 0, index_rank: int | None = None
) -> RelayExpr:
    """Pick slices by index tuples, held along the first axis of the indices.

    Parameters
    ----------
    data : relay.Expr
        The tensor, and the index tuples.
    index_rank : int, optional
        The length of the tuples, where the shape does not tell.
    """


def _where_type(attrs: Attrs, condition: TensorType, x: TensorType, y: TensorType) -> Type:
    """A tensor of the shape that all three operands broadcast to, and of the dtype of the two
    values."""
    dtype = expect_same_dtype((x, y), "where")
    shape = broadcast_shapes(shape_of_type(x), shape_of_type(y), "where")
    return tensor(broadcast_shapes(shape_of_type(condition), shape, "where"), dtype)


def _where_gradient(call: Call, grad: RelayExpr) -> list[RelayExpr]:
    condition, x, y = call.args
    none = ops.zeros_like(grad)
    return [
        ops.zeros_like(condition),
        ops.collapse_sum_like(ops.where(condition, grad, none), x),
        ops.collapse_sum_like(ops.where(condition, none, grad), y),
    ]


@operator(
    "where",
    support_level=4,
    infer_type=_where_type,
    infer_layout=layout_broadcast,
    fuse=OpPattern.BROADCAST,
    compute=computed_by(topi.where),
    fold=lambda attrs, arrays, out_type: [np.where(arrays[0].astype(bool), arrays[1], arrays[2])],
    gradient=_where_gradient,
)
def where(condition: Expr, x: Expr, y: Expr) -> RelayExpr:
    """Elements of `x` where the condition holds, of `y` elsewhere, with broadcasting.

    Parameters
    ----------
    condition, x, y : relay.Expr
        The condition (bool, or a number that is not zero) and the two choices.
    """


def _one_hot_type(attrs: Any, indices: TensorType) -> Type:
    """A tensor of dtype `dtype`: the shape of the indices with an axis of extent `depth` more."""
    shape = shape_of_type(indices)
    axis = len(shape) if attrs.axis == -1 else attrs.axis
    expect(0 <= axis <= len(shape), f"one_hot requires an axis in [-1, {len(shape)}], got {axis}")
    return tensor((*shape[:axis], attrs.depth, *shape[axis:]), attrs.dtype)


def _fold_one_hot(attrs: Any, arrays: Sequence[np.ndarray], out_type: Type) -> list[np.ndarray]:
    indices, on, off = arrays
    along = [1] * (indices.ndim + 1)
    along[attrs.axis] = -1
    numbers = np.arange(attrs.depth).reshape(along)
    found = np.where(np.expand_dims(indices, attrs.axis) == numbers, on, off)
    return [found.astype(numpy_dtype(attrs.dtype))]


def _one_hot_gradient(call: Call, grad: RelayExpr) -> list[RelayExpr]:
    indices, on, off = call.args
    # the same vectors of ones and zeros tell which of the two values stands where
    values = (indices, const(1, "int32"), const(0, "int32"))
    hot = ops.cast_like(Call(ops.one_hot, values, call.attrs.replace(dtype="int32")), grad)
    to_on = ops.sum(ops.multiply(grad, hot), axis=None)
    to_off = ops.sum(ops.multiply(grad, ops.ones_like(hot) - hot), axis=None)
    return [ops.zeros_like(indices), ops.cast_like(to_on, on), ops.cast_like(to_off, off)]


@operator(
    "one_hot",
    infer_type=_one_hot_type,
    fuse=OpPattern.BROADCAST,
    compute=lambda attrs, inputs, out_type: [
        topi.one_hot(
            inputs[0], inputs[1](), inputs[2](), out_type.shape[attrs.axis], attrs.axis, attrs.dtype
        )
    ],
    fold=_fold_one_hot,
    gradient=_one_hot_gradient,
    run_time=RunTime({"depth": 0}),
)
def one_hot(
    indices: Expr, on_value: Expr, off_value: Expr, depth: int, axis: int, dtype: str
) -> RelayExpr:
    """Vectors that are `on_value` at each index and `off_value` elsewhere.

    Parameters
    ----------
    indices, on_value, off_value : relay.Expr
        The indices and the two values (scalars).
    depth : int
        The length of the vectors.
    axis : int
        Where their axis comes in; -1 is last.
    dtype : str
        The dtype of the result.
    """


def _trilu_type(attrs: Any, data: TensorType) -> Type:
    """A tensor of the shape and dtype of `data`."""
    expect(len(data.shape) >= 2, "trilu requires at least two dimensions")
    return data


@operator(
    "trilu",
    infer_type=_trilu_type,
    fuse=OpPattern.ELEMWISE,
    compute=lambda attrs, inputs, out_type: [topi.trilu(inputs[0], inputs[1](), attrs.upper)],
    fold=lambda attrs, arrays, out_type: [
        (np.triu if attrs.upper else np.tril)(arrays[0], int(arrays[1]))
    ],
    gradient=lambda call, grad: [
        Call(ops.trilu, (grad, call.args[1]), call.attrs), ops.zeros_like(call.args[1])
    ],
)  # fmt: skip
def trilu(data: Expr, k: Expr, upper: bool = True) -> RelayExpr:
    """Keep the upper or the lower triangle of each matrix.

    Parameters
    ----------
    data : relay.Expr
        The matrices.
    k : relay.Expr
        The number of the diagonal up to which elements are kept.
    upper : bool
        Which triangle.
    """
