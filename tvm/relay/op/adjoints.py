"""Gradients of the operators that gradients are made of, so that these have gradients in turn.

Most are linear: the gradient is the adjoint, which undoes where the elements went.
"""

from __future__ import annotations

from tvm.ir.expr import RelayExpr
from tvm.relay.expr import Call, const

from .known_shapes import known_shape, shape_of
from .registry import ops

Gradients = list[RelayExpr]


def _broadcast_to_like(call: Call, grad: RelayExpr) -> Gradients:
    return [ops.collapse_sum_like(grad, call.args[0]), ops.zeros_like(call.args[1])]


def _gather(call: Call, grad: RelayExpr) -> Gradients:
    data, indices = call.args
    extent = known_shape(data, "gather")[call.attrs.axis]
    inside = ops.clip(indices, a_min=0.0, a_max=float(extent - 1))
    total = ops.scatter_elements(
        ops.zeros_like(data), inside, grad, axis=call.attrs.axis, reduction="add"
    )  # fmt: skip
    return [total, ops.zeros_like(indices)]


def _tile(call: Call, grad: RelayExpr) -> Gradients:
    data, reps = call.args[0], call.attrs.reps
    shape = known_shape(data, "tile")
    rank = max(len(shape), len(reps))
    extents = (1,) * (rank - len(shape)) + shape
    times = (1,) * (rank - len(reps)) + tuple(reps)
    split = [n for pair in zip(times, extents, strict=True) for n in pair]
    total = ops.sum(ops.reshape(grad, newshape=tuple(split)), axis=tuple(range(0, 2 * rank, 2)))
    return [ops.reshape(total, newshape=shape)]


def _repeat(call: Call, grad: RelayExpr) -> Gradients:
    data, attrs = call.args[0], call.attrs
    shape = known_shape(data, "repeat")
    axis = attrs.axis % len(shape)
    split = (*shape[: axis + 1], attrs.repeats, *shape[axis + 1 :])
    return [ops.sum(ops.reshape(grad, newshape=split), axis=(axis + 1,))]


def _cumsum(call: Call, grad: RelayExpr) -> Gradients:
    """Each element is part of the sums that come after it."""
    data, attrs = call.args[0], call.attrs
    shape = known_shape(data, "cumsum")
    axis = 0 if attrs.axis is None else attrs.axis
    backwards = ops.reverse(grad, axis=axis)
    total = Call(ops.cumsum, (ops.cast_like(backwards, data),), attrs.replace(axis=axis, dtype=""))
    found = ops.reverse(total, axis=axis)
    return [ops.reshape(found, newshape=shape) if attrs.axis is None else found]


def _sequence_mask(call: Call, grad: RelayExpr) -> Gradients:
    lengths = call.args[1]
    return [Call(ops.sequence_mask, (grad, lengths), call.attrs.replace(mask_value=0.0)), ops.zeros_like(lengths)]  # fmt: skip


def _trilu(call: Call, grad: RelayExpr) -> Gradients:
    return [Call(ops.trilu, (grad, call.args[1]), call.attrs), ops.zeros_like(call.args[1])]


def _layout_transform(call: Call, grad: RelayExpr) -> Gradients:
    attrs = call.attrs
    back = ops.layout_transform(grad, src_layout=attrs.dst_layout, dst_layout=attrs.src_layout)
    shape, found = known_shape(call.args[0], "layout_transform"), shape_of(back)
    if found == shape:
        return [back]
    # what fills the last block is no element of the data
    return [ops.strided_slice(back, begin=(0,) * len(shape), end=shape)]


def _slice_like(call: Call, grad: RelayExpr) -> Gradients:
    data, like = call.args
    have, want = known_shape(data, "slice_like"), known_shape(call, "slice_like")
    widths = tuple([(0, n - m) for n, m in zip(have, want, strict=True)])
    zero = ops.cast_like(const(0.0), grad)
    return [ops.nn.pad(grad, zero, pad_width=widths), ops.zeros_like(like)]


def _full(call: Call, grad: RelayExpr) -> Gradients:
    return [ops.cast_like(ops.sum(grad, axis=None), call.args[0])]


def _full_like(call: Call, grad: RelayExpr) -> Gradients:
    return [ops.zeros_like(call.args[0]), ops.cast_like(ops.sum(grad, axis=None), call.args[1])]


for _op, _gradient in (
    (ops.broadcast_to_like, _broadcast_to_like),
    (ops.cumsum, _cumsum),
    (ops.full, _full),
    (ops.full_like, _full_like),
    (ops.gather, _gather),
    (ops.layout_transform, _layout_transform),
    (ops.repeat, _repeat),
    (ops.sequence_mask, _sequence_mask),
    (ops.slice_like, _slice_like),
    (ops.tile, _tile),
    (ops.trilu, _trilu),
):
    _op.set_facets(gradient=_gradient)
