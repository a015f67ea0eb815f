"""Transposed convolution: spread the data with zeros, then convolve with the flipped kernel."""

from __future__ import annotations

from typing import Any

from tvm import te, tir

from ...utils import dims
from ..conv2d.compute import _as, _spread
from ..utils import get_pad_tuple_generic


def group_conv2d_transpose_nchw(
    data: te.Tensor,
    kernel: te.Tensor,
    stride: Any,
    padding: Any,
    out_dtype: str | None,
    output_padding: Any,
    groups: int,
) -> te.Tensor:
    """Transposed convolution of NCHW data by an (in, out / groups, kh, kw) kernel."""
    n, channels, height, width = dims(data.shape)
    _, group_out, kh, kw = dims(kernel.shape)
    sh, sw = _spread(stride, 2)
    pad_h, pad_w = _spread(output_padding, 2)
    top, left, bottom, right = get_pad_tuple_generic(padding, (kh, kw))
    group_in = channels // groups
    oh = (height - 1) * sh + kh - top - bottom + pad_h
    ow = (width - 1) * sw + kw - left - right + pad_w
    rc = te.reduce_axis((0, group_in), name="rc")
    ky = te.reduce_axis((0, kh), name="rh")
    kx = te.reduce_axis((0, kw), name="rw")
    dtype = out_dtype or data.dtype

    def element(b: Any, f: Any, y: Any, x: Any) -> Any:
        # output row y takes input row r through kernel row ky where r * stride + ky = y + top
        row, column = y + top - ky.var, x + left - kx.var
        group = tir.indexdiv(f, group_out)
        r, c = tir.indexdiv(row, sh), tir.indexdiv(column, sw)
        taken = tir.all(
            row >= 0, column >= 0, r < height, c < width,
            tir.EQ(tir.indexmod(row, sh), 0), tir.EQ(tir.indexmod(column, sw), 0),
        )  # fmt: skip
        channel = group * group_in + rc.var
        value = tir.if_then_else(taken, _as(data(b, channel, r, c), dtype), tir.const(0, dtype))
        weight = kernel(channel, tir.indexmod(f, group_out), ky.var, kx.var)
        return te.sum(value * _as(weight, dtype), axis=[rc, ky, kx])

    return te.compute(
        (n, group_out * groups, oh, ow), element, name="conv2d_transpose_nchw",
        tag="conv2d_transpose_nchw",
    )  # fmt: skip


def conv2d_transpose_nchw(
    Input: te.Tensor,
    Filter: te.Tensor,
    strides: Any,
    padding: Any,
    out_dtype: str,
    output_padding: Any,
) -> te.Tensor:
    """Transposed convolution of NCHW data by an (in, out, kh, kw) kernel."""
    return group_conv2d_transpose_nchw(
        Input, Filter, strides, padding, out_dtype, output_padding, 1
    )
