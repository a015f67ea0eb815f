"""Convolution as a sum over the window and the input channels, in any layout.

out[n, f, y, x] = sum over c, ky, kx of data[n, c, y * s + ky, x * s + kx] * weight[f, c, ky, kx]
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from tvm import te, tir
from tvm.error import RuntimeValueError
from tvm.ir.expr import PrimExpr
from tvm.support.signatures import take_names, with_values

from ...configuration import workload_attrs
from ...cpu.fitted import CONV2D_COPY, CONV2D_TILE_EDGE
from ...math import cast
from ...utils import (
    as_extent,
    dims,
    is_dynamic_shape,
    largest_divisor,
    product_dtype,
    require_equal,
)
from ..dense.compute import crop
from ..pad import pad
from ..utils import dilated_window, get_pad_tuple_generic
from .pixels import PIXELS_TAG, Pixels


def _spread(value: Any, rank: int) -> list[int]:
    numbers = [value] if isinstance(value, int) else [int(v) for v in value]
    return numbers * rank if len(numbers) == 1 else numbers


def _padded(
    data: te.Tensor, layout: str, spatial: str, padding: Sequence[Any], name: str = "data_pad"
) -> te.Tensor:
    if not any([isinstance(width, PrimExpr) or width for width in padding]):
        return data
    before, after = [0] * len(layout), [0] * len(layout)
    for i, axis in enumerate(spatial):
        before[layout.index(axis)] = padding[i]
        after[layout.index(axis)] = padding[i + len(spatial)]
    return pad(data, before, after, name=name)


def conv(
    inp: te.Tensor,
    filt: te.Tensor,
    stride: Any,
    padding: Any,
    dilation: Any,
    groups: int,
    data_layout: str,
    kernel_layout: str = "",
    out_dtype: str | None = None,
) -> te.Tensor:
    """Convolution over the spatial axes that the data's layout names.

    Parameters
    ----------
    inp, filt : te.Tensor
        The data and the kernel.
    stride, padding, dilation
        One number, or one for each spatial axis; padding also two for each.
    groups : int
        The number of channel groups.
    data_layout, kernel_layout : str
        Such as "NCHW" and "OIHW"; "HWOI" holds a depthwise kernel's multiplier in I.
    out_dtype : str, optional
        The dtype of the sums, the data's by default.
    """
    dtype = out_dtype or inp.dtype
    if (wide := product_dtype(dtype)) != dtype:
        layouts = (data_layout, kernel_layout)
        return cast(conv(inp, filt, stride, padding, dilation, groups, *layouts, wide), dtype)
    spatial = "".join([axis for axis in data_layout if axis not in "NC"])
    rank = len(spatial)
    kernel_layout = kernel_layout or ("OI" + spatial if data_layout[1] == "C" else spatial + "IO")
    strides, dilations = _spread(stride, rank), _spread(dilation, rank)
    kernel = dict(zip(kernel_layout, dims(filt.shape), strict=True))
    have = dict(zip(data_layout, dims(inp.shape), strict=True))
    pads = get_pad_tuple_generic(
        padding, dilated_window([kernel[axis] for axis in spatial], dilations)
    )
    source = _padded(inp, data_layout, spatial, pads)
    by_multiplier = kernel_layout == "HWOI" and groups > 1
    channels = kernel["O"] * kernel["I"] if by_multiplier else kernel["O"]
    taken = kernel["O"] if by_multiplier else kernel["I"] * groups
    require_equal(
        f"a convolution of {groups} groups", "data of the kernel's channels", have["C"], taken
    )
    group_in = have["C"] // groups
    group_out = channels // groups
    out: dict[str, Any] = {"N": have["N"], "C": channels}
    for i, axis in enumerate(spatial):
        window = (kernel[axis] - 1) * dilations[i] + 1
        out[axis] = (have[axis] + pads[i] + pads[i + rank] - window) // strides[i] + 1
    rc = te.reduce_axis((0, group_in), name="rc")
    windows = [te.reduce_axis((0, kernel[axis]), name=f"r{axis.lower()}") for axis in spatial]

    def element(*indices: Any) -> Any:
        at = dict(zip(data_layout, indices, strict=True))
        f = at["C"]
        where: dict[str, Any] = {
            "N": at["N"],
            "C": _input_channel(f, rc.var, groups, group_in, group_out),
        }
        weight_at: dict[str, Any] = {"O": f, "I": rc.var}
        if by_multiplier:
            weight_at = {"O": tir.indexdiv(f, kernel["I"]), "I": tir.indexmod(f, kernel["I"])}
        for i, axis in enumerate(spatial):
            where[axis] = at[axis] * strides[i] + windows[i].var * dilations[i]
            weight_at[axis] = windows[i].var
        value = source(*[where[axis] for axis in data_layout])
        weight = filt(*[weight_at[axis] for axis in kernel_layout])
        return te.sum(_as(value, dtype) * _as(weight, dtype), axis=[rc, *windows])

    shape = [out[axis] for axis in data_layout]
    name = f"{'group_' if groups > 1 else ''}conv{rank}d_{data_layout.lower()}"
    split = (groups,) if groups > 1 or rank == 3 else ()
    args = (inp, filt, tuple(strides), tuple(pads), tuple(dilations), *split, dtype)
    has_own = kernel_layout not in (f"OI{spatial}", f"{spatial}IO")
    asked = {} if has_own else workload_attrs(f"{name}.x86", *args)
    return te.compute(shape, element, name=name, tag=name, attrs=asked)


def _input_channel(f: Any, rc: Any, groups: int, group_in: int, group_out: int) -> Any:
    if groups == 1:
        return rc
    group = f if group_out == 1 else tir.indexdiv(f, group_out)
    return group * group_in + rc


def _as(value: Any, dtype: str) -> Any:
    return value if value.dtype == dtype else value.astype(dtype)


def _grouped_in_layouts(
    data_layout: str, kernel_layout: str, dtype: str | None = None
) -> Callable[[Callable[[], None]], Callable[..., te.Tensor]]:
    """A convolution in fixed layouts, under the name and the docstring of the decorated function."""

    def convolution(
        Input: te.Tensor,
        Filter: te.Tensor,
        stride: Any,
        padding: Any,
        dilation: Any,
        groups: int = 1,
        out_dtype: str | None = dtype,
    ) -> te.Tensor:
        steps = (stride, padding, dilation)
        return conv(Input, Filter, *steps, groups, data_layout, kernel_layout, out_dtype)

    return partial(take_names, convolution)


def _in_layouts(
    data_layout: str, kernel_layout: str, dtype: str | None = None
) -> Callable[[Callable[[], None]], Callable[..., te.Tensor]]:
    """As `_grouped_in_layouts`, of one group."""

    def declare(named: Callable[[], None]) -> Callable[..., te.Tensor]:
        grouped = _grouped_in_layouts(data_layout, kernel_layout, dtype)(named)
        return with_values(grouped, groups=1)(named)

    return declare


@_in_layouts("NCHW", "OIHW")
def conv2d_nchw() -> None:
    """Convolution of NCHW data by an OIHW kernel."""


@_in_layouts("NHWC", "HWIO", "float32")
def conv2d_nhwc() -> None:
    """Convolution of NHWC data by an HWIO kernel."""


@_in_layouts("HWCN", "HWIO")
def conv2d_hwcn() -> None:
    """Convolution of HWCN data by an HWIO kernel."""


@_grouped_in_layouts("NCHW", "OIHW")
def group_conv2d_nchw() -> None:
    """Grouped convolution of NCHW data."""


@_grouped_in_layouts("NHWC", "HWIO")
def group_conv2d_nhwc() -> None:
    """Grouped convolution of NHWC data."""


@_grouped_in_layouts("NCDHW", "OIDHW")
def conv3d_ncdhw() -> None:
    """Convolution of NCDHW data by an OIDHW kernel."""


@_grouped_in_layouts("NDHWC", "DHWIO", "float32")
def conv3d_ndhwc() -> None:
    """Convolution of NDHWC data by a DHWIO kernel."""


def conv2d(
    input: te.Tensor,
    filter: te.Tensor,
    strides: Any,
    padding: Any,
    dilation: Any,
    data_layout: str = "NCHW",
    kernel_layout: str = "",
    out_dtype: str | None = None,
) -> te.Tensor:
    """Convolution over two spatial axes."""
    return conv(input, filter, strides, padding, dilation, 1, data_layout, kernel_layout, out_dtype)


def conv1d(
    data: te.Tensor,
    kernel: te.Tensor,
    strides: Any = 1,
    padding: Any = "VALID",
    dilation: Any = 1,
    groups: int = 1,
    data_layout: str = "NCW",
    kernel_layout: str = "",
    out_dtype: str | None = None,
) -> te.Tensor:
    """Convolution over one spatial axis."""
    return conv(
        data, kernel, strides, padding, dilation, groups, data_layout, kernel_layout, out_dtype
    )


GROUP_TASK = "group_conv2d_NCHWc.x86"


def conv2d_NCHWc(
    data: te.Tensor,
    kernel: te.Tensor,
    stride: Any,
    padding: Any,
    dilation: Any,
    layout: str,
    out_layout: str,
    out_dtype: str | None = "float32",
    groups: int = 1,
    skip_border_rows: bool = False,
    padded_pixels: Callable[[Any], Any] | None = None,
) -> te.Tensor:
    """Convolution with channels in blocks; the channels of a group fill full blocks.

    Parameters
    ----------
    data : te.Tensor
        (n, ic chunk, h, w, ic block)
    kernel : te.Tensor
        (oc chunk, ic chunk of a group, kh, kw, ic block, oc block)
    layout, out_layout : str
        Such as "NCHW16c".
    skip_border_rows : bool
        Leave out the rows of the window that see zeros above or below the data.
    padded_pixels : callable, optional
        Rounds the number of output pixels up; they are one axis then, as they are where height or
        width are open.
    """
    dtype = out_dtype or data.dtype
    if (wide := product_dtype(dtype)) != dtype:
        steps = (stride, padding, dilation)
        args = (data, kernel, *steps, layout, out_layout, wide, groups)
        return cast(conv2d_NCHWc(*args, padded_pixels=padded_pixels), dtype)
    n, chunks, height, width, ic_block = dims(data.shape)
    oc_chunk, ic_chunk, kh, kw, _, oc_block = dims(kernel.shape)
    if ic_chunk * groups != chunks or block_size(out_layout) not in (0, oc_block):
        raise RuntimeValueError(f"conv2d_NCHWc: kernel {dims(kernel.shape)} does not fit {layout}")
    sh, sw = _spread(stride, 2)
    dh, dw = _spread(dilation, 2)
    pads = get_pad_tuple_generic(padding, dilated_window((kh, kw), (dh, dw)))
    oh = as_extent((height + pads[0] + pads[2] - ((kh - 1) * dh + 1)) // sh + 1)
    ow = as_extent((width + pads[1] + pads[3] - ((kw - 1) * dw + 1)) // sw + 1)
    if is_dynamic_shape((oh, ow)) or padded_pixels is not None:
        source = _padded(data, "NCHWc", "HW", pads)
        pixels = Pixels(oh, ow, padded_pixels)
        return _conv2d_of_pixels(source, kernel, (sh, sw), (dh, dw), pixels, dtype, groups)
    columns = padded_columns(ow, any(pads))
    workload = (data, kernel, (sh, sw), tuple(pads), (dh, dw), layout, out_layout, dtype)
    task = ("conv2d_NCHWc.x86", *workload) if groups == 1 else (GROUP_TASK, *workload, groups)
    asked = workload_attrs(*task)
    source = _padded(data, "NCHWc", "HW", (*pads[:3], pads[3] + (columns - ow) * sw))
    ico = te.reduce_axis((0, ic_chunk), name="ic_outer")
    ici = te.reduce_axis((0, ic_block), name="ic_inner")
    ky = te.reduce_axis((0, kh), name="kh")
    kx = te.reduce_axis((0, kw), name="kw")

    def element(b: Any, oco: Any, y: Any, x: Any, oci: Any) -> Any:
        chunk = _input_channel(oco, ico.var, groups, ic_chunk, oc_chunk // groups)
        value = source(b, chunk, y * sh + ky.var * dh, x * sw + kx.var * dw, ici.var)
        weight = kernel(oco, ico.var, ky.var, kx.var, ici.var, oci)
        row = y * sh + ky.var * dh - pads[0]
        is_seen = tir.all(row >= 0, row < height) if skip_border_rows else None
        product = _as(value, dtype) * _as(weight, dtype)
        return te.sum(product, axis=[ico, ky, kx, ici], where=is_seen)

    out = te.compute(
        (n, oc_chunk, oh, columns, oc_block),
        element,
        name="conv2d_NCHWc",
        tag="conv2d_NCHWc",
        attrs={"stride": (sh, sw), "dilation": (dh, dw), "groups": groups} | asked,
    )
    return out if columns == ow else crop(out, (n, oc_chunk, oh, ow, oc_block))


def _conv2d_of_pixels(
    source: te.Tensor,
    kernel: te.Tensor,
    stride: tuple[int, int],
    dilation: tuple[int, int],
    pixels: Pixels,
    dtype: str,
    groups: int,
) -> te.Tensor:
    """A convolution to rows and columns as one axis."""
    oc_chunk, ic_chunk, kh, kw, ic_block, oc_block = dims(kernel.shape)
    (sh, sw), (dh, dw) = stride, dilation
    ico = te.reduce_axis((0, ic_chunk), name="ic_outer")
    ici = te.reduce_axis((0, ic_block), name="ic_inner")
    ky = te.reduce_axis((0, kh), name="kh")
    kx = te.reduce_axis((0, kw), name="kw")

    def element(b: Any, oco: Any, p: Any, oci: Any) -> Any:
        chunk = _input_channel(oco, ico.var, groups, ic_chunk, oc_chunk // groups)
        y, x = pixels.place(p)
        value = source(b, chunk, y * sh + ky.var * dh, x * sw + kx.var * dw, ici.var)
        weight = kernel(oco, ico.var, ky.var, kx.var, ici.var, oci)
        return te.sum(_as(value, dtype) * _as(weight, dtype), axis=[ico, ky, kx, ici])

    sums = te.compute(
        (source.shape[0], oc_chunk, pixels.padded, oc_block),
        element,
        name="conv2d_pixels",
        tag=PIXELS_TAG,
        attrs={"groups": groups},
    )
    return pixels.image(sums)


def padded_columns(columns: Any, is_padded: bool) -> Any:
    """A number of columns that tiles divide: itself, or a little more where it has no good divisor.

    The columns beyond the last see zeros beyond the data's border, and are dropped.
    """
    if not isinstance(columns, int) or columns < 16:
        return columns

    def cost(count: int) -> float:
        # data without a border would have to be copied
        copy = 1.0 if is_padded or count == columns else CONV2D_COPY
        return copy * count * (1 + CONV2D_TILE_EDGE / largest_divisor(count, 28))

    return min(range(columns, columns + 8), key=cost)


def block_size(layout: str) -> int:
    """The channel block of a layout; 0 if channels are not blocked."""
    found = re.search(r"(\d+)c", layout)
    return int(found.group(1)) if found else 0


def unpack_NCHWc_to_nchw(packed_out: te.Tensor, out_dtype: str) -> te.Tensor:
    """Channels in blocks to channels in a row."""
    n, chunks, height, width, block = dims(packed_out.shape)

    def element(b: Any, c: Any, y: Any, x: Any) -> Any:
        value = packed_out(b, tir.indexdiv(c, block), y, x, tir.indexmod(c, block))
        return _as(value, out_dtype)

    return te.compute(
        (n, chunks * block, height, width), element, name="output_unpack", tag="injective"
    )
