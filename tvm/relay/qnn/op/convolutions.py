"""Convolutions of quantised tensors over one to three axes, plain and transposed, in 32 bits.

With zero points z and w, the sum of (x - z) * (y - w) is the sum of x * (y - w) less z times the
sum of (y - w), which does not depend on the data where the border of the data stands for zero.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tvm.ir.attrs import Attrs
from tvm.ir.expr import RelayExpr
from tvm.ir.op import Op
from tvm.ir.type import Type
from tvm.relay.analysis.infer import tensor_type_of
from tvm.relay.expr import Call, const
from tvm.relay.op import nn as layers
from tvm.relay.op.attributes import padding_pairs
from tvm.relay.op.layout_shapes import axis_of
from tvm.relay.op.operator import (
    Expr,
    OperatorFunction,
    OptionalSpatial2,
    OptionalStr,
    P,
    Padding2,
    R,
    Spatial2,
    operator,
)
from tvm.relay.op.parameters import more_parameters, same_parameters
from tvm.relay.op.registry import ops
from tvm.relay.op.types import Dim, shape_of_type

from .common import cast, is_zero, scalar_value
from .sums import INPUTS, product_type, shifted, sums_of


def _bordered(attrs: Attrs, data: RelayExpr, zero_point: RelayExpr) -> tuple[RelayExpr, Attrs]:
    """The data with a border that stands for zero, and the convolution's attributes without one."""
    zero = scalar_value(zero_point)
    if zero == 0 or not any(attrs.padding):
        return data, attrs
    rank = len(attrs.strides)
    pads = padding_pairs(attrs.padding, rank)
    widths = [(0, 0)] * len(attrs.data_layout)
    for i, axis in enumerate("DHW"[3 - rank :]):
        widths[axis_of(attrs.data_layout, axis)] = (pads[i], pads[i + rank])
    value = const(int(zero or 0), tensor_type_of(data).dtype)
    inner = attrs.replace(padding=(0,) * (2 * rank))
    return ops.nn.pad(data, value, pad_width=tuple(widths)), inner


def _canonical_conv(op: Op) -> Callable[..., RelayExpr]:
    def canonicalize(attrs: Attrs, inputs: Sequence[RelayExpr], types: Sequence[Type]) -> RelayExpr:
        data, weight, zero, weight_zero = inputs[:4]
        weight = _shifted_kernel(attrs, weight, weight_zero)
        if scalar_value(zero) is None:
            return Call(op, [shifted(data, zero), weight], attrs)
        data, inner = _bordered(attrs, data, zero)
        product = Call(op, [data, weight], inner)
        if is_zero(zero):
            return product
        channels = shape_of_type(tensor_type_of(data))[axis_of(attrs.data_layout, "C")]
        sums = _kernel_sums(attrs, weight, channels)
        excess = ops.multiply(sums, cast(zero, attrs.out_dtype))
        layout = attrs.out_layout or attrs.data_layout
        trailing = len(layout) - 1 - axis_of(layout, "C")
        if trailing:
            excess = ops.expand_dims(excess, axis=1, num_newaxis=trailing)
        return ops.subtract(product, excess)

    return canonicalize


def _shifted_kernel(attrs: Attrs, weight: RelayExpr, zero_point: RelayExpr) -> RelayExpr:
    outer, inner = axis_of(attrs.kernel_layout, "O"), axis_of(attrs.kernel_layout, "I")
    extents = shape_of_type(tensor_type_of(weight))
    points = shape_of_type(tensor_type_of(zero_point))
    if points in ((), (1,), (extents[outer],)) or not _is_depthwise(attrs, weight):
        return shifted(weight, zero_point, outer)
    # output channels are O and I together
    shape = [extents[i] if i in (outer, inner) else 1 for i in range(len(extents))]
    return shifted(weight, ops.reshape(zero_point, newshape=tuple(shape)))


def _is_depthwise(attrs: Attrs, weight: RelayExpr) -> bool:
    """Whether a kernel may have several filters for each channel of the data, in I."""
    outer = shape_of_type(tensor_type_of(weight))[axis_of(attrs.kernel_layout, "O")]
    is_by_channel = attrs.kernel_layout == "HWOI" or outer == attrs.groups
    return bool(attrs.groups > 1 and is_by_channel)


def _kernel_sums(attrs: Attrs, weight: RelayExpr, channels: Dim) -> RelayExpr:
    """The sum of the weight over each output channel's window; of data with so many channels."""
    layout = attrs.kernel_layout
    multiplied = _is_depthwise(attrs, weight) and channels == attrs.groups
    kept = "OI" if multiplied else "O"  # then output channels are O and I together
    axes = tuple([i for i, axis in enumerate(layout) if axis not in kept])
    total = sums_of(weight, axes, attrs.out_dtype)
    return ops.reshape(total, newshape=(-1,)) if multiplied else total


def _canonical_transpose(op: Op) -> Callable[..., RelayExpr]:
    def canonicalize(attrs: Attrs, inputs: Sequence[RelayExpr], types: Sequence[Type]) -> RelayExpr:
        # zeros between the elements stand for zero, so the data must have no zero point
        data = shifted(inputs[0], inputs[2])
        return Call(op, [data, _shifted_transpose_kernel(attrs, *inputs[1:4:2])], attrs)

    return canonicalize


def _shifted_transpose_kernel(attrs: Attrs, weight: RelayExpr, zero_point: RelayExpr) -> RelayExpr:
    """The weight less its zero points; those of groups lie side by side, its O are of one group."""
    layout, groups = attrs.kernel_layout, attrs.groups
    axis = axis_of(layout, "O")
    if is_zero(zero_point) or groups == 1:
        return shifted(weight, zero_point, axis)
    if tensor_type_of(zero_point).concrete_shape in ((), (1,)):
        return shifted(weight, zero_point, axis)
    extents = tensor_type_of(weight).concrete_shape
    inner = axis_of(layout, "I")
    split = [*extents[:inner], groups, extents[inner] // groups, *extents[inner + 1 :]]
    point_shape = [1] * len(split)
    point_shape[inner], point_shape[axis + (axis > inner)] = groups, extents[axis]
    zeros = ops.reshape(zero_point, newshape=(groups, extents[axis]))
    if axis < inner:
        zeros = ops.transpose(zeros, axes=None)
    zeros = ops.reshape(zeros, newshape=tuple(point_shape))
    return ops.reshape(
        shifted(ops.reshape(weight, newshape=tuple(split)), zeros), newshape=tuple(extents)
    )


def _conv(
    plain: OperatorFunction[..., Any],
) -> Callable[[Callable[P, R | None]], OperatorFunction[P, R]]:
    """The quantised form of a convolution."""
    op = plain.op
    name = f"qnn.{op.name.removeprefix('nn.')}"
    canonical = _canonical_transpose if "transpose" in name else _canonical_conv
    return operator(
        name,
        plain,
        inputs=INPUTS,
        infer_type=product_type(op, name),
        qnn_canonicalize=canonical(op),
    )


@_conv(layers.conv2d)
def conv2d(
    data: Expr,
    kernel: Expr,
    input_zero_point: Expr,
    kernel_zero_point: Expr,
    input_scale: Expr,
    kernel_scale: Expr,
    kernel_size: OptionalSpatial2,
    channels: int | None,
    strides: Spatial2 = (1, 1),
    padding: Padding2 = (0, 0),
    dilation: Spatial2 = (1, 1),
    groups: int = 1,
    data_layout: str = "NCHW",
    kernel_layout: str = "OIHW",
    out_layout: OptionalStr = "",
    out_dtype: str = "int32",
) -> RelayExpr:
    """Convolution of quantised tensors; the result has the scale input_scale * kernel_scale.

    Parameters
    ----------
    data, kernel : relay.Expr
        Integers of 8 bits (the data also of 16).
    input_zero_point, kernel_zero_point, input_scale, kernel_scale : relay.Expr
        Scalars; the kernel's may be vectors over the output channels.
    kernel_size, channels
        The kernel's extents and the output channels.
    strides, padding, dilation, groups, data_layout, kernel_layout, out_layout
        As in `relay.nn.conv2d`.
    out_dtype : str
        The dtype of the sums: "int32", "int16" or "int64".
    """


@_conv(layers.conv3d)
@more_parameters(layers.conv3d, {"weight": "kernel"})
def conv3d(
    kernel: Expr,
    input_zero_point: Expr,
    kernel_zero_point: Expr,
    input_scale: Expr,
    kernel_scale: Expr,
    *,
    out_dtype: str = "int32",
) -> None:
    """Convolution of quantised tensors over three axes; parameters as in `conv2d`."""


@_conv(layers.conv1d)
@same_parameters(conv3d, rank=1)
def conv1d() -> None:
    """Convolution of quantised tensors over one axis; parameters as in `conv2d`."""


@_conv(layers.conv2d_transpose)
@more_parameters(layers.conv2d_transpose)
def conv2d_transpose(
    weight: Expr,
    input_zero_point: Expr,
    kernel_zero_point: Expr,
    input_scale: Expr,
    kernel_scale: Expr,
    *,
    out_dtype: str = "int32",
) -> None:
    """Transposed convolution of quantised tensors; parameters as in `conv2d`.

    Parameters
    ----------
    output_padding : int or sequence of int
        What is added to one side of the output.
    """


@_conv(layers.conv1d_transpose)
@same_parameters(conv2d_transpose, rank=1)
def conv1d_transpose() -> None:
    """Transposed convolution of quantised tensors over one axis; as `conv2d_transpose`."""


@_conv(layers.conv3d_transpose)
@same_parameters(conv2d_transpose, rank=3)
def conv3d_transpose() -> None:
    """Transposed convolution of quantised tensors over three axes; as `conv2d_transpose`."""


PLAIN_CONVOLUTIONS = (conv1d.op, conv2d.op, conv3d.op)
TRANSPOSED_CONVOLUTIONS = (conv1d_transpose.op, conv2d_transpose.op, conv3d_transpose.op)
