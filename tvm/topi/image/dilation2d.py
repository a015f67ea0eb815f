"""Grey-scale dilation: the greatest sum of data and kernel over a window."""

from __future__ import annotations

from typing import Any

from tvm import te
from tvm.tir.reduction import least

from ..nn.conv2d.compute import _spread
from ..nn.pad import pad
from ..nn.utils import dilated_window, get_pad_tuple_generic
from ..utils import dims


def dilation2d(
    data: te.Tensor,
    weight: te.Tensor,
    stride: Any,
    padding: Any,
    dilations: Any,
    layout: str,
    kernel_layout: str,
    out_dtype: str | None = None,
) -> te.Tensor:
    """Dilation of images, each channel by its own kernel.

    Parameters
    ----------
    data, weight : te.Tensor
        The images, and a kernel for each channel.
    stride, padding, dilations
        One number, or one for each spatial axis; padding also two for each.
    layout, kernel_layout : str
        "NCHW" with "IHW", or "NHWC" with "HWI".
    out_dtype : str, optional
        The dtype of the result, the data's by default.
    """
    have = dict(zip(layout, dims(data.shape), strict=True))
    window = dict(zip(kernel_layout, dims(weight.shape), strict=True))
    strides, spacing = _spread(stride, 2), _spread(dilations, 2)
    pads = get_pad_tuple_generic(padding, dilated_window((window["H"], window["W"]), spacing))
    at = [layout.index(axis) for axis in "HW"]
    before, after = [0] * 4, [0] * 4
    shape = list(dims(data.shape))
    for i, axis in enumerate("HW"):
        before[at[i]], after[at[i]] = pads[i], pads[i + 2]
        reach = (window[axis] - 1) * spacing[i] + 1
        shape[at[i]] = (have[axis] + pads[i] + pads[i + 2] - reach) // strides[i] + 1
    lowest = least(data.dtype)
    source = pad(data, before, after, lowest, name="pad_temp") if any(pads) else data
    taps = [te.reduce_axis((0, window[axis]), name=f"r{axis.lower()}") for axis in "HW"]
    dtype = out_dtype or data.dtype

    def element(*i: Any) -> Any:
        where = list(i)
        for k in range(2):
            where[at[k]] = i[at[k]] * strides[k] + taps[k].var * spacing[k]
        names = {"I": i[layout.index("C")], "H": taps[0].var, "W": taps[1].var}
        value = source(*where).astype(dtype)
        return te.max(value + weight(*[names[a] for a in kernel_layout]).astype(dtype), axis=taps)

    return te.compute(shape, element, name="dilation2d", tag=f"dilation2d_{layout.lower()}")


def dilation2d_nchw(
    input: te.Tensor,
    filter: te.Tensor,
    stride: Any,
    padding: Any,
    dilations: Any,
    out_dtype: str | None = None,
) -> te.Tensor:
    """Dilation of NCHW images by a (channels, height, width) kernel."""
    return dilation2d(input, filter, stride, padding, dilations, "NCHW", "IHW", out_dtype)


def dilation2d_nhwc(
    input: te.Tensor,
    filter: te.Tensor,
    stride: Any,
    padding: Any,
    dilations: Any,
    out_dtype: str | None = None,
) -> te.Tensor:
    """Dilation of NHWC images by a (height, width, channels) kernel."""
    return dilation2d(input, filter, stride, padding, dilations, "NHWC", "HWI", out_dtype)
