"""Convolution on processors: accumulators of one tile of the output stay in registers.

for n.oco.y in parallel(...):                    # a pair of channel blocks, one output row
    for xo in range(ow / 14):
        acc[2][14][0:16] = 0
        for ico, ky, kx, ici:                    # one input channel, one position of the window
            for j in unrolled(2), x in unrolled(14):
                acc[j][x][0:16] += broadcast(data[x * s + kx]) * weight[j][0:16]
        out[...] = epilogue(acc)                 # bias, activation, residual
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tvm import te, tir
from tvm.support.dtype import dtype as as_dtype
from tvm.target import Target
from tvm.target.cpu import CpuInfo

from ...choice import note
from ...configuration import Choices, workload_of
from ...cpu.common import fuse_and_parallel, is_static, lanes_of, processor, vector_lanes
from ...cpu.fitted import CONV2D, CONV2D_STREAMED_VECTOR, CONV2D_UNUSUAL_HEIGHT, UNUSUAL
from ...cpu.prefetch import prefetch_later_channels, prefetch_panels
from ...cpu.tile_cost import TileStep, relative_cycles
from ...generic.schedules import open_schedule
from ...tag import is_injective
from ...utils import (
    ceil_div,
    dims,
    divisors,
    extents_of,
    largest_divisor,
    operations_above,
    prod,
)
from ..dense.cpu import is_full_output
from .rows_cpu import is_by_channel, schedule_channel_rows

# sums beside one another in a plain layout
PLAIN_POSITIONS = 8
PLAIN_KNOBS = {
    "tile_y": "positions",
    "tile_x": "vectors",
    "tile_oh": "rows",
    "unroll_kw": "is_window_unrolled",
}
MAX_UNROLLED_WINDOW = 8
TILE_KNOBS = {"channel_blocks": "channel_blocks", "tile_oh": "rows", "tile_ow": "columns"}


@dataclass(frozen=True, slots=True)
class Conv2dConfig:
    """The tile of the output held in registers."""

    channel_blocks: int  # blocks of output channels
    columns: int  # positions along the row
    rows: int = 1


def channel_blocks(
    channels: int, out_channels: int, dtype: str, target: Target | None = None
) -> tuple[int, int]:
    """Block sizes of input and output channels; a function of each count alone, so that the
    layouts of neighbouring convolutions agree."""
    full = full_block(dtype, target)
    return channel_block(channels, full), channel_block(out_channels, full)


def full_block(dtype: str, target: Target | None = None) -> int:
    """The block of channels that fills vectors."""
    return max(lanes_of(dtype, processor(target)), 8)


def channel_block(channels: int, lanes: int) -> int:
    """Whole vectors if possible, a half or a quarter of one else, any divisor at last."""
    for size in (lanes, lanes // 2, lanes // 4):
        if size > 1 and channels % size == 0:
            return size
    return largest_divisor(channels, lanes)


def groups_together(groups: int, channels: int, dtype: str, target: Target | None = None) -> int:
    """How many groups of that many channels fill one vector; 1 if they do not."""
    full = full_block(dtype, target)
    return max([n for n in divisors(groups) if n * channels <= full]) if channels <= full else 1


def choose_conv2d(
    oc_chunk: int, rows: int, columns: int, vectors: int, inner: int, info: CpuInfo
) -> Conv2dConfig:
    """The tile that keeps the multipliers busiest.

    A tile of b blocks and x positions needs b * x * vectors accumulators and, for each of `inner`
    input channels and window positions, b * vectors weights and x broadcasts.
    """
    return conv2d_choices(oc_chunk, rows, columns, vectors, inner, info).best()


def conv2d_choices(
    oc_chunk: int, rows: int, columns: int, vectors: int, inner: int, info: CpuInfo
) -> Choices[Conv2dConfig]:
    """The tiles that fit the registers, and their cost."""
    room = info.vector_registers - 2

    def tiles() -> list[Conv2dConfig]:
        fitting = [
            Conv2dConfig(blocks, positions, height)
            for blocks in divisors(oc_chunk)
            if blocks * vectors <= 4
            for positions in reversed(divisors(columns))
            if blocks * vectors * (positions + 1) <= room
            for height in divisors(rows)
            if blocks * vectors * (positions * height + 1) <= room
        ]
        return fitting or [Conv2dConfig(1, 1)]

    def cost(tile: Conv2dConfig) -> float:
        weights = tile.channel_blocks * vectors
        is_streamed = _panel_bytes(tile, vectors, inner, info) > info.l1d // 2
        found = _fma_cycles(weights, tile.columns * tile.rows, is_streamed, info)
        usual = _height(weights, tile.columns, rows, room)
        return found if tile.rows == usual else found + CONV2D_UNUSUAL_HEIGHT

    return Choices(TILE_KNOBS, tiles, cost)


def predicted_share(tile: Conv2dConfig, vectors: int, inner: int, info: CpuInfo) -> float:
    """The share of the multipliers' peak."""
    is_streamed = _panel_bytes(tile, vectors, inner, info) > info.l1d // 2
    weights = tile.channel_blocks * vectors
    cycles = _fma_cycles(weights, tile.columns * tile.rows, is_streamed, info)
    return 1 / info.timing.fmas_per_cycle / cycles


def _panel_bytes(tile: Conv2dConfig, vectors: int, inner: int, info: CpuInfo) -> int:
    return inner * tile.channel_blocks * vectors * info.vector_bits // 8


def _height(weights: int, positions: int, rows: int, room: int) -> int:
    """Where rows are short, several of them."""
    if weights * positions >= 12:
        return 1
    return largest_divisor(rows, max(room // weights - 1, positions) // positions)


def _fma_cycles(weights: int, pixels: int, is_streamed: bool, info: CpuInfo) -> float:
    """Cycles for each multiply-add of vectors."""
    l2_bytes = weights * info.vector_bits / 8 if is_streamed else 0.0
    step = TileStep(weights * pixels, weights + pixels, l2_bytes)
    cycles = relative_cycles(step, CONV2D, info.timing) / info.timing.fmas_per_cycle
    # fewer streamed weights at a time come faster
    return cycles + CONV2D_STREAMED_VECTOR * weights if is_streamed else cycles


def schedule_conv2d_NCHWc(
    outs: te.Tensor | Sequence[te.Tensor], config: Conv2dConfig | None = None
) -> te.Schedule:
    """Schedule a convolution with channels in blocks, and what is fused behind it."""
    s, output, ops = open_schedule(outs)
    anchor = next(op for op in ops if op.tag == "conv2d_NCHWc")
    conv = anchor.output(0)
    info = processor()
    inline_around(s, ops, anchor, output)
    batch_size, oc_chunk, rows, columns, _ = dims(conv.shape)
    if not is_full_output(output, conv):
        return s
    best, vectors, inner = _tile_of(anchor, info)
    tile = config or best
    note(tile, predicted_share(tile, vectors, inner, info))
    parts = row_parts(anchor, rows // tile.rows, info)
    bands = column_bands(anchor, columns // tile.columns, info) if rows == tile.rows else 0
    schedule_padding(s, anchor.input_tensors[0], None, parts > 0)
    acc = s.cache_write(conv, "local") if output.op is anchor else conv
    s[acc].set_scope("local")
    final = s.outputs[0].output(0) if output.op is anchor else output
    loops = tile_output(s, final, tile, parts, bands)
    s[acc].compute_at(s[final], loops.place)
    # full panels to each thread, if all threads get as many
    in_parts = parts > 0 or bands > 0
    panels = oc_chunk // tile.channel_blocks
    by_panels = isinstance(batch_size, int) and batch_size * panels % info.cores == 0
    outer = loops.shared[:2] if in_parts or by_panels else loops.shared
    threads = fuse_and_parallel(s, final, outer)
    panel_loop = loops.panel if in_parts else threads if by_panels else None
    weights = s[acc].op.input_tensors[1]
    for axis in loops.tile:
        s[final].unroll(axis)
    vectorize_block(s, final, loops.block, info)
    reduced = schedule_sums(s, acc, info)
    if panel_loop is None:
        prefetch_later_channels(s, acc, weights, reduced[-1])
    else:
        visits = rows // tile.rows * (columns // tile.columns) // max(parts, bands, 1)
        panel_bytes = _panel_bytes(tile, vectors, inner, info)
        prefetch_panels(s, (final, panel_loop), weights, reduced, visits, panel_bytes)
    return s


@dataclass(frozen=True, slots=True)
class OutputLoops:
    """The loops of an output in tiles."""

    shared: tuple[tir.IterVar, ...]  # outermost, for threads to share
    panel: tir.IterVar  # over the channels of tiles
    place: tir.IterVar  # inside of it a tile is summed
    tile: tuple[tir.IterVar, ...]  # rows, channel blocks and columns of a tile
    block: tir.IterVar  # the channels of a block


def tile_output(
    s: te.Schedule, final: te.Tensor, tile: Conv2dConfig, parts: int, bands: int = 0
) -> OutputLoops:
    """Tile the output; all channels of one part of its rows, or of one band of its columns, together."""
    batch, co, y, x, ci = s[final].op.axis
    co_outer, co_inner = s[final].split(co, factor=tile.channel_blocks)
    x_outer, x_inner = s[final].split(x, factor=tile.columns)
    y_outer, y_inner = s[final].split(y, factor=tile.rows)
    shared: tuple[tir.IterVar, ...] = (batch, co_outer, y_outer)
    if parts:
        part, y_outer = s[final].split(y_outer, nparts=parts)
        shared = (batch, part, co_outer, y_outer)
    elif bands:
        part, x_outer = s[final].split(x_outer, nparts=bands)
        shared = (batch, part, co_outer, y_outer)
    s[final].reorder(*shared, x_outer, y_inner, co_inner, x_inner, ci)
    return OutputLoops(shared, co_outer, x_outer, (y_inner, co_inner, x_inner), ci)


def schedule_sums(s: te.Schedule, acc: te.Tensor, info: CpuInfo) -> tuple[tir.IterVar, ...]:
    """The sums of a tile in registers; returns the loops over what is summed."""
    _, co, *positions, ci = s[acc].op.axis
    reduced = tuple(s[acc].op.reduce_axis)
    # channels inside, so that a value of the data is used up before the next one is loaded
    s[acc].reorder(*reduced, *positions, co, ci)
    for axis in (*positions, co):
        s[acc].unroll(axis)
    vectorize_block(s, acc, ci, info)
    return reduced


def _tile_of(anchor: te.tensor.Operation, info: CpuInfo) -> tuple[Conv2dConfig, int, int]:
    """The tile of a convolution, the vectors of a block of channels, and the terms of a sum."""
    conv = anchor.output(0)
    _, oc_chunk, rows, columns, block = dims(conv.shape)
    vectors = max(block * as_dtype(conv.dtype).bits // info.vector_bits, 1)
    inner = prod(extents_of(anchor.reduce_axis))
    blocks = oc_chunk // int(anchor.attrs["groups"])
    choices = conv2d_choices(blocks, rows, columns, vectors, inner, info)
    return choices.choose(workload_of(anchor)), vectors, inner


def should_skip_border_rows(output: te.Tensor, above: int) -> bool:
    """Whether much of a convolution multiplies zeros above or below its data.

    `above` rows of zeros are on top. A tile of one row need not multiply them, but the test costs
    about as much as a tenth of the products.
    """
    anchor = next(op for op in operations_above(output.op) if op.tag == "conv2d_NCHWc")
    data, weights = anchor.input_tensors
    if data.op.name != "data_pad" or not is_static(anchor.output(0)):
        return False
    height = dims(data.op.input_tensors[0].shape)[2]
    rows, window = dims(anchor.output(0).shape)[2], dims(weights.shape)[2]
    (stride, _), (dilation, _) = anchor.attrs["stride"], anchor.attrs["dilation"]
    seen = [
        0 <= int(stride) * row + int(dilation) * position - above < height
        for row in range(rows)
        for position in range(window)
    ]
    is_worth_it = seen.count(False) > 0.15 * len(seen)
    return is_worth_it and _tile_of(anchor, processor())[0].rows == 1


def row_parts(anchor: te.tensor.Operation, rows: int, info: CpuInfo, is_reread: bool = True) -> int:
    """Into how many bands of rows the threads share the output; 0 if they share the channels.

    What one core wrote is slow to read for another. Bands keep the data of a network on its
    core, at the price that every core reads all weights. A band whose data each block of weights
    reads again stays in L2; others are as high as they can be, since neighbours share their borders.
    """
    data, weights = anchor.input_tensors
    out = anchor.output(0)
    batch = dims(out.shape)[0]
    if not is_static(out):
        return 0  # left to the run, the batch may be large
    moved = max(prod(dims(data.shape)), prod(dims(out.shape)))
    if batch % info.cores == 0 or prod(dims(weights.shape)) > 2 * moved:
        return 0
    size = as_dtype(data.dtype).bits // 8
    wanted = max(prod(dims(data.shape)) * size // (info.l2 // 2), 1) if is_reread else 1
    parts = [d for d in divisors(rows) if d % info.cores == 0]
    return next((d for d in parts if d >= wanted), parts[-1]) if parts else 0


def column_bands(anchor: te.tensor.Operation, tiles: int, info: CpuInfo) -> int:
    """Into how many bands of columns the threads share a single row; 0 if they share the channels.

    A row too long for L2 would come anew for each panel of weights.
    """
    data, weights = anchor.input_tensors
    batch = dims(data.shape)[0]
    if not isinstance(batch, int) or batch % info.cores == 0:
        return 0
    size = prod(dims(data.shape)[1:]) * as_dtype(data.dtype).bits // 8
    if size <= info.l2 or prod(dims(weights.shape)) > prod(dims(data.shape)):
        return 0
    rounds = ceil_div(size, info.cores * info.l2 // 2)
    return rounds * info.cores if tiles >= 4 * rounds * info.cores else 0


def inline_around(
    s: te.Schedule,
    ops: Sequence[te.tensor.Operation],
    anchor: te.tensor.Operation,
    output: te.Tensor,
) -> None:
    """Inline element-wise operators, borders of the anchor's data excepted."""
    for op in ops:
        if op is anchor or op is output.op or not is_injective(op.tag):
            continue
        if op.name == "data_pad" and op in [t.op for t in anchor.input_tensors]:
            continue
        s[op].compute_inline()


def schedule_padding(
    s: te.Schedule,
    data: te.Tensor,
    place: tuple[te.Tensor, tir.IterVar] | None,
    by_rows: bool = False,
) -> None:
    """Copy the data with its border, at a position or in loops of its own."""
    if data.op.name != "data_pad":
        return
    info = processor()
    lanes = vector_lanes(dims(data.shape)[-1], data.dtype, info)
    *outer, inner = s[data].op.axis
    if place is None and by_rows:
        batch, channels, y, x = outer
        s[data].reorder(batch, y, channels, x)
        fuse_and_parallel(s, data, [batch, y])
    elif place is None:
        fuse_and_parallel(s, data, outer[:3])
    else:
        s[data].compute_at(s[place[0]], place[1])
    if lanes > 1:
        _, inner = s[data].split(inner, factor=lanes)
        s[data].vectorize(inner)


def vectorize_block(s: te.Schedule, stage: te.Tensor, axis: tir.IterVar, info: CpuInfo) -> None:
    """A block of channels as vectors after one another."""
    block = dims(stage.shape)[-1]
    lanes = lanes_of(stage.dtype, info)
    if block > lanes and block % lanes == 0:
        outer, axis = s[stage].split(axis, factor=lanes)
        s[stage].unroll(outer)
    if block > 1:
        s[stage].vectorize(axis)


def schedule_conv2d(outs: te.Tensor | Sequence[te.Tensor]) -> te.Schedule:
    """Schedule a sum of products in a plain layout, such as a convolution.

    The last axis lies in vectors, a few positions of another beside it: channels where these are
    outer ones, else neighbours along the row.
    """
    s, output, ops = open_schedule(outs)
    anchor = next(op for op in ops if op.reduce_axis)
    inline_around(s, ops, anchor, output)
    if is_by_channel(anchor, output):
        return schedule_channel_rows(s, anchor, output)
    schedule_padding(s, anchor.input_tensors[0], None)
    axes = list(s[output].op.axis)
    if not axes:
        return s
    conv = anchor.output(0)
    lanes = vector_lanes(dims(output.shape)[-1], output.dtype, processor())
    if dims(output.shape) != dims(conv.shape) or len(axes) < 2 or lanes == 1:
        fused = fuse_and_parallel(s, output, axes[:-1] or axes)
        if output.op is not anchor and len(axes) > 1:
            s[conv].compute_at(s[output], fused)
        return s
    acc = s.cache_write(conv, "local") if output.op is anchor else conv
    s[acc].set_scope("local")
    final = s.outputs[0].output(0) if output.op is anchor else output
    channels_last = anchor.tag.endswith("c")
    across = -2 if channels_last or len(axes) < 3 else 1
    above = _axis_above(len(axes), across)
    extents = (
        dims(conv.shape)[across],
        dims(conv.shape)[-1] // lanes,
        1 if above is None else dims(conv.shape)[above],
        extents_of(anchor.reduce_axis)[-1],
    )
    tile = plain_choices(*extents, processor()).choose(workload_of(anchor))
    _schedule_plain_tile(s, final, acc, (across, above), lanes, tile)
    return s


def _axis_above(rank: int, across: int) -> int | None:
    """The last axis between the batch and the vectors besides that of positions."""
    found = [axis for axis in range(1, rank - 1) if axis != across % rank]
    return found[-1] if found else None


@dataclass(frozen=True, slots=True)
class PlainConfig:
    """The tile of the output held in registers, in a plain layout."""

    positions: int  # of the axis beside the last one
    vectors: int  # of the last axis
    rows: int = 1  # of a third axis
    is_window_unrolled: bool = False  # the innermost loop of a sum


def plain_choices(
    extent: object, vectors: int, rows: object, window: object, info: CpuInfo
) -> Choices[PlainConfig]:
    """The tiles that fit the registers.

    The model takes up to eight positions, and more vectors where these alone would wait for their sums.
    """
    room = info.vector_registers * 3 // 4
    heights, above = [divisors(n) if isinstance(n, int) else [1] for n in (extent, rows)]
    positions = max([d for d in heights if d <= PLAIN_POSITIONS])
    together = largest_divisor(vectors, max(room // positions, 1)) if 2 * positions < room else 1
    usual = PlainConfig(positions, together)
    is_short = isinstance(window, int) and 1 < window <= MAX_UNROLLED_WINDOW

    def tiles() -> list[PlainConfig]:
        most = info.vector_registers - 2
        found = [
            PlainConfig(a, b, c, is_unrolled)
            for a in heights
            for b in divisors(vectors)
            for c in above
            if a * b * c <= most
            for is_unrolled in ((False, True) if is_short else (False,))
        ]
        return [usual, *[tile for tile in found if tile != usual]]

    return Choices(
        PLAIN_KNOBS,
        tiles,
        lambda tile: 1.0 if tile == usual else UNUSUAL,
        lambda: [usual],
        absent={"tile_oh": 1, "unroll_kw": False},
    )


def _schedule_plain_tile(
    s: te.Schedule,
    final: te.Tensor,
    acc: te.Tensor,
    tiled: tuple[int, int | None],
    lanes: int,
    tile: PlainConfig,
) -> None:
    """Some positions of one or two axes by vectors of the last, whose sums stay in registers."""
    across, above = tiled if tile.rows > 1 else (tiled[0], None)
    axes = list(s[final].op.axis)
    outer, inner = s[final].split(axes[across], factor=tile.positions)
    vectors, lane = s[final].split(axes[-1], factor=lanes)
    vectors, beside = s[final].split(vectors, factor=tile.vectors)
    others = [axis for axis in axes[:-1] if axis is not axes[across]]
    unrolled = [inner, beside]
    if above is not None:
        row, inner_row = s[final].split(axes[above], factor=tile.rows)
        others = [row if axis is axes[above] else axis for axis in others]
        unrolled.insert(0, inner_row)
    s[final].reorder(*others, outer, vectors, *unrolled, lane)
    fuse_and_parallel(s, final, [*others, outer])
    for axis in unrolled:
        s[final].unroll(axis)
    s[final].vectorize(lane)
    s[acc].compute_at(s[final], vectors)
    _schedule_plain_sums(s, acc, (across, above), lanes, tile)


def _schedule_plain_sums(
    s: te.Schedule,
    acc: te.Tensor,
    tiled: tuple[int, int | None],
    lanes: int,
    tile: PlainConfig,
) -> None:
    """The sums of one tile, inside of the loops over what is summed."""
    axes, reduced = list(s[acc].op.axis), list(s[acc].op.reduce_axis)
    across, above = tiled
    together = [axes[above]] if above is not None else []
    together.append(axes[across])
    rest = [axis for axis in axes[:-1] if not any([axis is other for other in together])]
    beside, lane = s[acc].split(axes[-1], factor=lanes)
    s[acc].reorder(*rest, *reduced, *together, beside, lane)
    if tile.is_window_unrolled:
        s[acc].unroll(reduced[-1])
    for axis in (*together, beside):
        s[acc].unroll(axis)
    s[acc].vectorize(lane)
