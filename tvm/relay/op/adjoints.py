"""Gradients of the operators that gradients are made of, so that these have gradients in turn.

Most are linear: the gradient is the adjoint, which undoes where the elements went.
"""

from __future__ import annotations

from tvm.error import OpNotImplemented
from tvm.ir.expr import RelayExpr
from tvm.relay.analysis.infer import infer_type_of
from tvm.relay.expr import Call, const

from .known_shapes import known_shape, shape_of
from .nn.conv_gradient import conv2d_backward_weight
from .nn.conv_transpose import conv2d_transpose
from .plain_results import of_plain_result
from .registry import ops
from .shaping import in_order

Gradients = list[RelayExpr]


def _broadcast_to_like(call: Call, grad: RelayExpr) -> Gradients:
    return [ops.collapse_sum_like(grad, call.args[0]), ops.zeros_like(call.args[1])]


def _dilate(call: Call, grad: RelayExpr) -> Gradients:
    shape = known_shape(call, "nn.dilate")
    start = (0,) * len(shape)
    return [ops.strided_slice(grad, begin=start, end=shape, strides=call.attrs.strides)]


def _gather(call: Call, grad: RelayExpr) -> Gradients:
    data, indices = call.args
    extent = known_shape(data, "gather")[call.attrs.axis]
    inside = ops.clip(indices, a_min=0.0, a_max=float(extent - 1))
    total = ops.scatter_elements(
        ops.zeros_like(data), inside, grad, axis=call.attrs.axis, reduction="add"
    )  # fmt: skip
    return [total, ops.zeros_like(indices)]


def _check_plain(call: Call, kernel_layouts: tuple[str, ...]) -> None:
    attrs = call.attrs
    if attrs.data_layout == "NCHW" and attrs.kernel_layout in kernel_layouts:
        if attrs.out_layout in ("", "NCHW", "OIHW"):
            return
    raise OpNotImplemented(
        f"the gradient of {call.op.name} requires layouts NCHW and {kernel_layouts[0]}, "
        f"got {attrs.data_layout} and {attrs.kernel_layout}",
    )


def _conv2d_transpose(call: Call, grad: RelayExpr) -> Gradients:
    layout = call.attrs.data_layout
    if layout == "NHWC" and call.attrs.out_layout in ("", layout):
        plain = call.attrs.replace(data_layout="NCHW", out_layout="")
        moved = Call(call.op, (in_order(call.args[0], layout, "NCHW"), call.args[1]), plain)
        to_data, to_weight = _conv2d_transpose(moved, in_order(grad, layout, "NCHW"))
        return [in_order(to_data, "NCHW", layout), to_weight]
    _check_plain(call, ("IOHW", "OIHW"))
    (data, weight), attrs = call.args, call.attrs
    steps = {"strides": attrs.strides, "padding": attrs.padding, "dilation": attrs.dilation}
    window = known_shape(weight, "nn.conv2d_transpose")[2:]
    to_data = ops.nn.conv2d(grad, weight, **steps, groups=attrs.groups, kernel_size=window)
    shape = known_shape(data, "nn.conv2d_transpose")
    if known_shape(to_data, "nn.conv2d_transpose") != shape:  # windows in the output's padding
        to_data = ops.strided_slice(to_data, begin=(0,) * 4, end=shape)
    to_weight = conv2d_backward_weight(
        data, grad, **steps, groups=attrs.groups, kernel_size=window
    )  # fmt: skip
    return [to_data, to_weight]


def _conv2d_backward_weight(call: Call, grad: RelayExpr) -> Gradients:
    _check_plain(call, ("NCHW",))
    (given, data), attrs = call.args, call.attrs
    extents, places = known_shape(data, call.op.name), known_shape(given, call.op.name)
    steps = {"strides": attrs.strides, "padding": attrs.padding, "dilation": attrs.dilation}
    window = known_shape(grad, call.op.name)[2:]
    top, left, bottom, right = attrs.padding
    rest = [
        extents[2 + i] + pads
        - ((places[2 + i] - 1) * attrs.strides[i] + (window[i] - 1) * attrs.dilation[i] + 1)
        for i, pads in enumerate((top + bottom, left + right))
    ]  # fmt: skip
    to_given = ops.nn.conv2d(data, grad, **steps, groups=attrs.groups, kernel_size=window)
    to_data = conv2d_transpose(
        given, grad, **steps, groups=attrs.groups, channels=extents[1], kernel_size=window,
        output_padding=rest,
    )  # fmt: skip
    return [to_given, to_data]


def _layer_norm(call: Call, grad: RelayExpr) -> Gradients:
    """With y = (x - mean(x)) * r: dx = r * (dy - mean(dy) - y * mean(dy * y))"""
    (data, gamma, beta), attrs = call.args, call.attrs
    rank = len(shape_of(data))
    axis = attrs.axis % rank
    over = {"axis": (axis,), "keepdims": True}
    rest = tuple([i for i in range(rank) if i != axis])
    average = ops.mean(data, **over)
    epsilon = const(attrs.epsilon, infer_type_of(data).dtype)
    root = ops.rsqrt(ops.add(ops.variance(data, average, **over), epsilon))
    normal = ops.multiply(ops.subtract(data, average), root)
    scale = (
        ops.expand_dims(gamma, axis=1, num_newaxis=rank - 1 - axis) if axis < rank - 1 else gamma
    )
    inner = ops.multiply(grad, scale) if attrs.scale else grad
    shared = ops.multiply(normal, ops.mean(ops.multiply(inner, normal), **over))
    to_data = ops.multiply(root, ops.subtract(ops.subtract(inner, ops.mean(inner, **over)), shared))
    to_gamma = (
        ops.sum(ops.multiply(grad, normal), axis=rest) if attrs.scale else ops.zeros_like(gamma)
    )
    return [to_data, to_gamma, ops.sum(grad, axis=rest) if attrs.center else ops.zeros_like(beta)]


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
    (ops.nn.conv2d_backward_weight, _conv2d_backward_weight),
    (ops.nn.conv2d_transpose, of_plain_result(_conv2d_transpose)),
    (ops.cumsum, _cumsum),
    (ops.nn.dilate, _dilate),
    (ops.full, _full),
    (ops.full_like, _full_like),
    (ops.gather, _gather),
    (ops.nn.layer_norm, _layer_norm),
    (ops.layout_transform, _layout_transform),
    (ops.repeat, _repeat),
    (ops.sequence_mask, _sequence_mask),
    (ops.slice_like, _slice_like),
    (ops.tile, _tile),
    (ops.trilu, _trilu),
):
    _op.set_facets(gradient=_gradient)
