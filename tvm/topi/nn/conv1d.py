"""Convolution over one axis in its plain layouts."""

from __future__ import annotations

from tvm.support.signatures import with_values

from .conv2d.compute import conv1d


@with_values(conv1d, data_layout="NCW", kernel_layout="OIW")
def group_conv1d_ncw() -> None:
    """Convolution of NCW data by an OIW kernel, channels in groups."""


@with_values(conv1d, data_layout="NWC", kernel_layout="WIO")
def group_conv1d_nwc() -> None:
    """Convolution of NWC data by a WIO kernel, channels in groups."""


@with_values(conv1d, groups=1, data_layout="NCW", kernel_layout="OIW")
def conv1d_ncw() -> None:
    """Convolution of NCW data by an OIW kernel."""


@with_values(conv1d, groups=1, data_layout="NWC", kernel_layout="WIO")
def conv1d_nwc() -> None:
    """Convolution of NWC data by a WIO kernel."""


__all__ = [
    "conv1d",
    "conv1d_ncw",
    "conv1d_nwc",
    "group_conv1d_ncw",
    "group_conv1d_nwc",
]
