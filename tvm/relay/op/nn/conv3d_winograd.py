"""Convolution over three axes by transformed weights: Winograd's minimal filtering."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import te, topi
from tvm.ir.expr import RelayExpr
from tvm.ir.type import TensorType, Type

from ..attributes import padding_pairs
from ..computes import computed_by
from ..operator import Expr, operator
from ..parameters import same_parameters
from ..registry import OpPattern, Precision
from ..schedules import default_schedules
from ..types import Dim, Tensor5, apply, expect, expect_dim, shape_of_type, tensor
from .winograd import (
    contrib_conv2d_winograd_weight_transform,
    contrib_conv2d_winograd_without_weight_transform,
)

WINDOW = 3


def _weight_type(attrs: Any, weight: Tensor5) -> Type:
    """A tensor of shape (tile_size + 2, tile_size + 2, planes, output channels, input channels) and
    the weight's dtype; planes are as many if the window has three, else its own."""
    who = "nn.contrib_conv3d_winograd_weight_transform"
    expect(attrs.tile_size in (2, 4), f"{who} requires tile_size 2 or 4, got {attrs.tile_size}")
    out_channels, channels, depth, height, width = shape_of_type(weight)
    expect((height, width) == (3, 3), f"{who} requires windows of 3x3, got {height}x{width}")
    reach = attrs.tile_size + WINDOW - 1
    planes = reach if depth == WINDOW else depth
    return tensor((reach, reach, planes, out_channels, channels), weight.dtype)


def _conv_type(attrs: Any, data: Tensor5, weight: Tensor5) -> Type:
    """A tensor of shape (batch, output channels, depth, height, width), with a position for each
    place of the window; of dtype `out_dtype`, or that of `data`."""
    who = "nn.contrib_conv3d_winograd_without_weight_transform"
    is_plain = attrs.groups == 1 and {*attrs.strides, *attrs.dilation} == {1}
    expect(is_plain, f"{who} requires stride 1, dilation 1 and one group, got {attrs}")
    layout = (attrs.data_layout, attrs.out_layout or attrs.data_layout)
    expect(layout == ("NCDHW", "NCDHW"), f"{who} requires layout NCDHW, got {layout}")
    batch, channels, *extents = shape_of_type(data)
    rows, columns, planes, out_channels, in_channels = shape_of_type(weight)
    reach = attrs.tile_size + WINDOW - 1
    expect(
        (rows, columns) == (reach, reach),
        f"{who} requires weights of {reach}x{reach} for tiles of {attrs.tile_size}, "
        f"got {rows}x{columns}",
    )
    expect_dim(in_channels, channels, who, "the weight's input channels")
    if attrs.channels is not None:
        expect_dim(out_channels, attrs.channels, who, "the weight's output channels")
    depth: Dim = WINDOW if planes == reach else planes
    if attrs.kernel_size is not None:
        depth = attrs.kernel_size[0]
        expect_dim(planes, reach if depth == WINDOW else depth, who, "the weight's depth")
    pads = padding_pairs(attrs.padding, 3)
    out = [
        apply(lambda n, k, pad=pads[i] + pads[i + 3]: n + pad - k + 1, extent, window)
        for i, (extent, window) in enumerate(zip(extents, (depth, WINDOW, WINDOW), strict=True))
    ]
    return tensor((batch, out_channels, *out), attrs.out_dtype or data.dtype)


@operator(
    "nn.contrib_conv3d_winograd_weight_transform",
    contrib_conv2d_winograd_weight_transform,
    infer_type=_weight_type,
    fuse=OpPattern.OUT_ELEMWISE_FUSABLE,
    compute=computed_by(topi.nn.conv3d_winograd_weight_transform, "tile_size"),
    schedules=default_schedules(inline=False),
    precision=Precision.KEEP_FLOAT32,
)
def contrib_conv3d_winograd_weight_transform(weight: Expr, tile_size: int) -> RelayExpr:
    """Weights (O, I, D, 3, 3) as Winograd's convolution reads them.

    Parameters
    ----------
    weight : relay.Expr
        The weights.
    """


def _compute(attrs: Any, inputs: Sequence[te.Tensor], out_type: TensorType) -> list[te.Tensor]:
    steps = (attrs.strides, attrs.padding, attrs.dilation, attrs.tile_size)
    data, weight = inputs
    depth = None if attrs.kernel_size is None else attrs.kernel_size[0]
    options = (*steps, out_type.dtype, depth)
    return [topi.nn.conv3d_winograd_ncdhw_without_weight_transform(data, weight, *options)]


@operator(
    "nn.contrib_conv3d_winograd_without_weight_transform",
    "Conv3DWinogradAttrs",
    defaults={"tile_size": 2},
    infer_type=_conv_type,
    fuse=OpPattern.OUT_ELEMWISE_FUSABLE,
    compute=_compute,
    schedules=default_schedules(inline=False),
    precision=Precision.KEEP_FLOAT32,
)
@same_parameters(contrib_conv2d_winograd_without_weight_transform, rank=3)
def contrib_conv3d_winograd_without_weight_transform() -> None:
    """Convolution by transformed weights.

    Parameters
    ----------
    data, weight : relay.Expr
        The input, and what `contrib_conv3d_winograd_weight_transform` gives.
    tile_size : int
        Outputs of a tile along an axis, 2 or 4.
    strides, dilation, groups
        1; other parameters as in `conv3d`.
    """
