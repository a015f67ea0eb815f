"""Gradients that need operators declared after the one that they belong to.

A gradient gives one expression for each argument, from the call and its result's gradient.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tvm.error import OpNotImplemented
from tvm.ir.expr import RelayExpr
from tvm.relay.analysis.infer import infer_type_of
from tvm.relay.expr import Call, Tuple, TupleGetItem, const

from .binary import DIVIDE, FLOOR_MOD, MULTIPLY
from .broadcasting import (
    BROADCAST_TO_LIKE,
    COLLAPSE_SUM_LIKE,
    COLLAPSE_SUM_TO,
)
from .creation import ARANGE, ONES, SHAPE_OF, ZEROS
from .dyn.tensor import DYN_ONES, DYN_ZEROS
from .dyn.transform import DYN_RESHAPE
from .indexing import ONE_HOT, STRIDED_SLICE, TAKE, WHERE, slice_ranges
from .joining import SPLIT, STACK
from .nn.activation import PAD
from .nn.conv import CONV2D
from .nn.conv_gradient import conv2d_backward_weight
from .nn.conv_transpose import conv2d_transpose
from .nn.dense import BATCH_MATMUL, MATMUL
from .nn.local import DILATE
from .nn.loss import CROSS_ENTROPY, CROSS_ENTROPY_WITH_LOGITS
from .nn.pooling import AVG_POOL2D, GLOBAL_AVG_POOL2D, MAX_POOL2D
from .nn.pooling_gradient import AVG_POOL2D_GRAD, MAX_POOL2D_GRAD
from .plain_results import of_plain_result
from .reduce import SUM
from .scatter import SCATTER_ND
from .shaping import RESHAPE, RESHAPE_LIKE, REVERSE, REVERSE_RESHAPE, SQUEEZE, TRANSPOSE, in_order
from .types import Dim, is_known, shape_of_type
from .unary import CAST_LIKE, CLIP, LOG, NEGATIVE, ONES_LIKE, ZEROS_LIKE


def shape_of(expr: RelayExpr) -> tuple[Dim, ...]:
    return shape_of_type(infer_type_of(expr))


def known_shape(expr: RelayExpr, who: str) -> tuple[int, ...]:
    shape = shape_of(expr)
    if not is_known(*shape):
        raise OpNotImplemented(f"the gradient of {who} requires known shapes, got {shape}")
    return shape  # type: ignore[return-value]


def _transposed(matrix: RelayExpr) -> RelayExpr:
    rank = len(shape_of(matrix))
    return TRANSPOSE(matrix, axes=(*range(rank - 2), rank - 1, rank - 2))


def _product_gradient(
    product: Callable[[RelayExpr, RelayExpr], RelayExpr],
) -> Callable[[Call, RelayExpr], list[RelayExpr]]:
    """Of a product of matrices, transposed or not; batches that were broadcast are summed."""

    def gradient(call: Call, grad: RelayExpr) -> list[RelayExpr]:
        a, b = call.args
        attrs = call.attrs
        left = _transposed(a) if attrs.transpose_a else a
        right = _transposed(b) if attrs.transpose_b else b
        to_left = product(grad, _transposed(right))
        to_right = product(_transposed(left), grad)
        to_a = _transposed(to_left) if attrs.transpose_a else to_left
        to_b = _transposed(to_right) if attrs.transpose_b else to_right
        return [COLLAPSE_SUM_LIKE(to_a, a), COLLAPSE_SUM_LIKE(to_b, b)]

    return gradient


def _conv2d_gradient(call: Call, grad: RelayExpr) -> list[RelayExpr]:
    data, weight = call.args
    attrs = call.attrs
    plain = ("NCHW", "OIHW")
    if (attrs.data_layout, attrs.kernel_layout) != plain:
        return _conv2d_gradient_in_layout(call, grad)
    extents, window = known_shape(data, "nn.conv2d"), known_shape(weight, "nn.conv2d")[2:]
    given = known_shape(call, "nn.conv2d")
    top, left, bottom, right = attrs.padding
    rest = []
    for i, pads in enumerate((top + bottom, left + right)):
        reach = (given[2 + i] - 1) * attrs.strides[i] + (window[i] - 1) * attrs.dilation[i] + 1
        rest.append(extents[2 + i] + pads - reach)
    to_data = conv2d_transpose(
        grad, weight, attrs.strides, attrs.padding, attrs.dilation, attrs.groups,
        channels=extents[1], kernel_size=window, output_padding=rest,
    )  # fmt: skip
    to_weight = conv2d_backward_weight(
        grad, data, attrs.strides, attrs.padding, attrs.dilation, attrs.groups, kernel_size=window
    )
    return [to_data, to_weight]


def _conv2d_gradient_in_layout(call: Call, grad: RelayExpr) -> list[RelayExpr]:
    """By the same convolution of data and kernel with channels first."""
    (data, weight), attrs = call.args, call.attrs
    layouts = (attrs.data_layout, attrs.kernel_layout)
    if any(not layout.isalpha() or not layout.isupper() for layout in layouts):
        raise OpNotImplemented(
            "the gradient of nn.conv2d requires layouts of whole axes, "
            f"got {' and '.join(layouts)}",
            hint='convert them first: relay.transform.ConvertLayout({"nn.conv2d": ["NCHW"]})',
        )  # fmt: skip
    first, kernel = in_order(data, layouts[0], "NCHW"), in_order(weight, layouts[1], "OIHW")
    plain = attrs.replace(data_layout="NCHW", kernel_layout="OIHW", out_layout="")
    moved = Call(CONV2D, (first, kernel), plain)
    to_data, to_weight = _conv2d_gradient(moved, in_order(grad, layouts[0], "NCHW"))
    return [in_order(to_data, "NCHW", layouts[0]), in_order(to_weight, "OIHW", layouts[1])]


def _global_avg_pool2d_gradient(call: Call, grad: RelayExpr) -> list[RelayExpr]:
    data, layout = call.args[0], call.attrs.layout
    extents = known_shape(data, "nn.global_avg_pool2d")
    count = extents[layout.index("H")] * extents[layout.index("W")]
    share = DIVIDE(grad, CAST_LIKE(const(count), grad))
    return [BROADCAST_TO_LIKE(share, data)]


def _cross_entropy_gradient(is_log: bool) -> Callable[[Call, RelayExpr], list[RelayExpr]]:
    def gradient(call: Call, grad: RelayExpr) -> list[RelayExpr]:
        predictions, targets = call.args
        batch = known_shape(predictions, "nn.cross_entropy")[0]
        share = DIVIDE(NEGATIVE(grad), CAST_LIKE(const(batch), grad))
        logs = predictions if is_log else LOG(predictions)
        slope = targets if is_log else DIVIDE(targets, predictions)
        return [MULTIPLY(share, slope), MULTIPLY(share, logs)]

    return gradient


def _take_gradient(call: Call, grad: RelayExpr) -> list[RelayExpr]:
    data, indices = call.args
    attrs = call.attrs
    if attrs.batch_dims:
        raise OpNotImplemented("the gradient of take requires batch_dims=0")
    shape, picked = known_shape(data, "take"), known_shape(indices, "take")
    flat = attrs.axis is None
    axis = 0 if flat else attrs.axis % len(shape)
    extents = (int(np.prod(shape)),) if flat else shape
    where = _index_in_range(RESHAPE(indices, newshape=(1, -1)), extents[axis], attrs.mode)
    rank = len(picked)
    rest = (*extents[:axis], *extents[axis + 1 :])
    # the axes of the indices come first, as scatter_nd wants them
    order = (*range(axis, axis + rank), *range(axis), *range(axis + rank, len(rest) + rank))
    updates = TRANSPOSE(grad, axes=order) if len(order) > 1 else grad
    updates = RESHAPE(updates, newshape=(int(np.prod(picked)), *rest))
    zeros = CAST_LIKE(ZEROS(shape=(extents[axis], *rest), dtype="float32"), data)
    total = SCATTER_ND(zeros, where, updates, mode="add")
    back = (*range(1, axis + 1), 0, *range(axis + 1, len(extents)))
    if len(extents) > 1:
        total = TRANSPOSE(total, axes=back)
    return [RESHAPE(total, newshape=shape) if flat else total, ZEROS_LIKE(indices)]


def _index_in_range(indices: RelayExpr, extent: int, mode: str) -> RelayExpr:
    if mode == "wrap":
        dtype = infer_type_of(indices).dtype
        return FLOOR_MOD(indices, const(extent, dtype))
    return CLIP(indices, a_min=0.0, a_max=float(extent - 1)) if mode == "clip" else indices


def _stack_gradient(call: Call, grad: RelayExpr) -> list[RelayExpr]:
    count = len(infer_type_of(call.args[0]).fields)
    parts = SPLIT(grad, indices_or_sections=count, axis=call.attrs.axis)
    axis = (call.attrs.axis,)
    return [Tuple([SQUEEZE(TupleGetItem(parts, i), axis=axis) for i in range(count)])]


def _arange_gradient(call: Call, grad: RelayExpr) -> list[RelayExpr]:
    # the numbers are start + i * step; the stop decides about their count alone
    start, stop, step = call.args
    positions = DIVIDE(call - start, step)
    return [
        SUM(grad, axis=None),
        ZEROS_LIKE(stop),
        SUM(MULTIPLY(grad, positions), axis=None),
    ]


def _where_gradient(call: Call, grad: RelayExpr) -> list[RelayExpr]:
    condition, x, y = call.args
    none = ZEROS_LIKE(grad)
    return [
        ZEROS_LIKE(condition),
        COLLAPSE_SUM_LIKE(WHERE(condition, grad, none), x),
        COLLAPSE_SUM_LIKE(WHERE(condition, none, grad), y),
    ]


def _strided_slice_gradient(call: Call, grad: RelayExpr) -> list[RelayExpr]:
    """The elements go back to their places, with zeros between and around."""
    shape = known_shape(call.args[0], "strided_slice")
    widths, steps = [], []
    for axis, (begin, count, stride) in enumerate(slice_ranges(call.attrs, shape)):
        assert isinstance(count, int)
        first = begin if stride > 0 else begin + (count - 1) * stride
        if stride < 0:
            grad = REVERSE(grad, axis=axis)
        steps.append(abs(stride))
        reach = (count - 1) * abs(stride) + 1 if count else 0
        widths.append((first, shape[axis] - first - reach))
    if any([step != 1 for step in steps]):
        grad = DILATE(grad, strides=tuple(steps))
    zero = CAST_LIKE(const(0.0), grad)
    return [PAD(grad, zero, pad_width=tuple(widths))]


def constant_border_gradient(call: Call, grad: RelayExpr) -> list[RelayExpr]:
    """Of data and the one value around it."""
    data = call.args[0]
    shape = known_shape(data, "nn.pad")
    begins = tuple([before for before, _ in call.attrs.pad_width])
    ends = tuple([b + extent for b, extent in zip(begins, shape, strict=True)])
    inner = STRIDED_SLICE(grad, begin=begins, end=ends)
    return [inner, SUM(grad, axis=None) - SUM(inner, axis=None)]


def _one_hot_gradient(call: Call, grad: RelayExpr) -> list[RelayExpr]:
    indices, on, off = call.args
    # the same vectors of ones and zeros tell which of the two values stands where
    hot = CAST_LIKE(
        Call(ONE_HOT, (indices, const(1, "int32"), const(0, "int32")), call.attrs.replace(dtype="int32")),
        grad,
    )  # fmt: skip
    to_on = SUM(MULTIPLY(grad, hot), axis=None)
    to_off = SUM(MULTIPLY(grad, ONES_LIKE(hot) - hot), axis=None)
    return [ZEROS_LIKE(indices), CAST_LIKE(to_on, on), CAST_LIKE(to_off, off)]


def filled_gradient(call: Call, grad: RelayExpr) -> list[RelayExpr]:
    """Zeros: the result does not depend on the elements continuously."""
    return [ZEROS_LIKE(argument) for argument in call.args]


def _reshape_like_gradient(call: Call, grad: RelayExpr) -> list[RelayExpr]:
    return [RESHAPE_LIKE(grad, call.args[0]), ZEROS_LIKE(call.args[1])]


def _pooled(gradient_op: object) -> Callable[[Call, RelayExpr], list[RelayExpr]]:
    return lambda call, grad: [Call(gradient_op, (grad, call.args[0]), call.attrs)]


def _matmul(a: RelayExpr, b: RelayExpr) -> RelayExpr:
    return MATMUL(a, b)


def _batch_matmul(a: RelayExpr, b: RelayExpr) -> RelayExpr:
    return BATCH_MATMUL(a, b, transpose_a=False, transpose_b=False)


for _op, _gradient in (
    (MATMUL, of_plain_result(_product_gradient(_matmul))),
    (BATCH_MATMUL, of_plain_result(_product_gradient(_batch_matmul))),
    (CONV2D, of_plain_result(_conv2d_gradient)),
    (MAX_POOL2D, _pooled(MAX_POOL2D_GRAD)),
    (AVG_POOL2D, _pooled(AVG_POOL2D_GRAD)),
    (GLOBAL_AVG_POOL2D, of_plain_result(_global_avg_pool2d_gradient)),
    (CROSS_ENTROPY, _cross_entropy_gradient(is_log=False)),
    (CROSS_ENTROPY_WITH_LOGITS, _cross_entropy_gradient(is_log=True)),
    (TAKE, _take_gradient),
    (STACK, _stack_gradient),
    (ARANGE, _arange_gradient),
    (WHERE, _where_gradient),
    (STRIDED_SLICE, _strided_slice_gradient),
    (ONE_HOT, _one_hot_gradient),
    (ZEROS, filled_gradient),
    (ONES, filled_gradient),
    (DYN_ZEROS, filled_gradient),
    (DYN_ONES, filled_gradient),
    (SHAPE_OF, filled_gradient),
    (REVERSE_RESHAPE, lambda call, grad: [RESHAPE_LIKE(grad, call.args[0])]),
    (RESHAPE_LIKE, _reshape_like_gradient),
    (DYN_RESHAPE, _reshape_like_gradient),
):
    _op.set_facets(gradient=_gradient)

COLLAPSE_SUM_LIKE.set_facets(
    gradient=lambda call, grad: [
        BROADCAST_TO_LIKE(grad, call.args[0]), ZEROS_LIKE(call.args[1])
    ]
)  # fmt: skip
COLLAPSE_SUM_TO.set_facets(gradient=lambda call, grad: [BROADCAST_TO_LIKE(grad, call.args[0])])
