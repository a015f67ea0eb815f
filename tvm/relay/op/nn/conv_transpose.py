"""Transposed convolutions over one to three spatial axes."""

from __future__ import annotations

from collections.abc import Sequence

from tvm import te, topi
from tvm.ir.attrs import Attrs
from tvm.ir.expr import RelayExpr
from tvm.ir.op import Op
from tvm.ir.type import Type

from ..attributes import padding_pairs, spread
from ..layout_shapes import axes_extents, shape_in_layout
from ..registry import OpPattern, Precision, define_op
from ..types import Dim, TypeRelation, apply, expect_dim, expect_tensor, shape_of_type, tensor
from .conv import PLAIN_SCHEDULES, Conv1DAttrs, Conv2DAttrs, Conv3DAttrs, conv_attrs


class Conv1DTransposeAttrs(Conv1DAttrs, key="relay.attrs.Conv1DTransposeAttrs"):
    """A transposed convolution over one axis."""

    output_padding: tuple[int, ...] = (0,)


class Conv2DTransposeAttrs(Conv2DAttrs, key="relay.attrs.Conv2DTransposeAttrs"):
    """A transposed convolution over two axes."""

    output_padding: tuple[int, ...] = (0, 0)


class Conv3DTransposeAttrs(Conv3DAttrs, key="relay.attrs.Conv3DTransposeAttrs"):
    """A transposed convolution over three axes."""

    output_padding: tuple[int, ...] = (0, 0, 0)


def conv_transpose_type(who: str, spatial: str) -> TypeRelation:
    """The type of a transposed convolution; the weight's O are the channels of one group."""

    def relation(attrs: Attrs, arg_types: Sequence[Type]) -> Type:
        data = expect_tensor(arg_types[0], who)
        weight = expect_tensor(arg_types[1], who, "weight")
        have = axes_extents(shape_of_type(data), attrs.data_layout, who)
        kernel = axes_extents(shape_of_type(weight), attrs.kernel_layout, f"{who}'s weight")
        expect_dim(kernel["I"], have["C"], who, "the weight's input channels")
        rank = len(spatial)
        pad = padding_pairs(attrs.padding, rank)
        channels = apply(lambda o: o * attrs.groups, kernel["O"])
        if attrs.channels is not None:
            expect_dim(channels, attrs.channels, who, "the weight's output channels")
        out: dict[str, Dim] = {"N": have["N"], "C": channels}
        for i, axis in enumerate(spatial):
            grow = attrs.output_padding[i] - pad[i] - pad[i + rank]
            stride, dilation = attrs.strides[i], attrs.dilation[i]
            out[axis] = apply(
                lambda e, k, s=stride, d=dilation, g=grow: (e - 1) * s + (k - 1) * d + 1 + g,
                have[axis],
                kernel[axis],
            )
        shape = shape_in_layout(out, attrs.out_layout or attrs.data_layout)
        return tensor(shape, attrs.out_dtype or data.dtype)

    return relation


def _compute(attrs: Attrs, inputs: Sequence[te.Tensor], out_type: Type) -> list[te.Tensor]:
    return [
        topi.nn.conv_transpose(
            *inputs, attrs.strides, attrs.padding, attrs.dilation, attrs.output_padding,
            attrs.groups, attrs.data_layout, attrs.kernel_layout,
            out_type.dtype,  # type: ignore[attr-defined]
        )
    ]  # fmt: skip


def _conv_transpose(name: str, attrs_type: type[Attrs], spatial: str) -> Op:
    return define_op(
        name,
        attrs_type,
        inputs=("data", "weight"),
        infer_type=conv_transpose_type(name, spatial),
        fuse=OpPattern.OUT_ELEMWISE_FUSABLE,
        compute=_compute,
        schedules=PLAIN_SCHEDULES,
        precision=Precision.ALWAYS,
    )


CONV1D_TRANSPOSE = _conv_transpose("nn.conv1d_transpose", Conv1DTransposeAttrs, "W")
CONV2D_TRANSPOSE = _conv_transpose("nn.conv2d_transpose", Conv2DTransposeAttrs, "HW")
CONV3D_TRANSPOSE = _conv_transpose("nn.conv3d_transpose", Conv3DTransposeAttrs, "DHW")


def conv2d_transpose(
    data: RelayExpr,
    weight: RelayExpr,
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
    out_dtype: str = "",
) -> RelayExpr:
    """Transposed convolution over two spatial axes.

    Parameters are those of `conv2d`, and

    output_padding : int or sequence of int
        Extra rows and columns at the end of the output.
    """
    return CONV2D_TRANSPOSE(
        data,
        weight,
        **conv_attrs(strides, padding, dilation, groups, channels, kernel_size, 2),
        data_layout=data_layout,
        kernel_layout=kernel_layout,
        out_layout=out_layout,
        output_padding=spread(output_padding, 2),
        out_dtype=out_dtype or "",
    )


def conv1d_transpose(
    data: RelayExpr,
    weight: RelayExpr,
    strides: int | Sequence[int] = (1,),
    padding: int | Sequence[int] = (0,),
    dilation: int | Sequence[int] = (1,),
    groups: int = 1,
    channels: int | None = None,
    kernel_size: int | Sequence[int] | None = None,
    data_layout: str = "NCW",
    kernel_layout: str = "IOW",
    out_layout: str = "",
    output_padding: int | Sequence[int] = (0,),
    out_dtype: str = "",
) -> RelayExpr:
    """Transposed convolution over one spatial axis; parameters as in `conv2d_transpose`."""
    return CONV1D_TRANSPOSE(
        data,
        weight,
        **conv_attrs(strides, padding, dilation, groups, channels, kernel_size, 1),
        data_layout=data_layout,
        kernel_layout=kernel_layout,
        out_layout=out_layout,
        output_padding=spread(output_padding, 1),
        out_dtype=out_dtype or "",
    )


def conv3d_transpose(
    data: RelayExpr,
    weight: RelayExpr,
    strides: int | Sequence[int] = (1, 1, 1),
    padding: int | Sequence[int] = (0, 0, 0),
    dilation: int | Sequence[int] = (1, 1, 1),
    groups: int = 1,
    channels: int | None = None,
    kernel_size: int | Sequence[int] | None = None,
    data_layout: str = "NCDHW",
    kernel_layout: str = "IODHW",
    out_layout: str = "",
    output_padding: int | Sequence[int] = (0, 0, 0),
    out_dtype: str = "",
) -> RelayExpr:
    """Transposed convolution over three spatial axes; parameters as in `conv2d_transpose`."""
    return CONV3D_TRANSPOSE(
        data,
        weight,
        **conv_attrs(strides, padding, dilation, groups, channels, kernel_size, 3),
        data_layout=data_layout,
        kernel_layout=kernel_layout,
        out_layout=out_layout,
        output_padding=spread(output_padding, 3),
        out_dtype=out_dtype or "",
    )
