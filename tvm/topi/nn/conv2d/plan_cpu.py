"""How a convolution of plain data is computed on processors: by which algorithm, in which blocks of channels.

    plan = plan_conv2d(shape, is_weight_known=True)
    plan.winograd, plan.out_block        # (4, 16)

The graph asks before it brings data and weights into blocks; tuners try all plans there are.
"""

from __future__ import annotations

from dataclasses import dataclass

from tvm.support.dtype import dtype as as_dtype
from tvm.target import Target
from tvm.target.cpu import CpuInfo

from ...configuration import Choices, Workload, is_active, workload
from ...cpu.common import processor
from ...utils import ceil_div, prod, product_dtype
from ..utils import dilated_window
from .compute import padded_columns
from .cpu import Conv2dConfig, channel_blocks, conv2d_choices
from .winograd import POINTS, WINDOW, WINOGRAD_TASK
from .winograd_cpu import (
    MIN_CHANNELS,
    WINOGRAD_KNOBS,
    WinogradConfig,
    WinogradShape,
    plain_total,
    winograd_choices,
    winograd_cycles,
    winograd_total,
)

CONV_TASK = "conv2d_NCHWc.x86"


@dataclass(frozen=True, slots=True)
class Conv2dShape:
    """A convolution in one group, in plain layouts."""

    data: tuple[int, ...]  # NCHW
    weight: tuple[int, ...]  # OIHW
    strides: tuple[int, int]
    padding: tuple[int, ...]  # top, left, bottom, right
    dilation: tuple[int, int]
    dtype: str
    out_dtype: str

    @property
    def output(self) -> tuple[int, int]:
        """Rows and columns."""
        top, left, bottom, right = self.padding
        high, wide = dilated_window(self.weight[2:], self.dilation)
        return (
            (self.data[2] + top + bottom - high) // self.strides[0] + 1,
            (self.data[3] + left + right - wide) // self.strides[1] + 1,
        )

    @property
    def operations(self) -> int:
        """Multiplications and additions of the plain sum."""
        channels, in_channels, high, wide = self.weight
        rows, columns = self.output
        return 2 * self.data[0] * channels * rows * columns * in_channels * high * wide

    def task(self) -> Workload | None:
        """The workload as records have it."""
        data, weight = ("TENSOR", self.data, self.dtype), ("TENSOR", self.weight, self.dtype)
        steps = (self.strides, self.padding, self.dilation)
        return workload(CONV_TASK, data, weight, *steps, "NCHW", "NCHW", self.out_dtype)


@dataclass(frozen=True, slots=True)
class Conv2dPlan:
    """An algorithm, blocks of channels, and the tile in registers."""

    winograd: int  # outputs of a tile along an axis; 0 for the plain sum
    in_block: int
    out_block: int
    channel_blocks: int  # blocks of output channels held in registers
    rows: int
    columns: int
    is_split_by_tiles: bool = False

    @property
    def group(self) -> int:
        """Output channels whose weights lie side by side."""
        return self.channel_blocks * self.out_block

    @property
    def layouts(self) -> tuple[str, str]:
        """Of the data and of the output."""
        return f"NCHW{self.in_block}c", f"NCHW{self.out_block}c"


PLAN_KNOBS = {
    "winograd": "winograd",
    "tile_ic": "in_block",
    "tile_oc": "out_block",
    **WINOGRAD_KNOBS,
}


def plan_choices(
    shape: Conv2dShape, is_weight_known: bool = True, target: Target | None = None
) -> Choices[Conv2dPlan]:
    """The plans of a convolution; Winograd's algorithm transforms weights that are known."""
    info = processor(target)
    blocks = channel_blocks(shape.weight[1], shape.weight[0], shape.out_dtype, target)
    plain = _plain_choices(shape, blocks, info)
    positions, weights = shape.data[0] * prod(shape.output), prod(shape.weight)
    unit = plain_total(positions, weights, info) / plain.cost(plain.best())
    tiles = POINTS if is_weight_known and _fits_winograd(shape) else ()
    grids = {m: _winograd_shape(shape, m, blocks) for m in tiles}
    winograd = {m: winograd_choices(grid, info) for m, grid in grids.items()}

    def plans() -> list[Conv2dPlan]:
        return [
            *[_plain_plan(blocks, tile) for tile in plain.configs()],
            *[_winograd_plan(m, blocks, c) for m in tiles for c in winograd[m].configs()],
        ]

    def likely() -> list[Conv2dPlan]:
        best = [_winograd_plan(m, blocks, winograd[m].best()) for m in tiles]
        return [_plain_plan(blocks, plain.best()), *best]

    def cost(plan: Conv2dPlan) -> float:
        registers = (plan.channel_blocks, plan.rows, plan.columns)
        if not (m := plan.winograd):
            tile = Conv2dConfig(plan.channel_blocks, plan.columns, plan.rows)
            return unit * plain.cost(tile)
        cycles = winograd_cycles(grids[m], registers, plan.is_split_by_tiles, info)
        return winograd_total(grids[m], cycles, info)

    # records that know nothing of algorithms are of the plain one
    return Choices(PLAN_KNOBS, plans, cost, likely, absent={"winograd": 0})


def _plain_plan(blocks: tuple[int, int], tile: Conv2dConfig) -> Conv2dPlan:
    return Conv2dPlan(0, *blocks, tile.channel_blocks, tile.rows, tile.columns)


def _winograd_plan(m: int, blocks: tuple[int, int], config: WinogradConfig) -> Conv2dPlan:
    registers = (config.channel_blocks, config.rows, config.columns)
    return Conv2dPlan(m, *blocks, *registers, config.is_split_by_tiles)


def plan_conv2d(
    shape: Conv2dShape, is_weight_known: bool, target: Target | None = None
) -> Conv2dPlan | None:
    """The plan that a record has for a convolution, or tuners are going to try; None without any."""
    task = shape.task()
    if task is None or not is_active():
        return None
    choices = plan_choices(shape, is_weight_known, target)
    return choices.choose(task, lambda plan: planned_workload(shape, plan))


def planned_workload(shape: Conv2dShape, plan: Conv2dPlan) -> Workload | None:
    """The workload of the convolution in the plan's blocks."""
    (batch, channels, height, width), (filters, _, high, wide) = shape.data, shape.weight
    inner, outer = plan.in_block, plan.out_block
    data = ("TENSOR", (batch, channels // inner, height, width, inner), shape.dtype)
    sums = product_dtype(shape.out_dtype)
    if plan.winograd:
        reach = plan.winograd + WINDOW - 1
        kernel = (filters // plan.group, reach, reach, channels // inner, inner, plan.group)
        weight = ("TENSOR", kernel, shape.dtype)
        return workload(
            WINOGRAD_TASK, data, weight, shape.padding, plan.winograd, *plan.layouts, sums
        )
    kernel = (filters // outer, channels // inner, high, wide, inner, outer)
    weight = ("TENSOR", kernel, shape.dtype)
    steps = (shape.strides, shape.padding, shape.dilation)
    return workload(CONV_TASK, data, weight, *steps, *plan.layouts, sums)


def _fits_winograd(shape: Conv2dShape) -> bool:
    is_plain = shape.weight[2:] == (WINDOW, WINDOW) and {*shape.strides, *shape.dilation} == {1}
    few = min(shape.weight[:2]) < MIN_CHANNELS or min(shape.output) < 2
    return is_plain and not few and shape.dtype == shape.out_dtype == "float32"


def _plain_choices(
    shape: Conv2dShape, blocks: tuple[int, int], info: CpuInfo
) -> Choices[Conv2dConfig]:
    filters, channels, high, wide = shape.weight
    vectors = max(blocks[1] * as_dtype(shape.out_dtype).bits // info.vector_bits, 1)
    rows, columns = shape.output
    columns = padded_columns(columns, any(shape.padding))
    inner = channels * high * wide
    return conv2d_choices(filters // blocks[1], rows, columns, vectors, inner, info)


def _winograd_shape(shape: Conv2dShape, m: int, blocks: tuple[int, int]) -> WinogradShape:
    grid = (ceil_div(shape.output[0], m), ceil_div(shape.output[1], m))
    chunks = (shape.weight[1] // blocks[0], shape.weight[0] // blocks[1])
    return WinogradShape(m, shape.data[0], grid, chunks, blocks)
