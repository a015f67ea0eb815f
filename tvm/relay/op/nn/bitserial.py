"""Operators on numbers of few bits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import te, topi
from tvm.ir.expr import RelayExpr
from tvm.ir.type import TensorType, Type

from ..computes import computed_by
from ..layout_shapes import axes_extents, expect_layouts, shape_in_layout, window_counts
from ..operator import Expr, OptionalSpatial2, Padding2, Spatial2, operator
from ..schedules import default_schedules
from ..types import Tensor2, apply, expect, expect_dim, positive_axis, shape_of_type, tensor
from .argument_types import of_convolution, of_dense


def _bitpack_type(attrs: Any, data: TensorType) -> Type:
    """A tensor of dtype `pack_type`: the packed axis is shorter by its number of bits, and there is
    an axis of `bits` elements more."""
    width = topi.nn.binary_op_multiplier(attrs.pack_type)
    shape = list(shape_of_type(data))
    positive_axis(attrs.pack_axis, len(shape), "nn.bitpack")
    extent = shape[attrs.pack_axis]
    expect(
        not isinstance(extent, int) or extent % width == 0,
        f"nn.bitpack requires a multiple of {width} along axis {attrs.pack_axis}, got {extent}",
    )
    shape[attrs.pack_axis] = apply(lambda e: e // width, extent)
    shape.insert(attrs.bit_axis, attrs.bits)
    return tensor(shape, attrs.pack_type)


_SCHEDULES = default_schedules(topi.x86.schedule_steps, inline=False)


@operator(
    "nn.bitpack",
    "BitPackAttrs",
    infer_type=_bitpack_type,
    compute=computed_by(topi.nn.bitpack, "bits", "pack_axis", "bit_axis", "pack_type", "name"),
    schedules=_SCHEDULES,
)
def bitpack(
    data: Expr,
    bits: int = 1,
    pack_axis: int = 1,
    bit_axis: int = 2,
    pack_type: str = "uint32",
    name: str = "BitPack",
) -> RelayExpr:
    """Words of the bits of neighbours along an axis.

    Parameters
    ----------
    name : str
        The name of the kernel's result.
    """


def _conv_type(attrs: Any, data: TensorType, weight: TensorType) -> Type:
    """A tensor in the layout of `data`, with a channel for each one of the weight; of dtype
    `out_dtype`."""
    who = "nn.bitserial_conv2d"
    expect_layouts(attrs, who, ("NCHW", "OIHW"), ("NHWC", "HWIO"))
    have = axes_extents(shape_of_type(data), attrs.data_layout, who)
    window = axes_extents(shape_of_type(weight)[:4], attrs.kernel_layout, f"{who}'s weight")
    if len(weight.shape) == 4:
        expect_dim(window["I"], have["C"], who, "the weight's input channels")
    if attrs.channels is not None:
        expect_dim(window["O"], attrs.channels, who, "the weight's output channels")
        window["O"] = attrs.channels
    out = {"N": have["N"], "C": window["O"]}
    out |= window_counts(have, window, "HW", attrs.padding, attrs.strides, (1, 1))
    return tensor(shape_in_layout(out, attrs.data_layout), attrs.out_dtype)


def _conv_compute(attrs: Any, inputs: Sequence[te.Tensor], out_type: Type) -> list[te.Tensor]:
    is_first = attrs.data_layout == "NCHW"
    function = topi.nn.bitserial_conv2d_nchw if is_first else topi.nn.bitserial_conv2d_nhwc
    by_layout = computed_by(
        function, "strides", "padding", "activation_bits", "weight_bits", "pack_dtype",
        "out_dtype", "unipolar",
    )  # fmt: skip
    return by_layout(attrs, inputs, out_type)


@operator(
    "nn.bitserial_conv2d",
    "BinaryConv2DAttrs",
    support_level=2,
    infer_type=_conv_type,
    argument_types=of_convolution,
    compute=_conv_compute,
    schedules=_SCHEDULES,
)
def bitserial_conv2d(
    data: Expr,
    weight: Expr,
    strides: Spatial2 = (1, 1),
    padding: Padding2 = (0, 0),
    channels: int | None = None,
    kernel_size: OptionalSpatial2 = (3, 3),
    activation_bits: int = 1,
    weight_bits: int = 1,
    data_layout: str = "NCHW",
    kernel_layout: str = "OIHW",
    pack_dtype: str = "uint32",
    out_dtype: str = "int16",
    unipolar: bool = True,
) -> RelayExpr:
    """Convolution of numbers of few bits.

    Parameters
    ----------
    data, weight : relay.Expr
        Integers; the weight may be packed already, its bits along a last axis.
    strides, padding, channels, kernel_size, data_layout, kernel_layout
        As in `conv2d`.
    activation_bits, weight_bits : int
        The bits of each number.
    pack_dtype, out_dtype : str
        The dtypes of words and of sums.
    unipolar : bool
        Whether bits of the weight stand for -1 and 1.
    """


def _dense_type(attrs: Any, data: Tensor2, weight: TensorType) -> Type:
    """A tensor of shape (rows of `data`, units), and of dtype `out_dtype`."""
    who = "nn.bitserial_dense"
    (rows, depth), extents = shape_of_type(data), shape_of_type(weight)
    if len(extents) == 2:
        expect_dim(extents[1], depth, who, "the weight's inner dimension")
    if attrs.units is not None:
        expect_dim(extents[0], attrs.units, who, "the weight's units")
    return tensor((rows, extents[0] if attrs.units is None else attrs.units), attrs.out_dtype)


@operator(
    "nn.bitserial_dense",
    "BinaryDenseAttrs",
    support_level=2,
    infer_type=_dense_type,
    argument_types=of_dense,
    compute=computed_by(
        topi.nn.bitserial_dense, "data_bits", "weight_bits", "pack_dtype", "out_dtype", "unipolar",
    ),
    schedules=_SCHEDULES,
)  # fmt: skip
def bitserial_dense(
    data: Expr,
    weight: Expr,
    units: int | None = None,
    data_bits: int = 1,
    weight_bits: int = 1,
    pack_dtype: str = "uint32",
    out_dtype: str = "int16",
    unipolar: bool = True,
) -> RelayExpr:
    """A dense layer of numbers of few bits.

    Parameters
    ----------
    units : int, optional
        The number of output columns, checked if given.
    """
