"""Winograd's convolution on x86: blocks of tiles whose transforms stay in the second cache.

for block in parallel(blocks of tiles):
    for ic: V[eps, nu, ic, tiles] = B' d B
    for oc pair:
        for eps, nu:
            for 14 tiles:
                acc[2][14][0:16] = 0
                for ic: acc[j][t] += broadcast(V[eps, nu, ic, t]) * weight[eps, nu, j, ic]
                M[eps, nu, j, t] = acc
        for tile: out[...] = epilogue(A' M A)

Where tiles are few the blocks are of output channels instead, V one tensor of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tvm import te
from tvm.support.dtype import dtype as as_dtype
from tvm.target import Target
from tvm.target.cpu import CpuInfo

from ...generic.schedules import as_outputs
from ...utils import dims, divisors, operations_above
from ...x86.common import fuse_and_parallel, processor
from .winograd import KERNEL_MATRICES
from .winograd import conv2d_NCHWc_winograd as compute_winograd
from .x86 import inline_around, schedule_padding, vectorize_block

# fewer channels than these do not pay for the transforms
MIN_CHANNELS = 16
# of a plain convolution, for each multiplication of vectors
PLAIN_CYCLES = 0.52
# of the transforms of a tile, for each vector of input or output channels
LINE_CYCLES = {2: 40, 4: 110}
# that come from memory in one cycle
MEMORY_BYTES = 8


@dataclass(frozen=True, slots=True)
class WinogradConfig:
    """How the tiles of the output are grouped."""

    channel_blocks: int  # blocks of output channels held in registers
    rows: int  # tiles held in registers
    columns: int
    block_rows: int  # those groups of tiles whose transforms stay in the second cache
    block_columns: int
    is_split_by_tiles: bool  # threads take blocks of tiles, else blocks of output channels


def choose_winograd(
    grid: tuple[int, int],
    batch: int,
    chunks: tuple[int, int],
    blocks: tuple[int, int],
    reach: int,
    dtype: str,
    info: CpuInfo,
) -> tuple[WinogradConfig, float]:
    """The grouping that takes the fewest cycles for the products, and those cycles.

    Parameters
    ----------
    grid : tuple of int
        Rows and columns of tiles.
    chunks, blocks : tuple of int
        The number and size of the blocks of input and of output channels.
    reach : int
        The extent of a tile's data.
    """
    vectors = max(blocks[1] * as_dtype(dtype).bits // info.vector_bits, 1)
    best: tuple[float, int, int, int] | None = None
    for group in [g for g in divisors(chunks[1]) if g * vectors <= 4]:
        weights = group * vectors
        most = (info.vector_registers - 1 - weights) // weights
        for columns in range(1, min(grid[1], most) + 1):
            for rows in range(1, min(grid[0], most // columns) + 1):
                area = _rounded(grid[0], rows) * _rounded(grid[1], columns)
                held = rows * columns
                # two multiplications a cycle; chains of four cycles; two loads a cycle
                loads = (weights + held) / 2
                cycles = max(weights * held / 2, 4.0, loads) / held * area * chunks[1] / group
                cycles *= 1 + 0.1 * (1 / held + 1 / weights)
                if best is None or cycles < best[0]:
                    best = cycles, group, rows, columns
    assert best is not None
    cycles, group, rows, columns = best
    size = as_dtype(dtype).bits // 8
    for_tile = reach * reach * size * chunks[0] * blocks[0]
    room = max(info.l2 // 2 // (for_tile * rows * columns), 1)
    across, down = -(-grid[1] // columns), -(-grid[0] // rows)
    block_columns = max([d for d in divisors(across) if d <= room])
    down_room = room // block_columns if block_columns == across else 1
    block_rows = max([d for d in divisors(down) if d <= max(down_room, 1)])
    places = batch * (across // block_columns) * (down // block_rows)
    while places % info.cores and places < 4 * info.cores and block_rows > 1:
        block_rows = max([d for d in divisors(block_rows) if d < block_rows])
        places = batch * (across // block_columns) * (down // block_rows)
    by_tiles = places % info.cores == 0 or places >= 4 * info.cores
    config = WinogradConfig(group, rows, columns, block_rows, block_columns, by_tiles)
    return config, cycles * batch * reach * reach * chunks[0] * blocks[0]


def winograd_tile(
    data_shape: Sequence[int],
    out_channels: int,
    padding: Sequence[int],
    blocks: tuple[int, int],
    dtype: str,
    target: Target | None = None,
) -> int:
    """The tile of the fastest Winograd convolution of 3x3 windows; 0 if the plain one is faster.

    Parameters
    ----------
    data_shape : sequence of int
        (n, c, h, w).
    padding : sequence of int
        Top, left, bottom, right.
    blocks : tuple of int
        Blocks of input and of output channels.
    """
    info = processor(target)
    batch, channels, height, width = data_shape
    out = (height + padding[0] + padding[2] - 2, width + padding[1] + padding[3] - 2)
    if as_dtype(dtype) != "float32" or min(out) < 2 or min(channels, out_channels) < MIN_CHANNELS:
        return 0
    size, lanes = as_dtype(dtype).bits // 8, info.fp32_lanes
    chunks = (channels // blocks[0], out_channels // blocks[1])
    places = batch * out[0] * out[1] * channels * 9 * out_channels
    weights = channels * out_channels * size
    best, best_cycles = 0, _total(places / lanes * PLAIN_CYCLES, weights * 9, info)
    for m in KERNEL_MATRICES:
        grid = (-(-out[0] // m), -(-out[1] // m))
        _, cycles = choose_winograd(grid, batch, chunks, blocks, m + 2, dtype, info)
        tiles = batch * grid[0] * grid[1]
        vectors = channels / min(blocks[0], lanes) + out_channels / min(blocks[1], lanes)
        cycles += tiles * vectors * LINE_CYCLES[m]
        total = _total(cycles, weights * (m + 2) ** 2, info)
        if total < best_cycles:
            best, best_cycles = m, total
    return best


def _total(cycles: float, weight_bytes: int, info: CpuInfo) -> float:
    """Cycles on all cores; half the time that weights take from memory is hidden."""
    streamed = weight_bytes / (MEMORY_BYTES if weight_bytes > info.l2 else 4 * MEMORY_BYTES)
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
    """Winograd's convolution, its grid of tiles rounded up to whole groups in registers."""
    args = (data, kernel, padding, tile_size, layout, out_layout, out_dtype)
    config = _grouping(_parts(compute_winograd(*args).op), processor())
    return compute_winograd(*args, grid_step=(config.rows, config.columns))


def _rounded(extent: int, step: int) -> int:
    return -(-extent // step) * step


def schedule_conv2d_NCHWc_winograd(outs: te.Tensor | Sequence[te.Tensor]) -> te.Schedule:
    """Schedule Winograd's convolution, and what is fused behind it."""
    final = as_outputs(outs)[0]
    s = te.create_schedule([x.op for x in as_outputs(outs)])
    ops = operations_above(final.op)
    anchor = next(op for op in ops if op.tag == "conv2d_NCHWc_winograd")
    parts = _parts(anchor)
    inline_around(s, [op for op in ops if op is not parts.source.op], anchor, final)
    if dims(final.shape) != dims(anchor.output(0).shape):
        return s
    if final.op is not anchor:
        s[anchor].compute_inline()
    info = processor()
    config = _grouping(parts, info)
    m = int(anchor.attrs["tile_size"])
    b, co, y, x, ci = s[final].op.axis
    co, co_inner = s[final].split(co, factor=config.channel_blocks)
    y, ty = s[final].split(y, factor=m * config.rows * config.block_rows)
    x, tx = s[final].split(x, factor=m * config.columns * config.block_columns)
    ty, i = s[final].split(ty, factor=m)
    tx, j = s[final].split(tx, factor=m)
    if config.is_split_by_tiles:
        s[final].reorder(b, y, x, co, co_inner, ty, tx, i, j, ci)
        block = fuse_and_parallel(s, final, [b, y, x], 1 << 30)
        s[parts.tiles].compute_at(s[final], block)
    else:
        s[final].reorder(co, b, y, x, co_inner, ty, tx, i, j, ci)
        co = fuse_and_parallel(s, final, [co, b, y, x], 1 << 30)
    for axis in (i, j):
        s[final].unroll(axis)
    vectorize_block(s, final, ci, info)
    for stage in (parts.inverse, parts.product_lines):
        s[stage].compute_at(s[final], tx)
        _unroll_lines(s, stage, info)
    _schedule_products(s, parts.products, config, info).compute_at(s[final], co)
    _schedule_tiles(s, parts, config, info)
    return s


@dataclass(frozen=True, slots=True)
class _Parts:
    """The stages, last one first."""

    inverse: te.Tensor
    product_lines: te.Tensor
    products: te.Tensor
    tiles: te.Tensor
    tile_lines: te.Tensor
    source: te.Tensor


def _parts(anchor: te.tensor.Operation) -> _Parts:
    found = [anchor.input_tensors[0]]
    while len(found) < 6:
        found.append(found[-1].op.input_tensors[0])
    return _Parts(*found)


def _grouping(parts: _Parts, info: CpuInfo) -> WinogradConfig:
    reach, _, batch, ic_chunk, rows, columns, ic_block = dims(parts.tiles.shape)
    oc_chunk, oc_block = dims(parts.products.shape)[3], dims(parts.products.shape)[6]
    chunks, blocks = (ic_chunk, oc_chunk), (ic_block, oc_block)
    dtype = parts.products.dtype
    return choose_winograd((rows, columns), batch, chunks, blocks, reach, dtype, info)[0]


def _unroll_lines(s: te.Schedule, stage: te.Tensor, info: CpuInfo) -> None:
    """All places of a tile after one another."""
    first, second, *_, ci = s[stage].op.axis
    s[stage].unroll(first)
    s[stage].unroll(second)
    vectorize_block(s, stage, ci, info)


def _schedule_products(
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
    *_, co, ty, tx, ci = s[acc].op.axis
    ico, ici = s[acc].op.reduce_axis
    s[acc].reorder(ico, ici, co, ty, tx, ci)
    for axis in (co, ty, tx):
        s[acc].unroll(axis)
    vectorize_block(s, acc, ci, info)
    return stage


def _schedule_tiles(s: te.Schedule, parts: _Parts, config: WinogradConfig, info: CpuInfo) -> None:
    eps, nu, b, c, ty, tx, ci = s[parts.tiles].op.axis
    s[parts.tiles].reorder(b, c, ty, tx, eps, nu, ci)
    if not config.is_split_by_tiles:
        c = fuse_and_parallel(s, parts.tiles, [b, c], 1 << 30)
    _unroll_lines(s, parts.tiles, info)
    s[parts.tile_lines].compute_at(s[parts.tiles], tx)
    _unroll_lines(s, parts.tile_lines, info)
    schedule_padding(s, parts.source, (parts.tiles, c))
