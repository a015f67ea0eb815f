"""Convolutions and matrix products of quantised tensors, in 32 bits.

With zero points z and w, the sum of (x - z) * (y - w) is the sum of x * (y - w) less z times the
sum of (y - w), which does not depend on the data. So 8-bit data meets the weight as it is, and
what is subtracted is a constant of each output channel.
"""

from __future__ import annotations

from collections.abc import Sequence

from tvm.ir.expr import RelayExpr
from tvm.ir.op import Op
from tvm.ir.type import Type
from tvm.relay.expr import Call, const
from tvm.relay.op.attributes import as_int, as_ints, padding_pairs, spread
from tvm.relay.op.binary import MULTIPLY, SUBTRACT
from tvm.relay.op.layout_shapes import axis_of
from tvm.relay.op.nn.activation import PAD
from tvm.relay.op.nn.conv import CONV2D, Conv2DAttrs, conv_attrs
from tvm.relay.op.nn.conv_transpose import CONV2D_TRANSPOSE, Conv2DTransposeAttrs
from tvm.relay.op.nn.dense import (
    BATCH_MATMUL,
    CONTRIB_DENSE_PACK,
    DENSE,
    BatchMatmulAttrs,
    DenseAttrs,
    DensePackAttrs,
)
from tvm.relay.op.reduce import SUM
from tvm.relay.op.registry import define_op
from tvm.relay.op.shaping import EXPAND_DIMS, RESHAPE, layout_transform
from tvm.relay.op.types import TypeRelation, expect, shape_of_type
from tvm.relay.op.unary import CAST

from .common import (
    along_axis,
    cast,
    constant_array,
    expect_dtype,
    expect_scale,
    expect_zero_point,
    is_zero,
    scalar_value,
    type_of,
)

_INPUTS = (
    "data", "weight", "input_zero_point", "kernel_zero_point", "input_scale", "kernel_scale",
)  # fmt: skip
_DATA = ("int8", "uint8", "int16")
_SUMS = ("int16", "int32", "int64")


def _product_type(op: Op, who: str, sums: Sequence[str] = _SUMS) -> TypeRelation:
    """The plain operator's type; the weight's parameters may be vectors over its channels."""

    def relation(attrs: object, arg_types: Sequence[Type]) -> Type:
        for i, argument in enumerate(_INPUTS[:2]):
            expect_dtype(arg_types[i], _DATA, who, argument)
        assert op.infer_type is not None
        out = op.infer_type(attrs, arg_types[:2])
        channel = _channel_axis(attrs, len(out.shape))
        expect_zero_point(arg_types[2], who, "input_zero_point")
        expect_zero_point(arg_types[3], who, "kernel_zero_point", out, channel)
        expect_scale(arg_types[4], who, "input_scale")
        expect_scale(arg_types[5], who, "kernel_scale", out, channel)
        expect(out.dtype in sums, f"{who} requires out_dtype of {', '.join(sums)}, got {out.dtype}")
        return out  # type: ignore[no-any-return]

    return relation


def _channel_axis(attrs: object, rank: int) -> int:
    layout = getattr(attrs, "data_layout", "")
    return axis_of(layout, "C") if layout else rank - 1


def _shifted(value: RelayExpr, zero_point: RelayExpr, axis: int | None = None) -> RelayExpr:
    """`value - zero_point`, in 8 bits where that is exact, else in 16 or 32."""
    if is_zero(zero_point):
        return value
    ty = type_of(value)
    wide = "int16" if ty.dtype in ("int8", "uint8") else "int32"
    zero = zero_point if axis is None else along_axis(zero_point, len(ty.shape), axis)
    zero = CAST(zero, dtype=wide) if constant_array(zero) is None else _constant(zero, wide)
    moved = SUBTRACT(CAST(value, dtype=wide), zero)
    numbers = constant_array(zero_point)
    if ty.dtype == "uint8" and numbers is not None and (numbers == 128).all():
        return CAST(moved, dtype="int8")
    return moved


def _constant(expr: RelayExpr, dtype: str) -> RelayExpr:
    return const(constant_array(expr), dtype)


def _bordered(
    attrs: Conv2DAttrs, data: RelayExpr, zero_point: RelayExpr
) -> tuple[RelayExpr, Conv2DAttrs]:
    """The data with a border that stands for zero, and the convolution's attributes without one."""
    zero = scalar_value(zero_point)
    if zero == 0 or not any(attrs.padding):
        return data, attrs
    pads = padding_pairs(attrs.padding, 2)
    widths = [(0, 0)] * len(attrs.data_layout)
    for i, axis in enumerate("HW"):
        widths[axis_of(attrs.data_layout, axis)] = (pads[i], pads[i + 2])
    value = const(int(zero or 0), type_of(data).dtype)
    return PAD(data, value, pad_width=tuple(widths)), attrs.replace(padding=(0, 0, 0, 0))


def _canonicalize_conv2d(
    attrs: Conv2DAttrs, inputs: Sequence[RelayExpr], types: Sequence[Type]
) -> RelayExpr:
    data, weight, zero, weight_zero = inputs[:4]
    weight = _shifted_kernel(attrs, weight, weight_zero)
    if scalar_value(zero) is None:
        return Call(CONV2D, [_shifted(data, zero), weight], attrs)
    data, inner = _bordered(attrs, data, zero)
    product = Call(CONV2D, [data, weight], inner)
    if is_zero(zero):
        return product
    excess = MULTIPLY(_kernel_sums(attrs, weight), cast(zero, attrs.out_dtype))
    layout = attrs.out_layout or attrs.data_layout
    trailing = len(layout) - 1 - axis_of(layout, "C")
    if trailing:
        excess = EXPAND_DIMS(excess, axis=1, num_newaxis=trailing)
    return SUBTRACT(product, excess)


def _shifted_kernel(attrs: Conv2DAttrs, weight: RelayExpr, zero_point: RelayExpr) -> RelayExpr:
    layout = attrs.kernel_layout
    shape = type_of(zero_point).shape
    if layout == "HWOI" and attrs.groups > 1 and len(shape) == 1 and int(shape[0]) > 1:
        extents = type_of(weight).shape
        return _shifted(weight, RESHAPE(zero_point, newshape=tuple([int(d) for d in extents[2:]])))
    return _shifted(weight, zero_point, axis_of(layout, "O"))


def _kernel_sums(attrs: Conv2DAttrs, weight: RelayExpr) -> RelayExpr:
    """The sum of the weight over each output channel's window."""
    layout = attrs.kernel_layout
    multiplied = layout == "HWOI" and attrs.groups > 1  # output channels are O and I together
    kept = "OI" if multiplied else "O"
    axes = tuple([i for i, axis in enumerate(layout) if axis not in kept])
    total = SUM(CAST(weight, dtype=attrs.out_dtype), axis=axes)
    return RESHAPE(total, newshape=(-1,)) if multiplied else total


CONV2D_QUANTIZED = define_op(
    "qnn.conv2d",
    Conv2DAttrs,
    inputs=_INPUTS,
    infer_type=_product_type(CONV2D, "qnn.conv2d"),
    qnn_canonicalize=_canonicalize_conv2d,
)


def _canonicalize_conv2d_transpose(
    attrs: Conv2DTransposeAttrs, inputs: Sequence[RelayExpr], types: Sequence[Type]
) -> RelayExpr:
    # zeros between the elements stand for zero, so the data must have no zero point
    data = _shifted(inputs[0], inputs[2])
    weight = _shifted(inputs[1], inputs[3], axis_of(attrs.kernel_layout, "O"))
    return Call(CONV2D_TRANSPOSE, [data, weight], attrs)


CONV2D_TRANSPOSE_QUANTIZED = define_op(
    "qnn.conv2d_transpose",
    Conv2DTransposeAttrs,
    inputs=_INPUTS,
    infer_type=_product_type(CONV2D_TRANSPOSE, "qnn.conv2d_transpose"),
    qnn_canonicalize=_canonicalize_conv2d_transpose,
)


def _canonicalize_dense(
    attrs: DenseAttrs, inputs: Sequence[RelayExpr], types: Sequence[Type]
) -> RelayExpr:
    data, weight, zero, weight_zero = inputs[:4]
    weight = _shifted(weight, weight_zero, 0)
    return _less_zero(Call(DENSE, [data, weight], attrs), weight, 1, zero, attrs.out_dtype)


def _less_zero(
    product: RelayExpr, weight: RelayExpr, axis: int, zero: RelayExpr, dtype: str
) -> RelayExpr:
    """The product less `zero` times the sums of the weight along its inner axis."""
    if is_zero(zero):
        return product
    sums = SUM(CAST(weight, dtype=dtype), axis=(axis,))
    return SUBTRACT(product, MULTIPLY(sums, cast(zero, dtype)))


DENSE_QUANTIZED = define_op(
    "qnn.dense",
    DenseAttrs,
    inputs=_INPUTS,
    infer_type=_product_type(DENSE, "qnn.dense"),
    qnn_canonicalize=_canonicalize_dense,
)


def _canonicalize_dense_pack(
    attrs: DensePackAttrs, inputs: Sequence[RelayExpr], types: Sequence[Type]
) -> RelayExpr:
    data, packed, zero, weight_zero = inputs[:4]
    if len(type_of(weight_zero).shape) == 0:
        packed = _shifted(packed, weight_zero)
        product = Call(CONTRIB_DENSE_PACK, [data, packed], attrs)
        if is_zero(zero):
            return product
        return _less_zero(
            product, layout_transform(packed, attrs.weight_layout, "NC"), 1, zero, attrs.out_dtype
        )
    weight = _shifted(layout_transform(packed, attrs.weight_layout, "NC"), weight_zero, 0)
    product = DENSE(data, weight, units=attrs.units, out_dtype=attrs.out_dtype)
    return _less_zero(product, weight, 1, zero, attrs.out_dtype)


CONTRIB_DENSE_PACK_QUANTIZED = define_op(
    "qnn.contrib_dense_pack",
    DensePackAttrs,
    inputs=_INPUTS,
    infer_type=_product_type(CONTRIB_DENSE_PACK, "qnn.contrib_dense_pack"),
    qnn_canonicalize=_canonicalize_dense_pack,
)


def _canonicalize_batch_matmul(
    attrs: BatchMatmulAttrs, inputs: Sequence[RelayExpr], types: Sequence[Type]
) -> RelayExpr:
    """Neither operand is constant as a rule, so the sums of both are subtracted."""
    x, y, x_zero, y_zero = inputs[:4]
    dtype = attrs.out_dtype
    inner = (1 if attrs.transpose_a else 2, 2 if attrs.transpose_b else 1)
    result = Call(BATCH_MATMUL, [x, y], attrs)
    if not is_zero(x_zero):
        columns = _sums_of_rows(y, inner[1], 1, dtype)
        result = SUBTRACT(result, MULTIPLY(columns, cast(x_zero, dtype)))
    if not is_zero(y_zero):
        # the sums of x less its zero point
        extent = shape_of_type(type_of(x))[inner[0]]
        rows = _sums_of_rows(
            x if isinstance(extent, int) else _shifted(x, x_zero), inner[0], 2, dtype
        )
        if not is_zero(x_zero) and isinstance(extent, int):
            rows = SUBTRACT(rows, MULTIPLY(cast(x_zero, dtype), const(extent, dtype)))
        result = SUBTRACT(result, MULTIPLY(rows, cast(y_zero, dtype)))
    return result


def _sums_of_rows(value: RelayExpr, inner: int, one: int, dtype: str) -> RelayExpr:
    """Sums along the inner axis, with an axis of extent 1 at position `one`."""
    return EXPAND_DIMS(SUM(CAST(value, dtype=dtype), axis=(inner,)), axis=one, num_newaxis=1)


BATCH_MATMUL_QUANTIZED = define_op(
    "qnn.batch_matmul",
    BatchMatmulAttrs,
    inputs=("x", "y", "x_zero_point", "y_zero_point", "x_scale", "y_scale"),
    infer_type=_product_type(BATCH_MATMUL, "qnn.batch_matmul"),
    qnn_canonicalize=_canonicalize_batch_matmul,
)


# those whose sums are of 32 bits
PRODUCTS = (
    CONV2D_QUANTIZED, CONV2D_TRANSPOSE_QUANTIZED, DENSE_QUANTIZED, CONTRIB_DENSE_PACK_QUANTIZED,
    BATCH_MATMUL_QUANTIZED,
)  # fmt: skip


def conv2d(
    data: RelayExpr,
    kernel: RelayExpr,
    input_zero_point: RelayExpr,
    kernel_zero_point: RelayExpr,
    input_scale: RelayExpr,
    kernel_scale: RelayExpr,
    kernel_size: int | Sequence[int],
    channels: int,
    strides: int | Sequence[int] = (1, 1),
    padding: int | Sequence[int] = (0, 0),
    dilation: int | Sequence[int] = (1, 1),
    groups: int = 1,
    data_layout: str = "NCHW",
    kernel_layout: str = "OIHW",
    out_layout: str = "",
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
    return CONV2D_QUANTIZED(
        data, kernel, input_zero_point, kernel_zero_point, input_scale, kernel_scale,
        **conv_attrs(strides, padding, dilation, groups, channels, kernel_size, 2),
        data_layout=data_layout, kernel_layout=kernel_layout, out_layout=out_layout,
        out_dtype=str(out_dtype),
    )  # fmt: skip


def conv2d_transpose(
    data: RelayExpr,
    weight: RelayExpr,
    input_zero_point: RelayExpr,
    kernel_zero_point: RelayExpr,
    input_scale: RelayExpr,
    kernel_scale: RelayExpr,
    strides: int | Sequence[int] = (1, 1),
    padding: int | Sequence[int] = (0, 0),
    dilation: int | Sequence[int] = (1, 1),
    groups: int = 1,
    channels: int | None = None,
    kernel_size: int | Sequence[int] | None = None,
    data_layout: str = "NCHW",
    kernel_layout: str = "IOHW",
    out_layout: str = "",
    output_padding: int | Sequence[int] = (0, 0),
    out_dtype: str = "int32",
) -> RelayExpr:
    """Transposed convolution of quantised tensors; parameters as in `conv2d`.

    Parameters
    ----------
    output_padding : int or sequence of int
        What is added to one side of the output.
    """
    return CONV2D_TRANSPOSE_QUANTIZED(
        data, weight, input_zero_point, kernel_zero_point, input_scale, kernel_scale,
        **conv_attrs(strides, padding, dilation, groups, channels, kernel_size, 2),
        data_layout=data_layout, kernel_layout=kernel_layout, out_layout=out_layout,
        output_padding=spread(as_ints(output_padding), 2), out_dtype=str(out_dtype),
    )  # fmt: skip


def dense(
    data: RelayExpr,
    weight: RelayExpr,
    input_zero_point: RelayExpr,
    kernel_zero_point: RelayExpr,
    input_scale: RelayExpr,
    kernel_scale: RelayExpr,
    units: int | None,
    out_dtype: str = "int32",
) -> RelayExpr:
    """A dense layer of quantised tensors; the result has the scale input_scale * kernel_scale.

    Parameters
    ----------
    data, weight : relay.Expr
        Integers of 8 bits; the weight has the shape (units, inner).
    input_zero_point, kernel_zero_point, input_scale, kernel_scale : relay.Expr
        Scalars; the weight's may be vectors over the units.
    units : int
        The number of output columns.
    out_dtype : str
        The dtype of the sums.
    """
    return DENSE_QUANTIZED(
        data, weight, input_zero_point, kernel_zero_point, input_scale, kernel_scale,
        units=None if units is None else as_int(units), out_dtype=str(out_dtype),
    )  # fmt: skip


def contrib_dense_pack(
    data: RelayExpr,
    weight: RelayExpr,
    input_zero_point: RelayExpr,
    kernel_zero_point: RelayExpr,
    input_scale: RelayExpr,
    kernel_scale: RelayExpr,
    kernel_layout: str = "NC",
    units: int | None = None,
    out_dtype: str = "int32",
) -> RelayExpr:
    """A dense layer with a packed weight; parameters as in `dense`.

    Parameters
    ----------
    kernel_layout : str
        The weight's layout, such as "NC16n".
    """
    return CONTRIB_DENSE_PACK_QUANTIZED(
        data, weight, input_zero_point, kernel_zero_point, input_scale, kernel_scale,
        weight_layout=kernel_layout, units=None if units is None else as_int(units),
        out_dtype=str(out_dtype),
    )  # fmt: skip


def batch_matmul(
    x: RelayExpr,
    y: RelayExpr,
    x_zero_point: RelayExpr,
    y_zero_point: RelayExpr,
    x_scale: RelayExpr,
    y_scale: RelayExpr,
    out_dtype: str = "int32",
) -> RelayExpr:
    """A batch of matrix products x @ y.T; the result has the scale x_scale * y_scale.

    Parameters
    ----------
    x, y : relay.Expr
        Integers of three dimensions.
    x_zero_point, y_zero_point, x_scale, y_scale : relay.Expr
        Scalars.
    out_dtype : str
        The dtype of the sums.
    """
    return BATCH_MATMUL_QUANTIZED(
        x, y, x_zero_point, y_zero_point, x_scale, y_scale, out_dtype=str(out_dtype)
    )
