"""Winograd's convolution on processors: blocks of tiles whose transforms stay in L2.

for block in parallel(blocks of tiles):
    for ic: V[eps, nu, ic, tiles] = B' d B
    for oc pair:
        for eps, nu:
            for 14 tiles:
                acc[2][14][0:16] = 0
                for ic block:
                    part[2][14][0:16] = 0
                    for ic: part[j][t] += broadcast(V[eps, nu, ic, t]) * weight[eps, nu, j, ic]
                    acc += part
                M[eps, nu, j, t] = acc
        for tile: out[...] = epilogue(A' M A)

Where tiles are few the blocks are of output channels instead, V one tensor of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from tvm import te, tir
from tvm.support.dtype import dtype as as_dtype
from tvm.target import Target
from tvm.target.cpu import CpuInfo

from ...choice import note
from ...configuration import Choices, workload_of
from ...cpu.common import fuse_and_parallel, processor
from ...cpu.fitted import (
    CONV2D_FMA,
    WINOGRAD,
    WINOGRAD_SPILLED_SUMS,
    WINOGRAD_STEPS,
    WINOGRAD_TRANSFORM,
)
from ...cpu.prefetch import prefetch_panels
from ...cpu.tile_cost import TileStep, step_cycles
from ...generic.schedules import open_schedule
from ...utils import ceil_div, dims, divisors, extents_of, largest_divisor, prod, rounded_up
from .cpu import TILE_KNOBS, inline_around, schedule_padding, vectorize_block
from .winograd import POINTS, WINDOW
from .winograd import conv2d_NCHWc_winograd as compute_winograd

# fewer channels than these do not pay for the transforms
MIN_CHANNELS = 16
# groups in registers, of those that multiply fastest, for which blocks are tried
MOST_TILES = 24
# the most products that are added one after the other
MOST_ADDED = 16
WINOGRAD_KNOBS = TILE_KNOBS | {"by_tiles": "is_split_by_tiles"}


@dataclass(frozen=True, slots=True)
class WinogradConfig:
    """How the tiles of the output are grouped."""

    channel_blocks: int  # blocks of output channels held in registers
    rows: int  # tiles held in registers
    columns: int
    block_rows: int  # those groups of tiles whose transforms stay in L2
    block_columns: int
    is_split_by_tiles: bool  # threads take blocks of tiles, else blocks of output channels


@dataclass(frozen=True, slots=True)
class WinogradShape:
    """What the grouping of tiles depends on."""

    tile: int
    batch: int
    grid: tuple[int, int]  # rows and columns of tiles
    chunks: tuple[int, int]  # blocks of input and of output channels
    blocks: tuple[int, int]  # their sizes
    dtype: str = "float32"

    @property
    def points(self) -> int:
        """Values of a transformed tile."""
        return (self.tile + WINDOW - 1) ** 2

    @property
    def weight_bytes(self) -> int:
        return self.points * self._column_bytes * self.chunks[1] * self.blocks[1]

    @property
    def data_bytes(self) -> int:
        """Of the transformed data of one tile."""
        return self.points * self._column_bytes

    def product_bytes(self, group: int) -> int:
        """Of the products of one tile and a group of blocks of output channels."""
        return self.points * group * self.blocks[1] * as_dtype(self.dtype).bits // 8

    @property
    def _column_bytes(self) -> int:
        return self.chunks[0] * self.blocks[0] * as_dtype(self.dtype).bits // 8


@lru_cache(maxsize=256)  # a model has many convolutions of few shapes
def choose_winograd(
    shape: WinogradShape,
    info: CpuInfo,
    channel_blocks: int | None = None,
    is_rounded: bool = False,
) -> tuple[WinogradConfig, float]:
    """The grouping that takes the fewest cycles for the products, and those cycles.

    Parameters
    ----------
    shape : WinogradShape
        The convolution.
    channel_blocks : int, optional
        Blocks of output channels that the weights have side by side.
    is_rounded : bool
        The grid is final: groups have to divide it.
    """
    choices = winograd_choices(shape, info, channel_blocks, is_rounded)
    config = choices.best()
    return config, choices.cost(config)


def winograd_choices(
    shape: WinogradShape,
    info: CpuInfo,
    channel_blocks: int | None = None,
    is_rounded: bool = False,
) -> Choices[WinogradConfig]:
    """The groupings that fit the registers, and their cycles; parameters as of `choose_winograd`."""
    vectors = max(shape.blocks[1] * as_dtype(shape.dtype).bits // info.vector_bits, 1)
    groups = [g for g in divisors(shape.chunks[1]) if g * vectors <= 4] or [1]
    known: dict[WinogradConfig, float] = {}

    def configs(most: int | None = None) -> list[WinogradConfig]:
        found = [
            (_product_cycles(shape, group, vectors, rows, columns, info), group, rows, columns)
            for group in ([channel_blocks] if channel_blocks else groups)
            for rows, columns in _register_tiles(shape.grid, group * vectors, info)
            if not is_rounded or (shape.grid[0] % rows == 0 and shape.grid[1] % columns == 0)
        ]
        options = [
            _with_blocks(shape, cycles, (group, rows, columns), by_tiles, info)
            for cycles, group, rows, columns in sorted(found)[:most]
            for by_tiles in (False, True)
        ]
        known.update([(config, cycles) for cycles, config in options])
        return [config for _, config in options]

    return Choices(WINOGRAD_KNOBS, configs, known.__getitem__, lambda: configs(MOST_TILES))


def winograd_cycles(
    shape: WinogradShape, registers: tuple[int, int, int], by_tiles: bool, info: CpuInfo
) -> float:
    """Cycles of the products with a group of blocks of channels, rows and columns in registers."""
    group, rows, columns = registers
    vectors = max(shape.blocks[1] * as_dtype(shape.dtype).bits // info.vector_bits, 1)
    cycles = _product_cycles(shape, group, vectors, rows, columns, info)
    return _with_blocks(shape, cycles, registers, by_tiles, info)[0]


def _with_blocks(
    shape: WinogradShape,
    cycles: float,
    registers: tuple[int, int, int],
    by_tiles: bool,
    info: CpuInfo,
) -> tuple[float, WinogradConfig]:
    """The blocks that fit L2, and all cycles with uneven shares and traffic."""
    group, rows, columns = registers
    down, across = ceil_div(shape.grid[0], rows), ceil_div(shape.grid[1], columns)
    held = shape.product_bytes(group) + shape.data_bytes * by_tiles
    block = _block_of(down, across, info.l2 // 2 // (held * rows * columns))
    positions = shape.batch * (down // block[0]) * (across // block[1])
    units = positions if by_tiles else positions * (shape.chunks[1] // group)
    tiles = positions * rows * columns * block[0] * block[1]
    moved = _moved_bytes(shape, group, positions, tiles, by_tiles, info)
    uneven = rounded_up(units, info.cores) / units
    config = WinogradConfig(*registers, *block, by_tiles)
    return cycles * uneven + moved / info.timing.shared_bandwidth, config


def _register_tiles(grid: tuple[int, int], weights: int, info: CpuInfo) -> list[tuple[int, int]]:
    """Rows and columns of tiles whose products fit the registers, some left for the operands."""
    most = max((info.vector_registers * 7 // 8 - weights) // weights, 1)
    return [
        (rows, columns)
        for columns in range(1, min(grid[1], most) + 1)
        for rows in range(1, min(grid[0], most // columns) + 1)
    ]


def _product_cycles(
    shape: WinogradShape, group: int, vectors: int, rows: int, columns: int, info: CpuInfo
) -> float:
    """Cycles of all products."""
    weights, held = group * vectors, rows * columns
    area = rounded_up(shape.grid[0], rows) * rounded_up(shape.grid[1], columns)
    depth = shape.chunks[0] * shape.blocks[0]
    is_streamed = depth * weights * info.vector_bits // 8 > info.l1d * 3 // 4
    l2_bytes = weights * info.vector_bits / 8 if is_streamed else 0.0
    step = step_cycles(TileStep(weights * held, weights + held, l2_bytes), WINOGRAD, info.timing)
    # the sums over some channels, and those over all
    sums = weights * held * (2 if depth > MOST_ADDED else 1)
    if sums + weights >= info.vector_registers:
        step *= WINOGRAD_SPILLED_SUMS
    return step * area / held * shape.chunks[1] / group * shape.batch * shape.points * depth


def _block_of(down: int, across: int, room: int) -> tuple[int, int]:
    """Rows and columns of groups of tiles that fit a cache, full rows first."""
    columns = max([d for d in divisors(across) if d <= max(room, 1)])
    left = room // columns if columns == across else 1
    return max([d for d in divisors(down) if d <= max(left, 1)]), columns


def _moved_bytes(
    shape: WinogradShape, group: int, points: int, tiles: int, by_tiles: bool, info: CpuInfo
) -> int:
    """Bytes that pass between L2 and what is behind it."""
    groups = shape.chunks[1] // group
    if by_tiles:
        return shape.weight_bytes * (points if shape.weight_bytes > info.l2 // 2 else 1)
    data = tiles * shape.data_bytes
    again = shape.weight_bytes // groups > info.l2 // 2
    weights = shape.weight_bytes * (points if again else 1)
    return weights + data * (2 + groups if data > info.l2 // 2 else 1)


def winograd_tile(
    data_shape: Sequence[int],
    out_channels: int,
    padding: Sequence[int],
    blocks: tuple[int, int],
    dtype: str,
    target: Target | None = None,
    plain_speed: float = 1.0,
) -> tuple[int, int] | None:
    """The tile of the fastest Winograd convolution of 3x3 windows and the output channels whose
    weights lie side by side; None if the plain convolution is faster.

    Parameters
    ----------
    data_shape : sequence of int
        (n, c, h, w).
    padding : sequence of int
        Top, left, bottom, right.
    blocks : tuple of int
        Blocks of input and of output channels.
    plain_speed : float
        How much faster than in float32 the plain convolution multiplies.
    """
    info = processor(target)
    batch, channels, height, width = data_shape
    out = (height + padding[0] + padding[2] - 2, width + padding[1] + padding[3] - 2)
    if as_dtype(dtype) != "float32" or min(out) < 2 or min(channels, out_channels) < MIN_CHANNELS:
        return None
    chunks = (channels // blocks[0], out_channels // blocks[1])
    weights = channels * out_channels * WINDOW**2
    best, best_cycles = None, plain_total(batch * out[0] * out[1], weights, info, plain_speed)
    for m in POINTS:
        grid = (ceil_div(out[0], m), ceil_div(out[1], m))
        shape = WinogradShape(m, batch, grid, chunks, blocks)
        config, cycles = choose_winograd(shape, info)
        total = winograd_total(shape, cycles, info)
        if total < best_cycles:
            best, best_cycles = (m, config.channel_blocks * blocks[1]), total
    return best


def plain_total(pixels: int, weights: int, info: CpuInfo, speed: float = 1.0) -> float:
    """Cycles on all cores of the plain convolution to that many pixels.

    `speed` tells how much faster than in float32 it multiplies.
    """
    cycles = pixels * weights / info.fp32_lanes * CONV2D_FMA / speed
    return _total(cycles, int(4 * weights / speed), info)


def winograd_total(shape: WinogradShape, cycles: float, info: CpuInfo) -> float:
    """Cycles on all cores of Winograd's convolution, given those of its products."""
    lanes = info.fp32_lanes
    vectors = sum(
        [
            chunks * block / min(block, lanes)
            for chunks, block in zip(shape.chunks, shape.blocks, strict=True)
        ]
    )
    lines = shape.batch * prod(shape.grid) * vectors * WINOGRAD_TRANSFORM[shape.tile]
    return _total(cycles + lines, shape.weight_bytes, info) + WINOGRAD_STEPS


def _total(cycles: float, weight_bytes: int, info: CpuInfo) -> float:
    """Cycles on all cores; half the time that weights take from memory is hidden.

    All of it is where a kernel runs alone; in a network the next one waits for memory as well.
    """
    timing = info.timing
    fits = weight_bytes <= info.l2
    streamed = weight_bytes / (timing.l2_bandwidth if fits else timing.memory_bandwidth)
    return cycles / info.cores + streamed / 2


def conv2d_NCHWc_winograd(
    data: te.Tensor,
    kernel: te.Tensor,
    padding: Any,
    tile_size: int,
    layout: str,
    out_layout: str,
    out_dtype: str | None = None,
) -> te.Tensor:
    """Winograd's convolution, its grid of tiles rounded up to full groups in registers."""
    args = (data, kernel, padding, tile_size, layout, out_layout, out_dtype)
    config = _grouping(compute_winograd(*args).op, processor(), is_rounded=False)
    return compute_winograd(*args, grid_step=(config.rows, config.columns))


def schedule_conv2d_NCHWc_winograd(outs: te.Tensor | Sequence[te.Tensor]) -> te.Schedule:
    """Schedule Winograd's convolution, and what is fused behind it."""
    s, final, ops = open_schedule(outs)
    anchor = next(op for op in ops if op.tag == "conv2d_NCHWc_winograd")
    parts = parts_of(anchor)
    inline_around(s, [op for op in ops if op is not parts.source.op], anchor, final)
    if dims(final.shape) != dims(anchor.output(0).shape):
        return s
    if final.op is not anchor:
        s[anchor].compute_inline()
    info = processor()
    config = _grouping(anchor, info, is_rounded=True)
    m = int(anchor.attrs["tile_size"])
    b, co, y, x, ci = s[final].op.axis
    co, co_inner = s[final].split(co, factor=config.channel_blocks)
    y, ty = s[final].split(y, factor=m * config.rows * config.block_rows)
    x, tx = s[final].split(x, factor=m * config.columns * config.block_columns)
    ty, i = s[final].split(ty, factor=m)
    tx, j = s[final].split(tx, factor=m)
    if config.is_split_by_tiles:
        s[final].reorder(b, y, x, co, co_inner, ty, tx, i, j, ci)
        block = fuse_and_parallel(s, final, [b, y, x])
        s[parts.tiles].compute_at(s[final], block)
    else:
        s[final].reorder(co, b, y, x, co_inner, ty, tx, i, j, ci)
        co = fuse_and_parallel(s, final, [co, b, y, x])
    s[final].unroll(j)
    vectorize_block(s, final, ci, info)
    schedule_inverse(s, parts, (final, tx), info)
    schedule_products(s, parts.products, config, info).compute_at(s[final], co)
    schedule_tiles(s, parts, config, info)
    return s


@dataclass(frozen=True, slots=True)
class WinogradParts:
    """The stages, last one first."""

    inverse: te.Tensor
    product_lines: te.Tensor
    products: te.Tensor
    tiles: te.Tensor
    tile_lines: te.Tensor
    source: te.Tensor


def parts_of(anchor: te.tensor.Operation) -> WinogradParts:
    found = [anchor.input_tensors[0]]
    while len(found) < 6:
        found.append(found[-1].op.input_tensors[0])
    return WinogradParts(*found)


def _grouping(anchor: te.tensor.Operation, info: CpuInfo, is_rounded: bool) -> WinogradConfig:
    parts = parts_of(anchor)
    reach, _, batch, ic_chunk, rows, columns, ic_block = dims(parts.tiles.shape)
    batch = batch if isinstance(batch, int) else 1  # where only the run knows it
    oc_chunk, oc_block = dims(parts.products.shape)[3], dims(parts.products.shape)[6]
    shape = WinogradShape(
        reach - WINDOW + 1,
        batch,
        (rows, columns),
        (ic_chunk, oc_chunk),
        (ic_block, oc_block),
        parts.products.dtype,
    )
    kernel = parts.products.op.input_tensors[1]
    group = dims(kernel.shape)[5] // oc_block
    choices = winograd_choices(shape, info, group, is_rounded)
    config = choices.choose(workload_of(anchor))
    if is_rounded:
        note(config, _least_cycles(shape, info) / choices.cost(config))
    return config


def _least_cycles(shape: WinogradShape, info: CpuInfo) -> float:
    """Cycles of the multiply-adds of all products alone."""
    values = int(prod((*shape.grid, *shape.chunks, *shape.blocks))) * shape.batch * shape.points
    return values * as_dtype(shape.dtype).bits / info.vector_bits / info.timing.fmas_per_cycle


def unroll_lines(s: te.Schedule, stage: te.Tensor, info: CpuInfo, chosen: int) -> None:
    """The lines of a tile one after another, all values of a line at once.

    The axis that tells which value of a line it is (`chosen`) is unrolled; the lines are a loop.
    """
    *_, ci = s[stage].op.axis
    axes = s[stage].op.axis[:2]
    s[stage].reorder(axes[1 - chosen], axes[chosen], ci)
    s[stage].unroll(axes[chosen])
    vectorize_block(s, stage, ci, info)


def schedule_inverse(
    s: te.Schedule, parts: WinogradParts, place: tuple[te.Tensor, tir.IterVar], info: CpuInfo
) -> None:
    """The outputs of one tile in registers, at a position."""
    for stage, chosen in ((parts.inverse, 1), (parts.product_lines, 0)):
        s[stage].set_scope("local")
        s[stage].compute_at(s[place[0]], place[1])
        unroll_lines(s, stage, info, chosen)


def schedule_products(
    s: te.Schedule, products: te.Tensor, config: WinogradConfig, info: CpuInfo
) -> te.Stage:
    acc = s.cache_write(products, "local")
    stage = s[products]
    eps, nu, b, co, ty, tx, ci = stage.op.axis
    ty, ty_inner = stage.split(ty, factor=config.rows)
    tx, tx_inner = stage.split(tx, factor=config.columns)
    stage.reorder(eps, nu, b, ty, tx, co, ty_inner, tx_inner, ci)
    s[acc].compute_at(stage, tx)
    for axis in (co, ty_inner, tx_inner):
        stage.unroll(axis)
    vectorize_block(s, products, ci, info)
    part = _partial_sums(s, acc)
    stages = (acc,) if part is acc else (acc, part)
    for sums in stages:
        *_, co, ty, tx, ci = s[sums].op.axis
        s[sums].reorder(*s[sums].op.reduce_axis, ty, tx, co, ci)
        for axis in (ty, tx, co):
            s[sums].unroll(axis)
        vectorize_block(s, sums, ci, info)
    if part is not acc:
        s[part].set_scope("local")
        s[part].compute_at(s[acc], s[acc].op.reduce_axis[0])
    weights = s[part].op.input_tensors[1]
    *_, chunks, block, group = dims(weights.shape)
    panel_bytes = chunks * block * group * as_dtype(weights.dtype).bits // 8
    visits = config.block_rows * config.block_columns
    loops = [axis for sums in stages for axis in s[sums].op.reduce_axis]
    prefetch_panels(s, (products, nu), weights, loops, visits, panel_bytes)
    return stage


def _partial_sums(s: te.Schedule, acc: te.Tensor) -> te.Tensor:
    """The sums over some channels at a time, which `acc` then adds; `acc` where they are few.

    Rounding grows with the length of a chain of additions, and the transform behind magnifies it.
    """
    ico, ici = s[acc].op.reduce_axis
    chunks, block = extents_of((ico, ici))
    if chunks * block <= MOST_ADDED:
        return acc
    if block > MOST_ADDED:
        parts, _ = s[acc].split(ici, factor=largest_divisor(block, MOST_ADDED))
        parts = s[acc].fuse(ico, parts)
    else:
        parts, _ = s[acc].split(ico, factor=largest_divisor(chunks, MOST_ADDED // block))
    partial: te.Tensor = s.rfactor(acc, parts)
    return partial


def schedule_tiles(
    s: te.Schedule, parts: WinogradParts, config: WinogradConfig, info: CpuInfo
) -> None:
    eps, nu, b, c, ty, tx, ci = s[parts.tiles].op.axis
    s[parts.tiles].reorder(b, c, ty, tx, eps, nu, ci)
    if not config.is_split_by_tiles:
        c = fuse_and_parallel(s, parts.tiles, [b, c])
    unroll_lines(s, parts.tiles, info, 1)
    s[parts.tile_lines].set_scope("local")
    s[parts.tile_lines].compute_at(s[parts.tiles], tx)
    unroll_lines(s, parts.tile_lines, info, 0)
    schedule_padding(s, parts.source, (parts.tiles, c))
