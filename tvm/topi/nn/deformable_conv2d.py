"""Deformable convolution: the window's positions are moved by offsets that are data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import te, tir
from tvm.support.signatures import with_values

from ..utils import cast_scalar, dims
from .utils import dilated_window, get_pad_tuple


def _bilinear(data: te.Tensor, at: dict[str, Any], layout: str, y: Any, x: Any) -> Any:
    """The value at a position between the elements; zero outside."""
    have = dict(zip(layout, dims(data.shape), strict=True))
    limits = {"H": have["H"] - 1, "W": have["W"] - 1}
    top, left = tir.floor(y), tir.floor(x)
    dy, dx = y - top, x - left

    def corner(row: Any, column: Any) -> Any:
        position = {
            **at,
            "H": tir.max(tir.min(row.astype("int32"), limits["H"]), 0),
            "W": tir.max(tir.min(column.astype("int32"), limits["W"]), 0),
        }
        return data(*[position[axis] for axis in layout])

    one = tir.const(1.0, y.dtype)
    upper = corner(top, left) * (one - dx) + corner(top, left + one) * dx
    lower = corner(top + one, left) * (one - dx) + corner(top + one, left + one) * dx
    outside = tir.any(
        y < 0, x < 0, y >= cast_scalar(have["H"], y.dtype), x >= cast_scalar(have["W"], x.dtype)
    )
    value = upper * (one - dy) + lower * dy
    return tir.if_then_else(outside, tir.const(0.0, data.dtype), value)


def _deformable(
    data: te.Tensor,
    offset: te.Tensor,
    kernel: te.Tensor,
    strides: Sequence[int],
    padding: Any,
    dilation: Sequence[int],
    deformable_groups: int,
    groups: int,
    out_dtype: str,
    data_layout: str,
    kernel_layout: str,
) -> te.Tensor:
    out_dtype = out_dtype or data.dtype
    have = dict(zip(data_layout, dims(data.shape), strict=True))
    window = dict(zip(kernel_layout, dims(kernel.shape), strict=True))
    positions = dict(zip(data_layout, dims(offset.shape), strict=True))
    strides, dilation = [[v, v] if isinstance(v, int) else list(v) for v in (strides, dilation)]
    top, left, _, _ = get_pad_tuple(padding, dilated_window((window["H"], window["W"]), dilation))
    channels_of_offset = have["C"] // deformable_groups
    count = window["H"] * window["W"]

    def moved(n: Any, c: Any, ky: Any, kx: Any, row: Any, column: Any) -> Any:
        first = tir.indexdiv(c, channels_of_offset) * (2 * count)
        first = first + (ky * window["W"] + kx) * 2

        def shift(which: int) -> Any:
            at = {"N": n, "C": first + which, "H": row, "W": column}
            return offset(*[at[axis] for axis in data_layout])

        y = (row * strides[0] - top + ky * dilation[0]).astype(offset.dtype) + shift(0)
        x = (column * strides[1] - left + kx * dilation[1]).astype(offset.dtype) + shift(1)
        return _bilinear(data, {"N": n, "C": c}, data_layout, y, x)

    rows, columns = positions["H"], positions["W"]
    patches = te.compute(
        (have["N"], have["C"], window["H"], window["W"], rows, columns), moved, name="patches"
    )
    inner, outer = have["C"] // groups, window["O"] // groups
    rc = te.reduce_axis((0, inner), name="rc")
    ry = te.reduce_axis((0, window["H"]), name="ry")
    rx = te.reduce_axis((0, window["W"]), name="rx")

    def element(*i: Any) -> Any:
        at = dict(zip(data_layout, i, strict=True))
        channel = rc.var if groups == 1 else tir.indexdiv(at["C"], outer) * inner + rc.var
        weight_at = {"O": at["C"], "I": rc.var, "H": ry.var, "W": rx.var}
        value = patches(at["N"], channel, ry.var, rx.var, at["H"], at["W"]).astype(out_dtype)
        weight = kernel(*[weight_at[axis] for axis in kernel_layout]).astype(out_dtype)
        return te.sum(value * weight, axis=[rc, ry, rx])

    extents = {"N": have["N"], "C": window["O"], "H": rows, "W": columns}
    name = f"deformable_conv2d_{data_layout.lower()}"
    return te.compute([extents[axis] for axis in data_layout], element, name=name, tag=name)


@with_values(_deformable, data_layout="NCHW", kernel_layout="OIHW")
def deformable_conv2d_nchw() -> None:
    """Deformable convolution of NCHW data by an OIHW kernel.

    Parameters
    ----------
    data, kernel : te.Tensor
        The data and the kernel.
    offset : te.Tensor
        How each position of the window moves, (batch, 2 * deformable_groups * window, rows, columns):
        down, then right.
    strides, padding, dilation
        As for a convolution.
    deformable_groups, groups : int
        Groups of channels with offsets, and with kernels, of their own.
    out_dtype : str
        The dtype of the sums.
    """


@with_values(_deformable, data_layout="NHWC", kernel_layout="HWIO")
def deformable_conv2d_nhwc() -> None:
    """Deformable convolution of NHWC data (and offsets) by an HWIO kernel."""
