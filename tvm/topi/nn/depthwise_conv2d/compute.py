"""Depthwise convolution: every channel by itself."""

from __future__ import annotations

from typing import Any

from tvm import te
from tvm.error import RuntimeValueError
from tvm.support.dtype import dtype as as_dtype

from ...configuration import workload_attrs
from ...math import cast
from ...utils import as_extent, dims, product_dtype, rounded_up
from ..conv2d.compute import _as, _padded, _spread, conv
from ..dense.compute import crop
from ..utils import dilated_window, get_pad_tuple_generic


def depthwise_conv2d_nchw(
    Input: te.Tensor,
    Filter: te.Tensor,
    stride: Any,
    padding: Any,
    dilation: Any,
    out_dtype: str | None = None,
) -> te.Tensor:
    """Depthwise convolution of NCHW data by a (channels, multiplier, kh, kw) kernel."""
    channels, multiplier, kh, kw = dims(Filter.shape)
    if multiplier == 1:
        return conv(Input, Filter, stride, padding, dilation, channels, "NCHW", "OIHW", out_dtype)
    spread = te.compute(
        (channels * multiplier, 1, kh, kw),
        lambda o, i, y, x: Filter(o // multiplier, o % multiplier, y, x),
        name="kernel",
        tag="injective",
    )
    return conv(Input, spread, stride, padding, dilation, channels, "NCHW", "OIHW", out_dtype)


def depthwise_conv2d_nhwc(
    Input: te.Tensor,
    Filter: te.Tensor,
    stride: Any,
    padding: Any,
    dilation: Any,
    kernel_layout: str = "HWOI",
    out_dtype: str | None = None,
) -> te.Tensor:
    """Depthwise convolution of NHWC data by an HWOI kernel.

    A data type in the place of `kernel_layout` is the one of the sums, which stood there first.
    """
    if kernel_layout not in ("HWOI", "HWIO"):
        kernel_layout, out_dtype = "HWOI", as_dtype(kernel_layout)
    groups = dims(Input.shape)[3]
    return conv(Input, Filter, stride, padding, dilation, groups, "NHWC", kernel_layout, out_dtype)


def depthwise_conv2d_NCHWc(
    Input: te.Tensor,
    Filter: te.Tensor,
    stride: Any,
    padding: Any,
    dilation: Any,
    layout: str,
    out_layout: str,
    out_dtype: str | None = None,
    column_step: int = 1,
) -> te.Tensor:
    """Depthwise convolution with channels in blocks.

    Parameters
    ----------
    Input : te.Tensor
        (n, chunk, h, w, block)
    Filter : te.Tensor
        (chunk, 1, kh, kw, 1, block)
    layout, out_layout : str
        Such as "NCHW16c".
    column_step : int
        Where the width is open, rows are computed up to a multiple of so many columns, and cut off.
    """
    dtype = out_dtype or Input.dtype
    if (wide := product_dtype(dtype)) != dtype:
        args = (Input, Filter, stride, padding, dilation, layout, out_layout, wide)
        return cast(depthwise_conv2d_NCHWc(*args, column_step=column_step), dtype)
    n, chunk, height, width, block = dims(Input.shape)
    _, _, kh, kw, _, kernel_block = dims(Filter.shape)
    if kernel_block != block:
        raise RuntimeValueError(
            f"depthwise_conv2d_NCHWc: kernel {dims(Filter.shape)} does not fit {layout}"
        )
    sh, sw = _spread(stride, 2)
    dh, dw = _spread(dilation, 2)
    pads = get_pad_tuple_generic(padding, dilated_window((kh, kw), (dh, dw)))
    oh = as_extent((height + pads[0] + pads[2] - ((kh - 1) * dh + 1)) // sh + 1)
    ow = as_extent((width + pads[1] + pads[3] - ((kw - 1) * dw + 1)) // sw + 1)
    columns = ow if isinstance(ow, int) else rounded_up(ow, column_step)
    source = _padded(Input, "NCHWc", "HW", (*pads[:3], pads[3] + (columns - ow) * sw))
    ky = te.reduce_axis((0, kh), name="kh")
    kx = te.reduce_axis((0, kw), name="kw")

    def element(b: Any, co: Any, y: Any, x: Any, ci: Any) -> Any:
        value = source(b, co, y * sh + ky.var * dh, x * sw + kx.var * dw, ci)
        weight = Filter(co, 0, ky.var, kx.var, 0, ci)
        return te.sum(_as(value, dtype) * _as(weight, dtype), axis=[ky, kx])

    task = "depthwise_conv2d_NCHWc"
    args = (Input, Filter, (sh, sw), tuple(pads), (dh, dw), layout, out_layout, dtype)
    asked = workload_attrs(f"{task}.x86", *args)
    shape = (n, chunk, oh, columns, block)
    out = te.compute(shape, element, name="DepthwiseConv2d", tag=task, attrs=asked)
    return out if columns is ow else crop(out, (n, chunk, oh, ow, block))
