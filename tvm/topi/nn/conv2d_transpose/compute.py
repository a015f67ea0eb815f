"""Transposed convolution over any number of spatial axes.

out[n, f, y] = sum over c, k of data[n, c, r] * weight[c, f, k]    where r * s + k * d = y + pad
"""

from __future__ import annotations

from typing import Any

from tvm import te, tir

from ...configuration import workload_attrs
from ...math import cast
from ...utils import dims, equals, product_dtype
from ..conv2d.compute import _as, _spread
from ..utils import get_pad_tuple_generic


def conv_transpose(
    data: te.Tensor,
    kernel: te.Tensor,
    stride: Any,
    padding: Any,
    dilation: Any,
    output_padding: Any,
    groups: int,
    data_layout: str,
    kernel_layout: str,
    out_dtype: str | None = None,
) -> te.Tensor:
    """Transposed convolution over the spatial axes that the data's layout names.

    Parameters
    ----------
    data, kernel : te.Tensor
        The data, and a kernel whose I are all input channels and whose O those of one group.
    stride, padding, dilation, output_padding
        One number, or one for each spatial axis; padding also two for each.
    groups : int
        The number of channel groups.
    data_layout, kernel_layout : str
        Such as "NCHW" and "IOHW".
    out_dtype : str, optional
        The dtype of the sums, the data's by default.
    """
    dtype = out_dtype or data.dtype
    if (wide := product_dtype(dtype)) != dtype:
        steps = (stride, padding, dilation, output_padding)
        layouts = (data_layout, kernel_layout)
        return cast(conv_transpose(data, kernel, *steps, groups, *layouts, wide), dtype)
    spatial = "".join([axis for axis in data_layout if axis not in "NC"])
    rank = len(spatial)
    have = dict(zip(data_layout, dims(data.shape), strict=True))
    window = dict(zip(kernel_layout, dims(kernel.shape), strict=True))
    strides, dilations, extra = [_spread(v, rank) for v in (stride, dilation, output_padding)]
    pads = get_pad_tuple_generic(padding, [window[axis] for axis in spatial])
    group_in, group_out = have["C"] // groups, window["O"]
    out: dict[str, Any] = {"N": have["N"], "C": group_out * groups}
    for i, axis in enumerate(spatial):
        reach = (window[axis] - 1) * dilations[i] + 1 - pads[i] - pads[i + rank] + extra[i]
        out[axis] = (have[axis] - 1) * strides[i] + reach
    rc = te.reduce_axis((0, group_in), name="rc")
    taps = [te.reduce_axis((0, window[axis]), name=f"r{axis.lower()}") for axis in spatial]

    def element(*indices: Any) -> Any:
        at = dict(zip(data_layout, indices, strict=True))
        group = tir.indexdiv(at["C"], group_out) if groups > 1 else 0
        where: dict[str, Any] = {"N": at["N"], "C": group * group_in + rc.var}
        weight_at = {"I": where["C"], "O": tir.indexmod(at["C"], group_out)}
        inside = []
        for i, axis in enumerate(spatial):
            position = at[axis] + pads[i] - taps[i].var * dilations[i]
            where[axis] = tir.indexdiv(position, strides[i])
            weight_at[axis] = taps[i].var
            inside += [position >= 0, where[axis] < have[axis]]
            if strides[i] > 1:
                inside.append(equals(tir.indexmod(position, strides[i]), 0))
        value = _as(data(*[where[axis] for axis in data_layout]), dtype)
        taken = tir.if_then_else(tir.all(*inside), value, tir.const(0, dtype))
        weight = _as(kernel(*[weight_at[axis] for axis in kernel_layout]), dtype)
        return te.sum(taken * weight, axis=[rc, *taps])

    name = f"conv{rank}d_transpose_{data_layout.lower()}"
    asked = {}
    if groups == 1 and set(dilations) == {1} and kernel_layout == f"IO{spatial}":
        args = (data, kernel, tuple(strides), tuple(pads), dtype, tuple(extra))
        asked = workload_attrs(f"{name}.x86", *args)
    shape = [out[axis] for axis in data_layout]
    return te.compute(shape, element, name=name, tag=name, attrs=asked)


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
    return conv_transpose(
        data, kernel, stride, padding, 1, output_padding, groups, "NCHW", "IOHW", out_dtype
    )


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


def group_conv1d_transpose_ncw(
    data: te.Tensor,
    kernel: te.Tensor,
    stride: Any,
    padding: Any,
    out_dtype: str | None,
    output_padding: Any,
    groups: int,
) -> te.Tensor:
    """Transposed convolution of NCW data by an (in, out / groups, kw) kernel."""
    return conv_transpose(
        data, kernel, stride, padding, 1, output_padding, groups, "NCW", "IOW", out_dtype
    )


def conv1d_transpose_ncw(
    data: te.Tensor,
    kernel: te.Tensor,
    stride: Any,
    padding: Any,
    out_dtype: str,
    output_padding: Any,
) -> te.Tensor:
    """Transposed convolution of NCW data by an (in, out, kw) kernel."""
    return group_conv1d_transpose_ncw(data, kernel, stride, padding, out_dtype, output_padding, 1)


def group_conv3d_transpose_ncdhw(
    data: te.Tensor,
    kernel: te.Tensor,
    strides: Any,
    padding: Any,
    out_dtype: str | None,
    output_padding: Any,
    groups: int,
) -> te.Tensor:
    """Transposed convolution of NCDHW data by an (in, out / groups, kd, kh, kw) kernel."""
    return conv_transpose(
        data, kernel, strides, padding, 1, output_padding, groups, "NCDHW", "IODHW", out_dtype
    )


def conv3d_transpose_ncdhw(
    Input: te.Tensor,
    Filter: te.Tensor,
    strides: Any,
    padding: Any,
    out_dtype: str,
    output_padding: Any,
) -> te.Tensor:
    """Transposed convolution of NCDHW data by an (in, out, kd, kh, kw) kernel."""
    return group_conv3d_transpose_ncdhw(
        Input, Filter, strides, padding, out_dtype, output_padding, 1
    )
