"""Convolution on processors by tiles of pixels, whatever row they are in.

It serves heights and widths that only the run knows, and known ones that no good tile divides.

for n.part in parallel(...):                     # a run of pixels
    for oco, p in grid(oc / 4, tiles):           # channel blocks, a tile of 6 pixels
        acc[4][6][0:16] = 0
        for ico, ky, kx, ici:
            for j in unrolled(4), x in unrolled(6):
                acc[j][x][0:16] += broadcast(data[pixel p + x]) * weight[j][0:16]
        out[...] = epilogue(acc)                 # of the pixels that there are

Each pixel of a tile has an address of its own, found once a tile. No condition is left in the sums.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import gcd
from typing import Any

from tvm import te, tir
from tvm.support.dtype import dtype as as_dtype
from tvm.target.cpu import CpuInfo

from ...choice import note
from ...configuration import Choices, is_active
from ...cpu.common import fuse_and_parallel, has_shape_of, processor
from ...cpu.prefetch import prefetch_later_channels
from ...generic.schedules import open_schedule
from ...utils import ceil_div, dims, prod
from .compute import padded_columns
from .cpu import (
    Conv2dConfig,
    conv2d_choices,
    inline_around,
    predicted_share,
    schedule_padding,
    schedule_sums,
    vectorize_block,
)
from .cpu import schedule_conv2d_NCHWc as schedule_known_extents
from .pixels import PIXELS_TAG

# more addresses would not stay in registers
MOST_PIXELS = 8
# how much worse tiles of known extents have to be: a pixel's place is found by divisions
_WORTH_PIXELS = 1.15
# images of a network get smaller as its channels get more: as many values of a row as this
_ROW_VALUES = 56 * 64


@dataclass(frozen=True, slots=True)
class PixelTile:
    """Blocks of channels and pixels whose sums stay in registers, and how threads share them."""

    config: Conv2dConfig
    parts: int  # runs of pixels that threads compute at the same time
    by_pixels: bool  # whether a thread computes all channels of a run

    most: int  # tiles of pixels whose data stays in L2

    def runs(self, count: Any) -> Any:
        """The runs of so many pixels."""
        if not self.by_pixels:
            return self.parts
        tiles = ceil_div(count, self.config.columns)
        return self.parts * tir.max(ceil_div(tiles, self.parts * self.most), 1)

    def padded(self, count: Any) -> Any:
        """The pixels of all runs, full tiles of equally many."""
        runs = self.runs(count)
        return self.config.columns * runs * ceil_div(ceil_div(count, self.config.columns), runs)


def pixel_tile(kernel: te.Tensor, groups: int, out_dtype: str) -> PixelTile:
    """The tile of a convolution by a kernel (oc chunk, ic chunk, kh, kw, ic block, oc block).

    In that of a convolution by dot products, the input channels of a word are behind.
    """
    info = processor()
    oc_chunk, ic_chunk, _, _, steps, oc_block, *word = dims(kernel.shape)
    ic_block = steps * prod(word)
    choices, vectors, inner = _pixel_choices(kernel, groups, out_dtype)
    few = _few_pixels(choices)
    config = min(few, key=choices.cost)
    note(config, predicted_share(config, vectors, inner, info))
    channels = max(ic_chunk * ic_block * groups, oc_chunk * oc_block)
    moved = channels * nominal_extent(channels) ** 2
    by_pixels = prod(dims(kernel.shape)) <= 2 * moved
    panels = oc_chunk // config.channel_blocks
    parts = info.cores if by_pixels else info.cores // gcd(info.cores, panels)
    pixel_bytes = ic_chunk * ic_block * groups * as_dtype(kernel.dtype).bits // 8
    most = max(info.l2 // 2 // (pixel_bytes * config.columns), 1)
    return PixelTile(config, parts, by_pixels, most)


def suits_pixels(
    kernel: te.Tensor, groups: int, extents: tuple[int, int], is_padded: bool, out_dtype: str
) -> bool:
    """Whether tiles of pixels are much better than those that divide known rows and columns.

    A prime width leaves these one column. Where records or a tuner decide, tiles are of rows.
    """
    if is_active():
        return False
    rows, given = extents
    columns: int = padded_columns(given, is_padded)
    if columns != given and not is_padded:
        return True  # else all data is copied to give the rows zeros at their ends
    by_pixels, vectors, inner = _pixel_choices(kernel, groups, out_dtype)
    blocks, count = dims(kernel.shape)[0] // groups, rows * given
    known = conv2d_choices(blocks, rows, columns, vectors, inner, processor())
    least = min(known.cost(tile) for tile in known.configs())

    def cost(tile: Conv2dConfig) -> float:
        return by_pixels.cost(tile) * tile.columns * ceil_div(count, tile.columns) / count

    return least > _WORTH_PIXELS * min(cost(tile) for tile in _few_pixels(by_pixels))


def _pixel_choices(
    kernel: te.Tensor, groups: int, out_dtype: str
) -> tuple[Choices[Conv2dConfig], int, int]:
    """The tiles of any number of pixels, the vectors of a block of channels, and the terms of a sum."""
    info = processor()
    oc_chunk, ic_chunk, high, wide, steps, oc_block, *_ = dims(kernel.shape)
    vectors = max(oc_block * as_dtype(out_dtype).bits // info.vector_bits, 1)
    inner = ic_chunk * high * wide * steps
    # any number of pixels fits an axis that is rounded up to it
    counts = prod(range(1, MOST_PIXELS + 1))
    return conv2d_choices(oc_chunk // groups, 1, counts, vectors, inner, info), vectors, inner


def _few_pixels(choices: Choices[Conv2dConfig]) -> list[Conv2dConfig]:
    return [tile for tile in choices.configs() if tile.columns <= MOST_PIXELS]


def nominal_extent(channels: int) -> int:
    """The usual height and width of images of so many channels."""
    return max(_ROW_VALUES // channels, 7)


def schedule_conv2d_NCHWc(
    outs: te.Tensor | Sequence[te.Tensor], config: Conv2dConfig | None = None
) -> te.Schedule:
    """Schedule a convolution with channels in blocks, and what is fused behind it."""
    s, output, ops = open_schedule(outs)
    anchor = next((op for op in ops if op.tag == PIXELS_TAG), None)
    if anchor is None:
        return schedule_known_extents(outs, config)
    return schedule_pixels(s, ops, anchor, output, _schedule_vectors)


def schedule_pixels(
    s: te.Schedule,
    ops: Sequence[te.tensor.Operation],
    anchor: te.tensor.Operation,
    output: te.Tensor,
    schedule_blocks: Callable[[te.Schedule, te.Tensor, te.Tensor, CpuInfo], None],
) -> te.Schedule:
    """Schedule a convolution to open extents.

    `schedule_blocks` lays the channels of the output and of the sums of a tile into vectors.
    """
    sums, info = anchor.output(0), processor()
    inline_around(s, ops, anchor, output)
    whole = next(op for op in ops if anchor in [t.op for t in op.input_tensors]).output(0)
    schedule_padding(s, anchor.input_tensors[0], None)
    if not has_shape_of(output, whole):
        return s
    weights = anchor.input_tensors[1]
    _, _, rows, columns, _ = dims(whole.shape)
    tile = pixel_tile(weights, int(anchor.attrs["groups"]), sums.dtype)
    s[sums].set_scope("local")
    batch, co, y, x, ci = s[output].op.axis
    co, co_inner = s[output].split(co, factor=tile.config.channel_blocks)
    pixel, inner = s[output].split(s[output].fuse(y, x), factor=tile.config.columns)
    part, pixel = s[output].split(pixel, nparts=tile.runs(rows * columns))
    order = (part, co) if tile.by_pixels else (co, part)
    s[output].reorder(batch, *order, pixel, co_inner, inner, ci)
    # the loop over tiles stays by itself: the full ones are partitioned from the last one
    fuse_and_parallel(s, output, [batch, part] if tile.by_pixels else [batch, co, part])
    s[sums].compute_at(s[output], pixel)
    for axis in (co_inner, inner):
        s[output].unroll(axis)
    schedule_blocks(s, output, sums, info)
    return s


def _schedule_vectors(s: te.Schedule, output: te.Tensor, sums: te.Tensor, info: CpuInfo) -> None:
    vectorize_block(s, output, s[output].op.axis[-1], info)
    reduced = schedule_sums(s, sums, info)
    prefetch_later_channels(s, sums, sums.op.input_tensors[1], reduced[-1])
