"""Gradients of the operators that gradients are made of, so that these have gradients in turn.

Most are linear: the gradient is the adjoint, which undoes where the elements went.
"""

from __future__ import annotations

from tvm.error import OpNotImplemented
from tvm.ir.expr import RelayExpr
from tvm.relay.analysis.infer import infer_type_of
from tvm.relay.expr import Call, const

from .binary import ADD, GREATER, MULTIPLY, SUBTRACT
from .broadcasting import BROADCAST_TO_LIKE, COLLAPSE_SUM_LIKE
from .creation import FULL, FULL_LIKE
from .gradients import known_shape, shape_of
from .indexing import GATHER, SLICE_LIKE, STRIDED_SLICE, TRILU, WHERE
from .joining import REPEAT, TILE
from .nn.activation import LEAKY_RELU, PAD, PRELU
from .nn.conv import CONV2D
from .nn.conv_gradient import CONV2D_BACKWARD_WEIGHT, conv2d_backward_weight
from .nn.conv_transpose import CONV2D_TRANSPOSE, conv2d_transpose
from .nn.local import DILATE
from .nn.normalization import LAYER_NORM
from .nn.pooling import AVG_POOL2D
from .nn.pooling_gradient import AVG_POOL2D_GRAD
from .plain_results import of_plain_result
from .reduce import MEAN, SUM, VARIANCE
from .scan import CUMSUM
from .scatter import SCATTER_ELEMENTS
from .sequence import SEQUENCE_MASK
from .shaping import EXPAND_DIMS, LAYOUT_TRANSFORM, RESHAPE, REVERSE, in_order
from .unary import CAST_LIKE, CLIP, RSQRT, ZEROS_LIKE

Gradients = list[RelayExpr]


def _broadcast_to_like(call: Call, grad: RelayExpr) -> Gradients:
    return [COLLAPSE_SUM_LIKE(grad, call.args[0]), ZEROS_LIKE(call.args[1])]


def _dilate(call: Call, grad: RelayExpr) -> Gradients:
    shape = known_shape(call, "nn.dilate")
    start = (0,) * len(shape)
    return [STRIDED_SLICE(grad, begin=start, end=shape, strides=call.attrs.strides)]


def _gather(call: Call, grad: RelayExpr) -> Gradients:
    data, indices = call.args
    extent = known_shape(data, "gather")[call.attrs.axis]
    inside = CLIP(indices, a_min=0.0, a_max=float(extent - 1))
    total = SCATTER_ELEMENTS(
        ZEROS_LIKE(data), inside, grad, axis=call.attrs.axis, reduction="add"
    )  # fmt: skip
    return [total, ZEROS_LIKE(indices)]


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
    to_data = CONV2D(grad, weight, **steps, groups=attrs.groups, kernel_size=window)
    shape = known_shape(data, "nn.conv2d_transpose")
    if known_shape(to_data, "nn.conv2d_transpose") != shape:  # windows in the output's padding
        to_data = STRIDED_SLICE(to_data, begin=(0,) * 4, end=shape)
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
    to_given = CONV2D(data, grad, **steps, groups=attrs.groups, kernel_size=window)
    to_data = conv2d_transpose(
        given, grad, **steps, groups=attrs.groups, channels=extents[1], kernel_size=window,
        output_padding=rest,
    )  # fmt: skip
    return [to_given, to_data]


def _avg_pool2d_grad(call: Call, grad: RelayExpr) -> Gradients:
    return [Call(AVG_POOL2D, (grad,), call.attrs), ZEROS_LIKE(call.args[1])]


def _layer_norm(call: Call, grad: RelayExpr) -> Gradients:
    """With y = (x - mean(x)) * r: dx = r * (dy - mean(dy) - y * mean(dy * y))"""
    (data, gamma, beta), attrs = call.args, call.attrs
    rank = len(shape_of(data))
    axis = attrs.axis % rank
    over = {"axis": (axis,), "keepdims": True}
    rest = tuple([i for i in range(rank) if i != axis])
    average = MEAN(data, **over)
    epsilon = const(attrs.epsilon, infer_type_of(data).dtype)
    root = RSQRT(ADD(VARIANCE(data, average, **over), epsilon))
    normal = MULTIPLY(SUBTRACT(data, average), root)
    scale = EXPAND_DIMS(gamma, axis=1, num_newaxis=rank - 1 - axis) if axis < rank - 1 else gamma
    inner = MULTIPLY(grad, scale) if attrs.scale else grad
    shared = MULTIPLY(normal, MEAN(MULTIPLY(inner, normal), **over))
    to_data = MULTIPLY(root, SUBTRACT(SUBTRACT(inner, MEAN(inner, **over)), shared))
    to_gamma = SUM(MULTIPLY(grad, normal), axis=rest) if attrs.scale else ZEROS_LIKE(gamma)
    return [to_data, to_gamma, SUM(grad, axis=rest) if attrs.center else ZEROS_LIKE(beta)]


def _leaky_relu(call: Call, grad: RelayExpr) -> Gradients:
    data = call.args[0]
    slope = CAST_LIKE(const(call.attrs.alpha, "float64"), data)
    return [WHERE(GREATER(data, ZEROS_LIKE(data)), grad, MULTIPLY(grad, slope))]


def _prelu(call: Call, grad: RelayExpr) -> Gradients:
    data, alpha = call.args
    rank = len(shape_of(data))
    axis = call.attrs.axis % rank
    along = alpha
    if axis < rank - 1:
        along = EXPAND_DIMS(alpha, axis=1, num_newaxis=rank - 1 - axis)
    is_positive = GREATER(data, ZEROS_LIKE(data))
    rest = tuple([i for i in range(rank) if i != axis])
    below = WHERE(is_positive, ZEROS_LIKE(data), MULTIPLY(grad, data))
    return [WHERE(is_positive, grad, MULTIPLY(grad, along)), SUM(below, axis=rest)]


def _tile(call: Call, grad: RelayExpr) -> Gradients:
    data, reps = call.args[0], call.attrs.reps
    shape = known_shape(data, "tile")
    rank = max(len(shape), len(reps))
    extents = (1,) * (rank - len(shape)) + shape
    times = (1,) * (rank - len(reps)) + tuple(reps)
    split = [n for pair in zip(times, extents, strict=True) for n in pair]
    total = SUM(RESHAPE(grad, newshape=tuple(split)), axis=tuple(range(0, 2 * rank, 2)))
    return [RESHAPE(total, newshape=shape)]


def _repeat(call: Call, grad: RelayExpr) -> Gradients:
    data, attrs = call.args[0], call.attrs
    shape = known_shape(data, "repeat")
    axis = attrs.axis % len(shape)
    split = (*shape[: axis + 1], attrs.repeats, *shape[axis + 1 :])
    return [SUM(RESHAPE(grad, newshape=split), axis=(axis + 1,))]


def _cumsum(call: Call, grad: RelayExpr) -> Gradients:
    """Each element is part of the sums that come after it."""
    data, attrs = call.args[0], call.attrs
    shape = known_shape(data, "cumsum")
    axis = 0 if attrs.axis is None else attrs.axis
    backwards = REVERSE(grad, axis=axis)
    total = Call(CUMSUM, (CAST_LIKE(backwards, data),), attrs.replace(axis=axis, dtype=""))
    found = REVERSE(total, axis=axis)
    return [RESHAPE(found, newshape=shape) if attrs.axis is None else found]


def _sequence_mask(call: Call, grad: RelayExpr) -> Gradients:
    lengths = call.args[1]
    return [Call(SEQUENCE_MASK, (grad, lengths), call.attrs.replace(mask_value=0.0)), ZEROS_LIKE(lengths)]  # fmt: skip


def _trilu(call: Call, grad: RelayExpr) -> Gradients:
    return [Call(TRILU, (grad, call.args[1]), call.attrs), ZEROS_LIKE(call.args[1])]


def _layout_transform(call: Call, grad: RelayExpr) -> Gradients:
    attrs = call.attrs
    back = LAYOUT_TRANSFORM(grad, src_layout=attrs.dst_layout, dst_layout=attrs.src_layout)
    shape, found = known_shape(call.args[0], "layout_transform"), shape_of(back)
    if found == shape:
        return [back]
    # what fills the last block is no element of the data
    return [STRIDED_SLICE(back, begin=(0,) * len(shape), end=shape)]


def _slice_like(call: Call, grad: RelayExpr) -> Gradients:
    data, like = call.args
    have, want = known_shape(data, "slice_like"), known_shape(call, "slice_like")
    widths = tuple([(0, n - m) for n, m in zip(have, want, strict=True)])
    zero = CAST_LIKE(const(0.0), grad)
    return [PAD(grad, zero, pad_width=widths), ZEROS_LIKE(like)]


def _full(call: Call, grad: RelayExpr) -> Gradients:
    return [CAST_LIKE(SUM(grad, axis=None), call.args[0])]


def _full_like(call: Call, grad: RelayExpr) -> Gradients:
    return [ZEROS_LIKE(call.args[0]), CAST_LIKE(SUM(grad, axis=None), call.args[1])]


for _op, _gradient in (
    (AVG_POOL2D_GRAD, _avg_pool2d_grad),
    (BROADCAST_TO_LIKE, _broadcast_to_like),
    (CONV2D_BACKWARD_WEIGHT, _conv2d_backward_weight),
    (CONV2D_TRANSPOSE, of_plain_result(_conv2d_transpose)),
    (CUMSUM, _cumsum),
    (DILATE, _dilate),
    (FULL, _full),
    (FULL_LIKE, _full_like),
    (GATHER, _gather),
    (LAYER_NORM, _layer_norm),
    (LAYOUT_TRANSFORM, _layout_transform),
    (LEAKY_RELU, _leaky_relu),
    (PRELU, _prelu),
    (REPEAT, _repeat),
    (SEQUENCE_MASK, _sequence_mask),
    (SLICE_LIKE, _slice_like),
    (TILE, _tile),
    (TRILU, _trilu),
):
    _op.set_facets(gradient=_gradient)
