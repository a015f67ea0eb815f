"""Convolution of narrow numbers, channels in blocks and in groups for dot-product instructions.

out[n, oco, y, x, oci] = sum over ico, ky, kx, group, k of
    data[n, ico, y * s + ky, x * s + kx, group * 4 + k] * weight[oco, ico, ky, kx, group, oci, k]
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm import te, tir
from tvm.error import RuntimeValueError

from ...configuration import workload_attrs
from ...math import cast
from ...utils import as_extent, dims, is_dynamic_shape, product_dtype
from ..utils import dilated_window, get_pad_tuple_generic
from .compute import _padded, _spread, block_size
from .pixels import PIXELS_TAG, Pixels


def conv2d_NCHWc_int8(
    data: te.Tensor,
    kernel: te.Tensor,
    stride: Any,
    padding: Any,
    dilation: Any,
    layout: str,
    out_layout: str,
    out_dtype: str | None = "int32",
    n_elems: int = 4,
    groups: int = 1,
    padded_pixels: Callable[[Any], Any] | None = None,
    has_small_weights: bool = False,
) -> te.Tensor:
    """Convolution with channels in blocks, and the kernel's in groups.

    Parameters
    ----------
    data : te.Tensor
        (n, ic chunk, h, w, ic block)
    kernel : te.Tensor
        (oc chunk, ic chunk, kh, kw, ic block / n_elems, oc block, n_elems)
    layout, out_layout : str
        Such as "NCHW16c".
    out_dtype : str, optional
        The dtype of the sums.
    n_elems : int
        Neighbouring input channels that one instruction takes.
    groups : int
        Output channels of each group see the input channels of their own; full blocks.
    padded_pixels : callable, optional
        Where height or width are open, rounds the number of output pixels up.
    has_small_weights : bool
        The absolute values of neighbouring int8 weights add up to 128 at most, so that int16 holds
        the sum of two products with uint8 data.
    """
    dtype = out_dtype or data.dtype
    if (wide := product_dtype(dtype)) != dtype:
        options = (stride, padding, dilation, layout, out_layout, wide, n_elems, groups)
        sums = conv2d_NCHWc_int8(data, kernel, *options, padded_pixels, has_small_weights)
        return cast(sums, dtype)
    n, ic_chunk, height, width, ic_block = dims(data.shape)
    oc_chunk, kernel_ic, kh, kw, words, oc_block, size = dims(kernel.shape)
    given = (kernel_ic * groups, words * size, size, oc_chunk % groups)
    if given != (ic_chunk, ic_block, n_elems, 0) or block_size(out_layout) not in (0, oc_block):
        raise RuntimeValueError(
            f"conv2d_NCHWc_int8: kernel {dims(kernel.shape)} does not fit {layout}"
        )
    sh, sw = _spread(stride, 2)
    dh, dw = _spread(dilation, 2)
    pads = get_pad_tuple_generic(padding, dilated_window((kh, kw), (dh, dw)))
    oh = as_extent((height + pads[0] + pads[2] - ((kh - 1) * dh + 1)) // sh + 1)
    ow = as_extent((width + pads[1] + pads[3] - ((kw - 1) * dw + 1)) // sw + 1)
    source = _padded(data, "NCHWc", "HW", pads)
    args = (data, kernel, (sh, sw), tuple(pads), (dh, dw), layout, out_layout, out_dtype)
    asked = workload_attrs("conv2d_NCHWc_int8.x86", *args) if groups == 1 else {}
    ico = te.reduce_axis((0, kernel_ic), name="ic_outer")
    ky = te.reduce_axis((0, kh), name="kh")
    kx = te.reduce_axis((0, kw), name="kw")
    group = te.reduce_axis((0, words), name="ic_group")
    k = te.reduce_axis((0, size), name="ic_inner")

    def element(b: Any, oco: Any, y: Any, x: Any, oci: Any) -> Any:
        channel = group.var * size + k.var
        chunk = ico.var
        if groups > 1:
            chunk = chunk + tir.indexdiv(oco, oc_chunk // groups) * kernel_ic
        value = source(b, chunk, y * sh + ky.var * dh, x * sw + kx.var * dw, channel)
        weight = kernel(oco, ico.var, ky.var, kx.var, group.var, oci, k.var)
        return te.sum(value.astype(dtype) * weight.astype(dtype), axis=[ico, ky, kx, group, k])

    if is_dynamic_shape((oh, ow)):
        pixels = Pixels(oh, ow, padded_pixels)
        sums = te.compute(
            (n, oc_chunk, pixels.padded, oc_block),
            lambda b, oco, p, oci: element(b, oco, *pixels.place(p), oci),
            name="conv2d_pixels",
            tag=PIXELS_TAG,
            attrs={"groups": groups, "has_small_weights": has_small_weights},
        )
        return pixels.image(sums)
    return te.compute(
        (n, oc_chunk, oh, ow, oc_block),
        element,
        name="conv2d_NCHWc_int8",
        tag="conv2d_NCHWc_int8",
        attrs={"stride": (sh, sw), "dilation": (dh, dw), "groups": groups}
        | {"has_small_weights": has_small_weights}
        | asked,
    )
