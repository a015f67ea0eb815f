"""Winograd's convolution to a height or a width that only the run knows, on processors: the tiles are one axis.

for block in parallel(blocks of tiles):          # as many blocks as L2 asks for
    for ic: V[eps, nu, ic, tiles] = B' d B
    for oc pair:
        M[eps, nu, oc pair, tiles] = products    # of groups of tiles in registers, as for known extents
        for tile: out[...] = epilogue(A' M A)    # of the rows and columns that there are

Where weights are many the threads share the output channels, V one tensor of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from tvm import te, tir
from tvm.target import Target
from tvm.target.cpu import CpuInfo

from ...choice import note
from ...cpu.common import fuse_and_parallel, has_shape_of, processor
from ...generic.schedules import open_schedule
from ...utils import ceil_div, dims, is_dynamic_shape
from . import winograd_cpu
from .compute import block_size
from .cpu import inline_around, vectorize_block
from .pixels_cpu import nominal_extent
from .winograd import WINDOW
from .winograd import conv2d_NCHWc_winograd as compute_winograd
from .winograd_cpu import (
    WinogradConfig,
    WinogradParts,
    WinogradShape,
    parts_of,
    schedule_inverse,
    schedule_products,
    schedule_tiles,
    winograd_choices,
    winograd_cycles,
)


@dataclass(frozen=True, slots=True)
class OpenTiles:
    """How tiles of an open number are grouped."""

    config: WinogradConfig
    most: int  # groups of tiles whose transforms stay in L2
    cores: int

    def blocks(self, count: Any) -> Any:
        """How many blocks of tiles the threads share."""
        groups = ceil_div(count, self.config.columns)
        return self.cores * tir.max(ceil_div(groups, self.cores * self.most), 1)

    def padded(self, count: Any) -> Any:
        """The tiles of all blocks."""
        groups = ceil_div(count, self.config.columns)
        if self.config.is_split_by_tiles:
            blocks = self.blocks(count)
            groups = blocks * ceil_div(groups, blocks)
        return groups * self.config.columns


def conv2d_NCHWc_winograd(
    data: te.Tensor,
    kernel: te.Tensor,
    padding: Any,
    tile_size: int,
    layout: str,
    out_layout: str,
    out_dtype: str | None = None,
) -> te.Tensor:
    """Winograd's convolution, its tiles rounded up to full groups in registers."""
    args = (data, kernel, padding, tile_size, layout, out_layout, out_dtype)
    if not is_dynamic_shape(data.shape[2:4]):
        return winograd_cpu.conv2d_NCHWc_winograd(*args)
    tiles = open_tiles(kernel, block_size(out_layout), out_dtype or data.dtype, processor())
    return compute_winograd(*args, padded_tiles=tiles.padded)


def open_tiles(kernel: te.Tensor, out_block: int, dtype: str, info: CpuInfo) -> OpenTiles:
    """The grouping for a kernel (oc group, m + 2, m + 2, ic chunk, ic block, channels of the group)."""
    groups, reach, _, ic_chunk, ic_block, group = dims(kernel.shape)
    m = reach - WINDOW + 1
    blocks = (ic_block, out_block)
    chunks = (ic_chunk, groups * group // out_block)
    shape = WinogradShape(m, 1, (1, 1), chunks, blocks, dtype)
    config = _grouping(shape, info, group // out_block)
    held = shape.product_bytes(group // out_block) + shape.data_bytes
    most = max(info.l2 // 2 // (held * config.columns), 1)
    return OpenTiles(config, most, info.cores)


def winograd_open_group(
    channels: int, out_channels: int, tile: int, blocks: tuple[int, int], target: Target | None
) -> int:
    """The output channels whose weights lie side by side, for images of open extents."""
    chunks = (channels // blocks[0], out_channels // blocks[1])
    shape = WinogradShape(tile, 1, (1, 1), chunks, blocks)
    return _grouping(shape, processor(target)).channel_blocks * blocks[1]


# sizes of images that a grouping is for: the usual one, its half, its quarter
_SIZES = 3


def _grouping(
    shape: WinogradShape, info: CpuInfo, channel_blocks: int | None = None
) -> WinogradConfig:
    """The grouping that is fast for images of any size, the tiles of small ones padded to it."""
    channels = max([n * block for n, block in zip(shape.chunks, shape.blocks, strict=True)])
    extents = [ceil_div(nominal_extent(channels), 1 << i) for i in range(_SIZES)]
    shapes = [replace(shape, grid=(1, ceil_div(extent, shape.tile) ** 2)) for extent in extents]

    def cycles_of_a_tile(config: WinogradConfig) -> float:
        registers = (config.channel_blocks, config.rows, config.columns)
        by_tiles = config.is_split_by_tiles
        return sum([winograd_cycles(s, registers, by_tiles, info) / s.grid[1] for s in shapes])

    return min(winograd_choices(shapes[0], info, channel_blocks).configs(), key=cycles_of_a_tile)


def schedule_conv2d_NCHWc_winograd(outs: te.Tensor | Sequence[te.Tensor]) -> te.Schedule:
    """Schedule Winograd's convolution, and what is fused behind it."""
    s, final, ops = open_schedule(outs)
    anchor = next(op for op in ops if op.tag == "conv2d_NCHWc_winograd")
    parts = parts_of(anchor)
    if not is_dynamic_shape(parts.tiles.shape[4:6]):
        return winograd_cpu.schedule_conv2d_NCHWc_winograd(outs)
    inline_around(s, [op for op in ops if op is not parts.source.op], anchor, final)
    if not has_shape_of(final, anchor.output(0)):
        return s
    if final.op is not anchor:
        s[anchor].compute_inline()
    _schedule_line(s, final, anchor, parts)
    return s


def _schedule_line(
    s: te.Schedule, final: te.Tensor, anchor: te.tensor.Operation, parts: WinogradParts
) -> None:
    info, m = processor(), int(anchor.attrs["tile_size"])
    kernel = parts.products.op.input_tensors[1]
    _, _, rows, columns, block = dims(anchor.output(0).shape)
    tiles = open_tiles(kernel, block, parts.products.dtype, info)
    config = tiles.config
    note(config, 1.0)
    b, co, y, x, ci = s[final].op.axis
    co, co_inner = s[final].split(co, factor=config.channel_blocks)
    y, i = s[final].split(y, factor=m)
    x, j = s[final].split(x, factor=m)
    s[final].reorder(y, x, i, j)
    tile, group = s[final].split(s[final].fuse(y, x), factor=config.columns)
    if config.is_split_by_tiles:
        blocks = tiles.blocks(ceil_div(rows, m) * ceil_div(columns, m))
        part, tile = s[final].split(tile, nparts=blocks)
        s[final].reorder(b, part, co, co_inner, tile, group, i, j, ci)
        s[parts.tiles].compute_at(s[final], fuse_and_parallel(s, final, [b, part]))
    else:
        s[final].reorder(co, b, co_inner, tile, group, i, j, ci)
        co = fuse_and_parallel(s, final, [co, b])
    for axis in (i, j):
        s[final].unroll(axis)
    vectorize_block(s, final, ci, info)
    schedule_inverse(s, parts, (final, group), info)
    schedule_products(s, parts.products, config, info).compute_at(s[final], co)
    schedule_tiles(s, parts, config, info)
