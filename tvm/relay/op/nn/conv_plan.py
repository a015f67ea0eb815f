"""Convolutions by Winograd's way, and by what records of tuning say.

nn.conv2d(%x, %w)    ->    nn.contrib_conv2d_winograd_without_weight_transform(%x in NCHW16c, ...)
"""

from __future__ import annotations

from collections.abc import Sequence

from tvm import tir, topi
from tvm.ir.expr import RelayExpr
from tvm.ir.type import TensorType
from tvm.relay.expr import Call, Constant
from tvm.target import Target
from tvm.tir.stmt_functor import free_vars, substitute

from ..attributes import padding_pairs
from ..optimize_for import is_for_size
from ..registry import ops
from ..shaping import layout_transform
from ..types import Dim, are_known, is_known, shape_of_type, simplified

WINOGRAD_WEIGHT_LAYOUT = "HWOI"


def recorded_plan(
    call: Call, arg_types: Sequence[TensorType], out_type: TensorType, target: Target
) -> topi.x86.conv2d.Conv2dPlan | None:
    """The algorithm and the blocks of channels that a record of tuning asks for."""
    attrs = call.attrs
    data, weight = [shape_of_type(t) for t in arg_types]
    if not are_known(data) or not are_known(weight):
        return None
    shape = topi.x86.conv2d.Conv2dShape(
        data, weight, attrs.strides, padding_pairs(attrs.padding, 2), attrs.dilation,
        arg_types[0].dtype, out_type.dtype,
    )  # fmt: skip
    return topi.x86.conv2d.plan_conv2d(shape, isinstance(call.args[1], Constant), target)


def winograd_tile(
    call: Call,
    arg_types: Sequence[TensorType],
    blocks: tuple[int, int],
    target: Target,
    plain_speed: float = 1.0,
) -> tuple[int, int] | None:
    """The tile and the group of channels of Winograd's convolution where that is faster."""
    attrs = call.attrs
    data, weight = [shape_of_type(t) for t in arg_types]
    fits = weight[2:] == (3, 3) and {*attrs.strides, *attrs.dilation} == {1}
    fits = fits and arg_types[0].dtype in ("float32", "bfloat16")
    # a tile of 4 makes weights four times as large
    fits = fits and not is_for_size()
    # weights that are not known yet would be transformed in every run
    if not fits or not isinstance(call.args[1], Constant) or attrs.out_dtype not in ("", "float32"):
        return None
    batch, channels = [extent if is_known(extent) else 1 for extent in data[:2]]
    assert are_known(weight)
    most = max(weight[:2])
    best = topi.x86.conv2d.winograd_tile(
        (batch, channels, *[usual_extent(extent, most) for extent in data[2:]]),
        weight[0],
        padding_pairs(attrs.padding, 2),
        blocks,
        "float32",
        target,
        plain_speed,
    )
    if best is None or are_known(data[2:]):
        return best
    # by the tile of the usual image, and a group that is fast for all
    return best[0], topi.x86.conv2d.winograd_open_group(
        channels, weight[0], best[0], blocks, target
    )


# of the rows and columns of images that only the run knows
_USUAL_IMAGE = 224


def usual_extent(extent: Dim, channels: int) -> int:
    """An extent where every open one of the inputs is that of a usual image."""
    if isinstance(extent, int):
        return extent
    image = {v: tir.IntImm(v.dtype, _USUAL_IMAGE) for v in free_vars(extent)}
    found = simplified(substitute(extent, image))
    return found if isinstance(found, int) else topi.x86.conv2d.nominal_extent(channels)


def by_winograd(call: Call, tile: int, group: int, blocks: tuple[int, int]) -> RelayExpr:
    """The convolution with its weights transformed, channels in blocks."""
    attrs = call.attrs
    inner, outer = blocks
    data_layout, out_layout = f"NCHW{inner}c", f"NCHW{outer}c"
    kernel_layout = f"OHWI{inner}i{group}o"
    data = layout_transform(call.args[0], "NCHW", data_layout)
    tiles = ops.nn.contrib_conv2d_winograd_weight_transform(call.args[1], tile_size=tile)
    weight = layout_transform(tiles, WINOGRAD_WEIGHT_LAYOUT, kernel_layout)
    out = ops.nn.contrib_conv2d_winograd_without_weight_transform(
        data,
        weight,
        tile_size=tile,
        padding=attrs.padding,
        channels=attrs.channels,
        kernel_size=attrs.kernel_size,
        data_layout=data_layout,
        kernel_layout=kernel_layout,
        out_layout=out_layout,
        out_dtype=attrs.out_dtype,
    )
    return layout_transform(out, out_layout, "NCHW")
