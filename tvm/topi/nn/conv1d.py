"""Convolution over one axis in its plain layouts."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from tvm import te
from tvm.support.signatures import take_names

from .conv2d.compute import Convolution, conv, conv1d


def _in_layouts(
    data_layout: str, kernel_layout: str
) -> Callable[[Callable[[], None]], Convolution]:
    def convolution(
        data: te.Tensor,
        kernel: te.Tensor,
        strides: Any = 1,
        padding: Any = "VALID",
        dilation: Any = 1,
        out_dtype: str | None = None,
    ) -> te.Tensor:
        steps = (strides, padding, dilation)
        return conv(data, kernel, *steps, 1, data_layout, kernel_layout, out_dtype)

    return partial(take_names, convolution)


def _grouped_in_layouts(
    data_layout: str, kernel_layout: str
) -> Callable[[Callable[[], None]], Convolution]:
    def convolution(
        data: te.Tensor,
        kernel: te.Tensor,
        strides: Any = 1,
        padding: Any = "VALID",
        dilation: Any = 1,
        groups: int = 1,
        out_dtype: str | None = None,
    ) -> te.Tensor:
        steps = (strides, padding, dilation)
        return conv(data, kernel, *steps, groups, data_layout, kernel_layout, out_dtype)

    return partial(take_names, convolution)


@_grouped_in_layouts("NCW", "OIW")
def group_conv1d_ncw() -> None:
    """Convolution of NCW data by an OIW kernel, channels in groups."""


@_grouped_in_layouts("NWC", "WIO")
def group_conv1d_nwc() -> None:
    """Convolution of NWC data by a WIO kernel, channels in groups."""


@_in_layouts("NCW", "OIW")
def conv1d_ncw() -> None:
    """Convolution of NCW data by an OIW kernel."""


@_in_layouts("NWC", "WIO")
def conv1d_nwc() -> None:
    """Convolution of NWC data by a WIO kernel."""


__all__ = [
    "conv1d",
    "conv1d_ncw",
    "conv1d_nwc",
    "group_conv1d_ncw",
    "group_conv1d_nwc",
]
