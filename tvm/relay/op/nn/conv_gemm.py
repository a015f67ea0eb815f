"""Convolutions whose weights lie in the tiles of a matrix product."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import te, topi
from tvm.ir.expr import RelayExpr
from tvm.ir.type import TensorType, Type

from ..attributes import padding_pairs
from ..computes import RESULT_DTYPE, computed_by
from ..operator import Expr, operator
from ..parameters import same_parameters
from ..registry import OpPattern
from ..schedules import default_schedules
from ..types import Tensor4, apply, expect, expect_dim, shape_of_type, tensor
from .conv import CONVOLUTION, conv2d


def _weight_type(attrs: Any, weights: Tensor4) -> Type:
    """A tensor of shape (tiles of output channels, tiles of rows, tile_N, tile_K) and the weight's
    dtype; the last tiles are filled up."""
    who = "nn.contrib_conv2d_gemm_weight_transform"
    expect(attrs.tile_N > 0 and attrs.tile_K > 0, f"{who} requires positive tiles, got {attrs}")
    height, width, channels, out_channels = shape_of_type(weights)
    rows = apply(lambda h, w, c: h * w * c, height, width, channels)
    tiles = apply(lambda n: -(-n // attrs.tile_N), out_channels)
    chunks = apply(lambda n: -(-n // attrs.tile_K), rows)
    return tensor((tiles, chunks, attrs.tile_N, attrs.tile_K), weights.dtype)


def _conv_type(attrs: Any, data: Tensor4, weight: Tensor4) -> Type:
    """A tensor of shape (batch, height, width, channels), with a position for each place of the
    window; of dtype `out_dtype`, or that of `data`."""
    who = "nn.contrib_conv2d_gemm_without_weight_transform"
    layouts = (attrs.data_layout, attrs.out_layout or attrs.data_layout)
    expect(layouts == ("NHWC", "NHWC"), f"{who} requires data in NHWC, got {layouts}")
    has_sizes = attrs.channels is not None and attrs.kernel_size is not None
    expect(has_sizes, f"{who} requires channels and kernel_size, which tiles do not tell")
    assert attrs.channels is not None and attrs.kernel_size is not None
    expect(attrs.groups == 1, f"{who} requires one group, got {attrs.groups}")
    batch, height, width, channels = shape_of_type(data)
    tiles, chunks, tile_n, tile_k = shape_of_type(weight)
    size = attrs.kernel_size
    expect_dim(tiles, apply(lambda n: -(-attrs.channels // n), tile_n), who, "tiles of channels")
    rows = apply(lambda c, k: -(-size[0] * size[1] * c // k), channels, tile_k)
    expect_dim(chunks, rows, who, "tiles of windows")
    pads = padding_pairs(attrs.padding, 2)
    out = []
    for i, extent in enumerate((height, width)):
        reach = (size[i] - 1) * attrs.dilation[i] + 1
        room = pads[i] + pads[i + 2] - reach
        out.append(apply(lambda n, r=room, s=attrs.strides[i]: (n + r) // s + 1, extent))
    return tensor((batch, *out, attrs.channels), attrs.out_dtype or data.dtype)


def _compute(attrs: Any, inputs: Sequence[te.Tensor], out_type: TensorType) -> list[te.Tensor]:
    assert attrs.channels is not None and attrs.kernel_size is not None
    by_tiles = computed_by(
        topi.nn.conv2d_gemm_without_weight_transform, "strides", "padding", "dilation",
        "kernel_size", "channels", RESULT_DTYPE,
    )  # fmt: skip
    return by_tiles(attrs, inputs, out_type)


@operator(
    "nn.contrib_conv2d_gemm_weight_transform",
    "ConvGemmWeightTransformAttrs",
    infer_type=_weight_type,
    fuse=OpPattern.INJECTIVE,
    compute=computed_by(topi.nn.conv2d_gemm_weight_transform, "tile_N", "tile_K"),
)
def contrib_conv2d_gemm_weight_transform(weights: Expr, tile_N: int, tile_K: int) -> RelayExpr:
    """HWIO weights as the tiles of a transposed matrix of (height * width * I, O).

    Parameters
    ----------
    weights : relay.Expr
        The weights.
    """


@operator(
    "nn.contrib_conv2d_gemm_without_weight_transform",
    conv2d,
    infer_type=_conv_type,
    compute=_compute,
    schedules=default_schedules(),
    **CONVOLUTION,
)
@same_parameters(conv2d)
def contrib_conv2d_gemm_without_weight_transform() -> None:
    """Convolution by weights in tiles.

    Parameters
    ----------
    data, weight : relay.Expr
        The input in NHWC, and what `contrib_conv2d_gemm_weight_transform` gives.
    channels, kernel_size, groups
        The first two are needed, groups is 1.
    data_layout, kernel_layout, out_layout : str
        As in `conv2d`; the data's layout is "NHWC".
    """
