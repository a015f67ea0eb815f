"""Gradients that need operators declared after the one that they belong to.

A gradient gives one expression for each argument, from the call and its result's gradient.
"""

from __future__ import annotations

import numpy as np

from tvm.error import OpNotImplemented
from tvm.ir.expr import RelayExpr
from tvm.relay.analysis.infer import infer_type_of
from tvm.relay.expr import Call, Tuple, TupleGetItem, const

from .indexing import slice_ranges
from .known_shapes import known_shape
from .registry import ops


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
        dtype = infer_type_of(indices).dtype
        return ops.floor_mod(indices, const(extent, dtype))
    return ops.clip(indices, a_min=0.0, a_max=float(extent - 1)) if mode == "clip" else indices


def _stack_gradient(call: Call, grad: RelayExpr) -> list[RelayExpr]:
    count = len(infer_type_of(call.args[0]).fields)
    parts = ops.split(grad, indices_or_sections=count, axis=call.attrs.axis)
    axis = (call.attrs.axis,)
    return [Tuple([ops.squeeze(TupleGetItem(parts, i), axis=axis) for i in range(count)])]


def _arange_gradient(call: Call, grad: RelayExpr) -> list[RelayExpr]:
    # the numbers are start + i * step; the stop decides about their count alone
    start, stop, step = call.args
    positions = ops.divide(call - start, step)
    return [
        ops.sum(grad, axis=None),
        ops.zeros_like(stop),
        ops.sum(ops.multiply(grad, positions), axis=None),
    ]


def _where_gradient(call: Call, grad: RelayExpr) -> list[RelayExpr]:
    condition, x, y = call.args
    none = ops.zeros_like(grad)
    return [
        ops.zeros_like(condition),
        ops.collapse_sum_like(ops.where(condition, grad, none), x),
        ops.collapse_sum_like(ops.where(condition, none, grad), y),
    ]


def _strided_slice_gradient(call: Call, grad: RelayExpr) -> list[RelayExpr]:
    """The elements go back to their places, with zeros between and around."""
    shape = known_shape(call.args[0], "strided_slice")
    widths, steps = [], []
    for axis, (begin, count, stride) in enumerate(slice_ranges(call.attrs, shape)):
        assert isinstance(count, int)
        first = begin if stride > 0 else begin + (count - 1) * stride
        if stride < 0:
            grad = ops.reverse(grad, axis=axis)
        steps.append(abs(stride))
        reach = (count - 1) * abs(stride) + 1 if count else 0
        widths.append((first, shape[axis] - first - reach))
    if any([step != 1 for step in steps]):
        grad = ops.nn.dilate(grad, strides=tuple(steps))
    zero = ops.cast_like(const(0.0), grad)
    return [ops.nn.pad(grad, zero, pad_width=tuple(widths))]


def _one_hot_gradient(call: Call, grad: RelayExpr) -> list[RelayExpr]:
    indices, on, off = call.args
    # the same vectors of ones and zeros tell which of the two values stands where
    hot = ops.cast_like(
        Call(ops.one_hot, (indices, const(1, "int32"), const(0, "int32")), call.attrs.replace(dtype="int32")),
        grad,
    )  # fmt: skip
    to_on = ops.sum(ops.multiply(grad, hot), axis=None)
    to_off = ops.sum(ops.multiply(grad, ops.ones_like(hot) - hot), axis=None)
    return [ops.zeros_like(indices), ops.cast_like(to_on, on), ops.cast_like(to_off, off)]


def filled_gradient(call: Call, grad: RelayExpr) -> list[RelayExpr]:
    """Zeros: the result does not depend on the elements continuously."""
    return [ops.zeros_like(argument) for argument in call.args]


def _reshape_like_gradient(call: Call, grad: RelayExpr) -> list[RelayExpr]:
    return [ops.reshape_like(grad, call.args[0]), ops.zeros_like(call.args[1])]


for _op, _gradient in (
    (ops.take, _take_gradient),
    (ops.stack, _stack_gradient),
    (ops.arange, _arange_gradient),
    (ops.where, _where_gradient),
    (ops.strided_slice, _strided_slice_gradient),
    (ops.one_hot, _one_hot_gradient),
    (ops.zeros, filled_gradient),
    (ops.ones, filled_gradient),
    (ops.dyn.zeros, filled_gradient),
    (ops.dyn.ones, filled_gradient),
    (ops.shape_of, filled_gradient),
    (ops.contrib_reverse_reshape, lambda call, grad: [ops.reshape_like(grad, call.args[0])]),
    (ops.reshape_like, _reshape_like_gradient),
    (ops.dyn.reshape, _reshape_like_gradient),
):
    _op.set_facets(gradient=_gradient)

ops.collapse_sum_like.set_facets(
    gradient=lambda call, grad: [
        ops.broadcast_to_like(grad, call.args[0]), ops.zeros_like(call.args[1])
    ]
)  # fmt: skip
ops.collapse_sum_to.set_facets(
    gradient=lambda call, grad: [ops.broadcast_to_like(grad, call.args[0])]
)
