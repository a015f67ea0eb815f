"""A convolution of images as a record of numbers, and the tiles that classic templates start with.

wkl = _get_workload(A, W, (1, 1), (1, 1), (1, 1), "float32")
cfg = autotvm.get_config()
_fallback_schedule(cfg, wkl)
cfg["tile_ow"].size
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from tvm import te
from tvm.autotvm.task.space import ConfigSpace, OtherOptionEntity, SplitEntity
from tvm.error import RuntimeValueError
from tvm.target.cpu import cpu_info
from tvm.target.generic_func import generic_func

from ..utils import dims, largest_divisor
from .utils import dilated_window, get_pad_tuple

_ROW_REGISTERS = 31  # accumulators of one row that stay in registers


class Workload(NamedTuple):
    """The extents and steps of a convolution."""

    in_dtype: str
    out_dtype: str
    height: int
    width: int
    in_filter: int
    groups: int
    out_filter: int
    kernel_h: int
    kernel_w: int
    padt: int
    padl: int
    padb: int
    padr: int
    dilation_h: int
    dilation_w: int
    stride_h: int
    stride_w: int

    def out_extents(self) -> tuple[int, int]:
        """The rows and columns of the result."""
        reach = dilated_window((self.kernel_h, self.kernel_w), (self.dilation_h, self.dilation_w))
        rows = self.height + self.padt + self.padb - reach[0]
        columns = self.width + self.padl + self.padr - reach[1]
        return rows // self.stride_h + 1, columns // self.stride_w + 1


def conv2d_workload(
    data: te.Tensor,
    kernel: te.Tensor,
    stride: Any,
    padding: Any,
    dilation: Any,
    out_dtype: str,
    data_layout: str = "NCHW",
) -> Workload:
    """The record of a convolution.

    Parameters
    ----------
    data, kernel : te.Tensor
        Images in `data_layout`; the kernel is OIHW for "NCHW", and HWIO otherwise.
    stride, padding, dilation : int or sequence of int
        The steps of the window and of its elements, and the border.
    out_dtype : str
        The result's dtype.
    data_layout : str
        "NCHW", "NHWC" or "HWCN".
    """
    if data_layout not in ("NCHW", "NHWC", "HWCN"):
        raise RuntimeValueError(
            f"a workload requires the layout NCHW, NHWC or HWCN, got {data_layout!r}"
        )
    extents = dict(zip(data_layout, dims(data.shape), strict=True))
    window = dict(zip("OIHW" if data_layout == "NCHW" else "HWIO", dims(kernel.shape), strict=True))
    return _workload(
        data, out_dtype, extents, (window["H"], window["W"]), extents["C"] // window["I"],
        window["O"], (stride, padding, dilation),
    )  # fmt: skip


def depthwise_conv2d_workload(
    data: te.Tensor,
    kernel: te.Tensor,
    stride: Any,
    padding: Any,
    dilation: Any,
    out_dtype: str,
    data_layout: str = "NCHW",
) -> Workload:
    """The record of a depthwise convolution: each channel is a group.

    Parameters
    ----------
    data, kernel : te.Tensor
        Images in `data_layout`; the kernel is (channel, multiplier, H, W) for "NCHW", and
        (H, W, channel, multiplier) for "NHWC".
    stride, padding, dilation, out_dtype, data_layout
        As of `conv2d_workload`.
    """
    if data_layout not in ("NCHW", "NHWC"):
        raise RuntimeValueError(f"a workload requires the layout NCHW or NHWC, got {data_layout!r}")
    extents = dict(zip(data_layout, dims(data.shape), strict=True))
    window = dict(zip("CMHW" if data_layout == "NCHW" else "HWCM", dims(kernel.shape), strict=True))
    return _workload(
        data, out_dtype, extents, (window["H"], window["W"]), extents["C"],
        window["C"] * window["M"], (stride, padding, dilation),
    )  # fmt: skip


def _workload(
    data: te.Tensor,
    out_dtype: str,
    extents: dict[str, int],
    window: tuple[int, int],
    groups: int,
    out_filter: int,
    steps: tuple[Any, Any, Any],
) -> Workload:
    stride, padding, dilation = steps
    stride, dilation = [(n, n) if isinstance(n, int) else dims(n) for n in (stride, dilation)]
    pads = get_pad_tuple(padding, dilated_window(window, dilation))
    return Workload(
        str(data.dtype), out_dtype, extents["H"], extents["W"], extents["C"], groups, out_filter,
        *window, *pads, *dilation, *stride,
    )  # fmt: skip


def fallback_schedule(cfg: ConfigSpace, wkl: Workload) -> None:
    """The tiles of a template that nobody tuned: blocks of channels fill a vector."""
    lanes = cpu_info().vector_bits // 32
    out_block = largest_divisor(wkl.out_filter, lanes)
    in_block = largest_divisor(wkl.in_filter, out_block)
    _set_tiles(cfg, wkl, in_block, out_block)
    cfg["tile_ow"] = _parts(wkl.out_extents()[1], _ROW_REGISTERS)
    cfg["unroll_kw"] = OtherOptionEntity(False)


def fallback_schedule_cpu_common_int8(
    cfg: ConfigSpace, wkl: Workload, int32_lanes: int, num_int8_elements: int
) -> None:
    """The tiles of a convolution of narrow numbers.

    Parameters
    ----------
    cfg : ConfigSpace
        The configuration to fill.
    wkl : Workload
        The convolution.
    int32_lanes : int
        How many sums the instruction has.
    num_int8_elements : int
        How many products it adds to each sum.
    """
    _set_int8_tiles(cfg, wkl, int32_lanes, num_int8_elements)
    cfg["tile_ow"] = _parts(wkl.out_extents()[1], _ROW_REGISTERS)
    cfg["unroll_kw"] = OtherOptionEntity(False)


def fallback_schedule_cpu_1x1_int8(
    cfg: ConfigSpace, wkl: Workload, int32_lanes: int, num_int8_elements: int
) -> None:
    """As `fallback_schedule_cpu_common_int8`, of windows of one element: tiles of several rows."""
    _set_int8_tiles(cfg, wkl, int32_lanes, num_int8_elements)
    rows, columns = wkl.out_extents()
    cfg["tile_ow"] = _parts(columns, _ROW_REGISTERS)
    cfg["tile_oh"] = OtherOptionEntity(
        largest_divisor(rows, max(_ROW_REGISTERS // cfg["tile_ow"].size[-1], 1))
    )


def _set_int8_tiles(cfg: ConfigSpace, wkl: Workload, lanes: int, group: int) -> None:
    if wkl.out_filter % lanes:
        raise RuntimeValueError(
            f"a convolution of narrow numbers requires output channels in blocks of {lanes}, "
            f"got {wkl.out_filter}"
        )
    blocks = [block for block in range(group, lanes + 1, group) if wkl.in_filter % block == 0]
    _set_tiles(cfg, wkl, max(blocks, default=1), lanes)


def _set_tiles(cfg: ConfigSpace, wkl: Workload, in_block: int, out_block: int) -> None:
    cfg["tile_ic"] = SplitEntity([wkl.in_filter // in_block, in_block])
    cfg["tile_oc"] = SplitEntity([wkl.out_filter // out_block, out_block])


def _parts(extent: int, at_most: int) -> SplitEntity:
    inner = largest_divisor(extent, at_most)
    return SplitEntity([extent // inner, inner])


Layouts = tuple[tuple[tuple[tuple[int, ...], str]], tuple[tuple[tuple[int, ...], str]]]


@generic_func
def conv2d_infer_layout(workload: Sequence[Any], cfg: ConfigSpace) -> Layouts:
    """The shapes and layouts of the data and of the result, in the blocks that were chosen.

    Parameters
    ----------
    workload : sequence
        The name of a task and its arguments, of which the data, the kernel, the steps, the padding
        and the dilation come first.
    cfg : ConfigSpace
        Its tiles.
    """
    return _blocked(workload, cfg, conv2d_workload)


@generic_func
def depthwise_conv2d_infer_layout(workload: Sequence[Any], cfg: ConfigSpace) -> Layouts:
    """As `conv2d_infer_layout`, of a depthwise convolution."""
    return _blocked(workload, cfg, depthwise_conv2d_workload)


def _blocked(workload: Sequence[Any], cfg: ConfigSpace, record: Any) -> Layouts:
    _, data, kernel, strides, padding, dilation, *_ = workload
    tensors = [te.placeholder(arg[1], arg[2]) for arg in (data, kernel)]
    numbers = record(*tensors, strides, padding, dilation, data[2])
    inner, outer = cfg["tile_ic"].size[-1], cfg["tile_oc"].size[-1]
    rows, columns = numbers.out_extents()
    batch, channels, *image = data[1]
    read = (batch, channels // inner, *image, inner)
    made = (batch, numbers.out_filter // outer, rows, columns, outer)
    return ((read, f"NCHW{inner}c"),), ((made, f"NCHW{outer}c"),)
