"""Correlation of two feature maps over displacements, as in FlowNet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import te, tir

from ..utils import cast_scalar, ceil_div, dims
from .pad import pad


def correlation_extents(
    height: Any,
    width: Any,
    kernel_size: int,
    max_displacement: int,
    stride1: int,
    stride2: int,
    padding: Sequence[int],
) -> tuple[int, int, int]:
    """The channels, height and width of the result; padding is (top, left, bottom, right)."""
    top, left, bottom, right = padding
    border = max_displacement + (kernel_size - 1) // 2
    displacements = 2 * (max_displacement // stride2) + 1
    extents = (height + top + bottom - 2 * border, width + left + right - 2 * border)
    rows, columns = [ceil_div(extent, stride1) for extent in extents]
    return displacements * displacements, rows, columns


def correlation_nchw(
    data1: te.Tensor,
    data2: te.Tensor,
    kernel_size: int,
    max_displacement: int,
    stride1: int,
    stride2: int,
    padding: int | Sequence[int],
    is_multiply: bool,
) -> te.Tensor:
    """The mean product (or distance) of patches, for each displacement of the second map.

    Parameters
    ----------
    data1, data2 : te.Tensor
        Feature maps in NCHW.
    kernel_size : int
        The side of a patch, odd.
    max_displacement : int
        How far the second map is moved.
    stride1, stride2 : int
        Steps of the position, and of the displacement.
    padding : int or sequence of int
        Zeros around the maps: 1, 2 or 4 numbers.
    is_multiply : bool
        Products, or absolute differences.
    """
    pads = [padding] * 4 if isinstance(padding, int) else list(padding)
    pads = pads * (4 // len(pads))
    batch, channels, height, width = dims(data1.shape)
    planes, rows, columns = correlation_extents(
        height, width, kernel_size, max_displacement, stride1, stride2, pads
    )
    radius = max_displacement // stride2
    side = 2 * radius + 1
    before, after = (0, 0, pads[0], pads[1]), (0, 0, pads[2], pads[3])
    first, second = [
        pad(data, before, after, name="data_pad") if any(pads) else data for data in (data1, data2)
    ]
    rc = te.reduce_axis((0, channels), name="rc")
    ry, rx = [te.reduce_axis((0, kernel_size), name=name) for name in ("ry", "rx")]

    def element(n: Any, q: Any, i: Any, j: Any) -> Any:
        y = i * stride1 + max_displacement + ry.var
        x = j * stride1 + max_displacement + rx.var
        dy = (tir.indexdiv(q, side) - radius) * stride2
        dx = (tir.indexmod(q, side) - radius) * stride2
        left, right = first(n, rc.var, y, x), second(n, rc.var, y + dy, x + dx)
        return te.sum(left * right if is_multiply else tir.abs(left - right), axis=[rc, ry, rx])

    total = te.compute(
        (batch, planes, rows, columns), element, name="correlation", tag="correlation_nchw"
    )
    count = cast_scalar(kernel_size * kernel_size * channels, data1.dtype)
    return te.compute(total.shape, lambda *i: total(*i) / count, name="mean", tag="elemwise")
