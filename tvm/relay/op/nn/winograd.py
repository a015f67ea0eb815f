"""Convolution by transformed weights: Winograd's minimal filtering."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tvm import te, tir, topi
from tvm.ir.expr import RelayExpr
from tvm.ir.type import TensorType, Type

from ..attributes import padding_pairs
from ..computes import computed_by
from ..layout import Layouts
from ..layout_shapes import axes_extents, shape_in_layout
from ..operator import Expr, operator
from ..parameters import more_parameters
from ..registry import LayoutChoice, OpPattern, Precision
from ..schedules import default_schedules
from ..types import Dim, apply, expect, shape_of_type, tensor
from .conv import conv2d
from .conv_plan import WINOGRAD_WEIGHT_LAYOUT


def _conv_type(attrs: Any, data: TensorType, weight: TensorType) -> Type:
    """A tensor in `out_layout`, or the layout of `data`, with a position for each place of a window
    of 3 x 3; of dtype `out_dtype`, or that of `data`."""
    who = "nn.contrib_conv2d_winograd_without_weight_transform"
    is_plain = attrs.groups == 1 and {*attrs.strides, *attrs.dilation} == {1}
    expect(is_plain, f"{who} requires stride 1, dilation 1 and one group, got {attrs}")
    have = axes_extents(shape_of_type(data), attrs.data_layout, who)
    shape = shape_of_type(weight)
    # weights that are not packed have one layout, whatever the plain kernel's was
    layout = WINOGRAD_WEIGHT_LAYOUT if len(shape) == 4 else attrs.kernel_layout
    kernel = axes_extents(shape, layout, f"{who}'s weight")
    reach = attrs.tile_size + 2
    for axis in "HW":
        expect(
            not isinstance(kernel[axis], int) or kernel[axis] == reach,
            f"{who} requires weights of {reach} along {axis} for tiles of {attrs.tile_size}, "
            f"got {kernel[axis]}",
        )
    expect(
        not (isinstance(have["C"], int) and isinstance(kernel["I"], int))
        or have["C"] == kernel["I"],
        f"{who} requires weights of {have['C']} input channels, got {kernel['I']}",
    )
    top, left, bottom, right = padding_pairs(attrs.padding, 2)
    out: dict[str, Dim] = {"N": have["N"], "C": kernel["O"]}
    out["H"] = apply(lambda extent: extent + top + bottom - 2, have["H"])
    out["W"] = apply(lambda extent: extent + left + right - 2, have["W"])
    return tensor(
        shape_in_layout(out, attrs.out_layout or attrs.data_layout), attrs.out_dtype or data.dtype
    )


def _weight_type(attrs: Any, weight: TensorType) -> Type:
    """A tensor of shape (tile_size + 2, tile_size + 2, output channels, input channels) and the
    weight's dtype."""
    who = "nn.contrib_conv2d_winograd_weight_transform"
    expect(len(weight.shape) == 4, f"{who} requires weights of 4 dimensions, got {weight}")
    expect(attrs.tile_size in (2, 4), f"{who} requires tile_size 2 or 4, got {attrs.tile_size}")
    out_channels, channels, height, width = shape_of_type(weight)
    expect((height, width) == (3, 3), f"{who} requires 3x3 windows, got {height}x{width}")
    reach = attrs.tile_size + 2
    return tensor((reach, reach, out_channels, channels), weight.dtype)


def _conv_compute(attrs: Any, inputs: Sequence[te.Tensor], out_type: TensorType) -> list[te.Tensor]:
    data, weight = inputs
    out_layout = attrs.out_layout or attrs.data_layout
    dtype = out_type.dtype
    if len(data.shape) == 4:
        return [
            topi.nn.conv2d_winograd_nchw_without_weight_transform(
                data, weight, attrs.strides, attrs.padding, attrs.dilation, dtype
            )
        ]
    return [
        topi.x86.conv2d.conv2d_NCHWc_winograd(
            data, weight, attrs.padding, attrs.tile_size, attrs.data_layout, out_layout, dtype
        )
    ]


def _fold_weight(attrs: Any, inputs: Sequence[np.ndarray], out_type: Type) -> list[np.ndarray]:
    return [topi.nn.winograd_weights(inputs[0], attrs.tile_size)]


def _own_layouts(
    attrs: Any, new_in: Layouts | None, old_in: Layouts, arg_types: Sequence[Type]
) -> LayoutChoice:
    weight = tir.layout(attrs.kernel_layout) if len(shape_of_type(arg_types[1])) > 4 else None
    return LayoutChoice(
        (tir.layout(attrs.data_layout), weight),
        (tir.layout(attrs.out_layout or attrs.data_layout),),
    )


@operator(
    "nn.contrib_conv2d_winograd_without_weight_transform",
    "Conv2DWinogradAttrs",
    infer_type=_conv_type,
    fuse=OpPattern.OUT_ELEMWISE_FUSABLE,
    compute=_conv_compute,
    schedules=default_schedules(topi.x86.schedule_conv2d_NCHWc_winograd, inline=False),
    infer_layout=_own_layouts,
    precision=Precision.KEEP_FLOAT32,
)
@more_parameters(conv2d)
def contrib_conv2d_winograd_without_weight_transform(weight: Expr, tile_size: int) -> None:
    """Convolution of 3x3 windows by transformed weights.

    Parameters
    ----------
    data, weight : relay.Expr
        The input, and what `contrib_conv2d_winograd_weight_transform` gives.
    tile_size : int
        Outputs of a tile along an axis, 2 or 4.
    strides, dilation, groups
        1.
    data_layout, kernel_layout, out_layout : str
        As in `conv2d`; the weight is laid out (tile_size + 2, tile_size + 2, O, I) unless
        the kernel's layout has blocks.
    """


@operator(
    "nn.contrib_conv2d_winograd_weight_transform",
    "ConvWinogradWeightTransformAttrs",
    infer_type=_weight_type,
    fuse=OpPattern.OUT_ELEMWISE_FUSABLE,
    compute=computed_by(topi.nn.conv2d_winograd_weight_transform, "tile_size"),
    schedules=default_schedules(inline=False),
    fold=_fold_weight,
    precision=Precision.KEEP_FLOAT32,
)
def contrib_conv2d_winograd_weight_transform(weight: Expr, tile_size: int) -> RelayExpr:
    """Weights (O, I, 3, 3) as (tile_size + 2, tile_size + 2, O, I) for Winograd's convolution.

    Parameters
    ----------
    weight : relay.Expr
        The weights of 3x3 windows.
    """
