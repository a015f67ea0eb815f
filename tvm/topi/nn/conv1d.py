"""Convolution over one axis in its plain layouts."""

from __future__ import annotations

from typing import Any

from tvm import te

from .conv2d.compute import conv, conv1d


def group_conv1d_ncw(
    data: te.Tensor,
    kernel: te.Tensor,
    strides: Any = 1,
    padding: Any = "VALID",
    dilation: Any = 1,
    groups: int = 1,
    out_dtype: str | None = None,
) -> te.Tensor:
    """Convolution of NCW data by an OIW kernel, channels in groups."""
    return conv(data, kernel, strides, padding, dilation, groups, "NCW", "OIW", out_dtype)


def group_conv1d_nwc(
    data: te.Tensor,
    kernel: te.Tensor,
    strides: Any = 1,
    padding: Any = "VALID",
    dilation: Any = 1,
    groups: int = 1,
    out_dtype: str | None = None,
) -> te.Tensor:
    """Convolution of NWC data by a WIO kernel, channels in groups."""
    return conv(data, kernel, strides, padding, dilation, groups, "NWC", "WIO", out_dtype)


def conv1d_ncw(
    data: te.Tensor,
    kernel: te.Tensor,
    strides: Any = 1,
    padding: Any = "VALID",
    dilation: Any = 1,
    out_dtype: str | None = None,
) -> te.Tensor:
    """Convolution of NCW data by an OIW kernel."""
    return group_conv1d_ncw(data, kernel, strides, padding, dilation, 1, out_dtype)


def conv1d_nwc(
    data: te.Tensor,
    kernel: te.Tensor,
    strides: Any = 1,
    padding: Any = "VALID",
    dilation: Any = 1,
    out_dtype: str | None = None,
) -> te.Tensor:
    """Convolution of NWC data by a WIO kernel."""
    return group_conv1d_nwc(data, kernel, strides, padding, dilation, 1, out_dtype)


__all__ = [
    "conv1d",
    "conv1d_ncw",
    "conv1d_nwc",
    "group_conv1d_ncw",
    "group_conv1d_nwc",
]
