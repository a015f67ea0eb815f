"""Convolution schedules under the classic module name."""

from __future__ import annotations

from ..nn.conv2d.cpu import (
    Conv2dConfig,
    channel_blocks,
    choose_conv2d,
    full_block,
    groups_together,
    schedule_conv2d,
    should_skip_border_rows,
)
from ..nn.conv2d.dot_x86 import (
    byte_pair_blocks,
    dot_blocks,
    dot_group,
    has_byte_pairs,
    narrow_dtypes,
    schedule_conv2d_NCHWc_int8,
)
from ..nn.conv2d.layout_choice import (
    bfloat16_speed,
    full_vector_channels,
    is_faster_in_rows,
    row_columns,
)
from ..nn.conv2d.library import (
    conv2d_nchw_dnnl,
    conv2d_nhwc_dnnl,
    schedule_conv2d_nchw_dnnl,
    schedule_conv2d_nhwc_dnnl,
)
from ..nn.conv2d.pixels_cpu import (
    nominal_extent,
    pixel_tile,
    schedule_conv2d_NCHWc,
    suits_pixels,
)
from ..nn.conv2d.plan_cpu import Conv2dPlan, Conv2dShape, plan_conv2d
from ..nn.conv2d.rows_cpu import fills_vectors
from ..nn.conv2d.winograd_cpu import (
    WinogradConfig,
    WinogradShape,
    choose_winograd,
    winograd_tile,
)
from ..nn.conv2d.winograd_open_cpu import (
    conv2d_NCHWc_winograd,
    schedule_conv2d_NCHWc_winograd,
    winograd_open_group,
)
from ..nn.depthwise_conv2d.cpu import OPEN_COLUMNS
from .templates import conv2d_nchw, conv2d_NCHWc

schedule_conv2d_nchw = schedule_conv2d
schedule_conv2d_nhwc = schedule_conv2d

__all__ = [
    "OPEN_COLUMNS",
    "Conv2dConfig",
    "Conv2dPlan",
    "Conv2dShape",
    "WinogradConfig",
    "WinogradShape",
    "byte_pair_blocks",
    "bfloat16_speed",
    "channel_blocks",
    "choose_conv2d",
    "choose_winograd",
    "conv2d_NCHWc",
    "conv2d_NCHWc_winograd",
    "conv2d_nchw",
    "conv2d_nchw_dnnl",
    "conv2d_nhwc_dnnl",
    "dot_blocks",
    "dot_group",
    "fills_vectors",
    "full_block",
    "groups_together",
    "has_byte_pairs",
    "nominal_extent",
    "pixel_tile",
    "plan_conv2d",
    "suits_pixels",
    "narrow_dtypes",
    "schedule_conv2d",
    "schedule_conv2d_NCHWc",
    "schedule_conv2d_NCHWc_int8",
    "schedule_conv2d_NCHWc_winograd",
    "schedule_conv2d_nchw",
    "schedule_conv2d_nchw_dnnl",
    "schedule_conv2d_nhwc",
    "schedule_conv2d_nhwc_dnnl",
    "should_skip_border_rows",
    "winograd_open_group",
    "winograd_tile",
    "is_faster_in_rows",
    "row_columns",
    "full_vector_channels",
]
