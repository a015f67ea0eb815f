"""Large matrix products on processors whose operands are packed while the program runs.

for block in parallel(...):                      # rows of A that stay in L2
    for depth in ...:                            # a stretch of k
        A' = the block, a tile's rows together
        for panel of B':                         # columns of B that stay near
            for tile in block:
                acc[6][4][0:16] = 0
                for k: acc[y][v] += broadcast(A'[tile, k, y]) * B'[panel, k, v * 16 : v * 16 + 16]
                C[tile, panel] += acc            # tiles that reach beyond C are masked here

Rows and columns that fill the last tiles are zeros of A' and B', so that every tile is a full one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from tvm import te, tir
from tvm.support.docstrings import described_by
from tvm.support.dtype import dtype as as_dtype
from tvm.target.cpu import CpuInfo

from ...choice import note, origin_of, tell_origin
from ...configuration import Choices
from ...cpu.common import fuse_and_parallel, lanes_of, processor
from ...cpu.fitted import (
    MATMUL,
    MATMUL_BLOCK_START,
    MATMUL_CONFLICTS,
    MATMUL_FAR_PRODUCT,
    MATMUL_FAR_ROWS,
    MATMUL_PACKING,
)
from ...cpu.tile_cost import TileStep, relative_cycles
from ...generic.schedules import open_schedule
from ...utils import ceil_div, dims
from .compute import matmul, product_task
from .cpu import (
    FEW_ROWS,
    TILE_KNOBS,
    VECTOR_BYTES,
    MatmulConfig,
    inline_injective_but,
    masked_matmul_choices,
    schedule_dense_nopack,
    tile_cycles,
)

SUM = "matmul_pack"
TILE = "matmul_pack.tile"
LEFT = "matmul_pack.left"
RIGHT = "matmul_pack.right"
# steps of k whose sums stay in registers
MOST_DEPTH = 1024


@dataclass(frozen=True, slots=True)
class PackedMatmulConfig:
    """The tile in registers, and the blocks of the operands that stay in caches."""

    rows: int  # of the tile
    columns: int  # of the tile: full vectors
    lanes: int
    depth: int  # steps of k between two visits of a tile
    segment: int  # neighbours along k of a packed row of A
    block_rows: int  # rows of A packed at a time: full tiles


def choose_matmul_pack(
    rows: Any, columns: Any, inner: Any, dtype: str, info: CpuInfo
) -> PackedMatmulConfig | None:
    """The tile with the least padding and the fewest loads; None where packing does not pay."""
    choices = matmul_pack_choices(rows, columns, inner, dtype, info)
    return None if choices is None else _with_blocks(choices.best(), rows, inner, dtype, info)


def matmul_pack_choices(
    rows: Any,
    columns: Any,
    inner: Any,
    dtype: str,
    info: CpuInfo,
    is_transposed: bool = False,
) -> Choices[MatmulConfig] | None:
    """The tiles that fit the registers; None where packing does not pay."""
    if not all(isinstance(d, int) for d in (rows, columns, inner)):
        return None
    lanes = lanes_of(dtype, info)
    # narrower numbers have kernels of their own
    if as_dtype(dtype).bits < 32 or lanes < 4:
        return None
    if columns < 2 * lanes or inner < lanes:
        return None

    def tiles() -> list[MatmulConfig]:
        # a single panel has the columns there are, full vectors or not
        fitting = [(h, v) for h, v in register_tiles(info) if v * lanes <= columns]
        return [MatmulConfig(height, vectors * lanes, lanes) for height, vectors in fitting]

    def cost(tile: MatmulConfig) -> float:
        return tile_cost(rows, columns, tile.rows, tile.columns // lanes, lanes, info)

    choices = Choices(TILE_KNOBS, tiles, cost)
    # in multiplications of vectors, two a cycle
    packing = MATMUL_PACKING * inner * (rows + columns) / (rows * columns * inner / (2 * lanes))
    as_they_are = _cost_as_they_are(rows, columns, inner, dtype, info, is_transposed)
    return choices if cost(choices.best()) + packing < as_they_are else None


def _cost_as_they_are(
    rows: int, columns: int, inner: int, dtype: str, info: CpuInfo, is_transposed: bool
) -> float:
    """As `tile_cost`, on operands that are not packed; infinite where nothing makes vectors."""
    lanes = lanes_of(dtype, info)
    if is_transposed:
        # few rows are multiplied with its lines
        is_read_by_lines = rows <= FEW_ROWS and (rows < 2 or columns % lanes == 0)
        return 1.0 if is_read_by_lines else math.inf
    choices = masked_matmul_choices(rows, columns, dtype, info)
    if choices is None:
        return math.inf
    tile = choices.best()
    vectors, size = tile.columns // tile.lanes, as_dtype(dtype).bits // 8
    # a vector that lies across two lines is read twice
    loads = vectors * (2 if columns % lanes else 1) + tile.rows
    speed = relative_cycles(TileStep(vectors * tile.rows, loads), MATMUL, info.timing)
    covered = ceil_div(columns, tile.columns) * tile.columns * lanes // tile.lanes
    way = info.l2 // info.timing.l2_ways
    if rows > tile.rows and inner * max(math.gcd(columns * size, way), 64) > info.l2:
        speed *= MATMUL_CONFLICTS
    if rows * inner * size > info.l2 // 2 and columns > tile.columns:
        speed *= MATMUL_FAR_ROWS
    if rows * columns * size > info.l2:
        speed += MATMUL_FAR_PRODUCT * 2 * lanes / inner
    return speed * covered / columns


def _with_blocks(
    tile: MatmulConfig, rows: int, inner: int, dtype: str, info: CpuInfo
) -> PackedMatmulConfig:
    """The blocks that a tile's operands are packed in."""
    stretches = ceil_div(inner, MOST_DEPTH)
    segments = (tile.lanes, tile.lanes // 2)
    segment = next((n for n in segments if inner % (n * stretches) == 0), tile.lanes)
    depth = ceil_div(ceil_div(inner, stretches), segment) * segment
    room = info.l2 // 2 // (depth * as_dtype(dtype).bits // 8)
    most = max(room // tile.rows, 1)
    block = _block_tiles(ceil_div(rows, tile.rows), most, info.cores) * tile.rows
    return PackedMatmulConfig(tile.rows, tile.columns, tile.lanes, depth, segment, block)


def register_tiles(info: CpuInfo) -> list[tuple[int, int]]:
    """Rows and vectors of the tiles that fit the registers beside a row of B and an element of A."""
    room = info.vector_registers - 1
    return [(h, v) for h in range(2, 15) for v in range(1, 9) if h * v + v < room]


def tile_cost(
    rows: int, columns: int, height: int, vectors: int, lanes: int, info: CpuInfo
) -> float:
    """Cycles of a product in those that its multiply-adds take alone, padding included."""
    # rows of B come from L2
    cycles = tile_cycles(height, vectors, info, vectors * VECTOR_BYTES)
    width = vectors * lanes
    covered = ceil_div(rows, height) * height * ceil_div(columns, width) * width
    return cycles * covered / (rows * columns)


def _block_tiles(tiles: int, most: int, cores: int) -> int:
    """Tiles of a block: all cores get as many, and a panel of B serves many."""

    def cost(count: int) -> float:
        rounds = ceil_div(ceil_div(tiles, count), cores)
        return float(rounds * count * (1 + MATMUL_BLOCK_START / count))

    return min(range(1, max(min(most, tiles), 1) + 1), key=cost)


@described_by(matmul)
def matmul_pack(
    tensor_a: te.Tensor,
    tensor_b: te.Tensor,
    bias: te.Tensor | None = None,
    out_dtype: str | None = None,
    transpose_a: bool = False,
    transpose_b: bool = False,
    config: PackedMatmulConfig | None = None,
) -> te.Tensor:
    """A product of two matrices that packs both; a plain one where that does not pay.

    Parameters
    ----------
    config : PackedMatmulConfig, optional
        Tiles and blocks; chosen for the current target's processor by default.
    """
    dtype = str(out_dtype or tensor_a.dtype)
    if len(tensor_a.shape) == len(tensor_b.shape) == 2:
        inner, rows = dims(tensor_a.shape) if transpose_a else dims(tensor_a.shape)[::-1]
        columns = dims(tensor_b.shape)[0 if transpose_b else 1]
        info = processor()
        choices = matmul_pack_choices(rows, columns, inner, dtype, info, transpose_b)
        if config is None and choices is not None:
            asked = product_task(tensor_a, tensor_b, dtype, transpose_a, transpose_b)
            tile = choices.choose(asked.get("workload"))
            config = _with_blocks(tile, rows, inner, dtype, info)
            tell_origin(config, origin_of(tile))
    if config is None:
        return matmul(tensor_a, tensor_b, bias, dtype, transpose_a, transpose_b)
    left = _pack_left(tensor_a, transpose_a, config)
    right = _pack_right(tensor_b, transpose_b, config)
    product = _product(left, right, (rows, columns), dtype, config)
    if bias is None:
        return product
    return te.compute(
        product.shape,
        lambda i, j: product[i, j] + bias[j].astype(dtype),
        name="T_add",
        tag="broadcast",
    )


def _pack_left(a: te.Tensor, is_transposed: bool, config: PackedMatmulConfig) -> te.Tensor:
    """[stretch of k, tile, segment of k, row, k]"""
    inner, rows = dims(a.shape) if is_transposed else dims(a.shape)[::-1]
    height, depth = config.rows, config.depth
    segment = 1 if is_transposed else config.segment

    def element(stretch: Any, tile: Any, far: Any, y: Any, near: Any) -> Any:
        row, k = tile * height + y, stretch * depth + far * segment + near
        value = a[k, row] if is_transposed else a[row, k]
        return _or_zero(value, (row, rows, height), (k, inner, depth))

    shape = (ceil_div(inner, depth), ceil_div(rows, height), depth // segment, height, segment)
    return te.compute(shape, element, name="T_pack_left", tag=LEFT)


def _pack_right(b: te.Tensor, is_transposed: bool, config: PackedMatmulConfig) -> te.Tensor:
    """[stretch of k, panel, k, column]"""
    columns, inner = dims(b.shape) if is_transposed else dims(b.shape)[::-1]
    width, depth = config.columns, config.depth

    def element(stretch: Any, panel: Any, step: Any, x: Any) -> Any:
        column, k = panel * width + x, stretch * depth + step
        value = b[column, k] if is_transposed else b[k, column]
        return _or_zero(value, (column, columns, width), (k, inner, depth))

    shape = (ceil_div(inner, depth), ceil_div(columns, width), depth, width)
    return te.compute(shape, element, name="T_pack_right", tag=RIGHT)


def _or_zero(value: Any, *bounds: tuple[Any, int, int]) -> Any:
    """A value at indices that may reach beyond their extents where blocks do not divide these."""
    within = [index < extent for index, extent, block in bounds if extent % block]
    if not within:
        return value
    return tir.if_then_else(tir.all(*within), value, tir.const(0, value.dtype))


def _product(
    left: te.Tensor,
    right: te.Tensor,
    shape: tuple[int, int],
    dtype: str,
    config: PackedMatmulConfig,
) -> te.Tensor:
    """The sum of the products of the stretches."""
    stretches, tiles, segments, height, segment = dims(left.shape)
    _, panels, _, width = dims(right.shape)
    far = te.reduce_axis((0, segments), name="k_outer")
    near = te.reduce_axis((0, segment), name="k_inner")

    def element(stretch: Any, i: Any, j: Any) -> Any:
        a = left[stretch, tir.indexdiv(i, height), far.var, tir.indexmod(i, height), near.var]
        b = right[stretch, tir.indexdiv(j, width), far * segment + near, tir.indexmod(j, width)]
        return te.sum(a.astype(dtype) * b.astype(dtype), axis=[far, near])

    whole = (stretches, tiles * height, panels * width)
    tile = te.compute(whole, element, name="T_matmul_tile", tag=TILE)
    attrs = asdict(config)
    if stretches == 1:
        return te.compute(
            shape, lambda i, j: tile[0, i, j], name="T_matmul_pack", tag=SUM, attrs=attrs
        )
    over = te.reduce_axis((0, stretches), name="k_stretch")
    return te.compute(
        shape,
        lambda i, j: te.sum(tile[over.var, i, j], axis=over),
        name="T_matmul_pack",
        tag=SUM,
        attrs=attrs,
    )


def schedule_matmul_pack(outs: te.Tensor | Sequence[te.Tensor]) -> te.Schedule:
    """Schedule a product of `matmul_pack`, and what is fused behind it."""
    s, output, ops = open_schedule(outs)
    anchor = next((op for op in ops if op.tag == SUM), None)
    if anchor is None:
        return schedule_dense_nopack(outs)
    config = PackedMatmulConfig(**{name: int(value) for name, value in anchor.attrs.items()})
    inline_injective_but(s, ops, anchor, output)
    product = anchor.output(0)
    if dims(output.shape) != dims(product.shape):
        _schedule_blocks(s, product, product, config)
        fuse_and_parallel(s, output, list(s[output].op.axis))
        return s
    _schedule_blocks(s, output, product, config)
    return s


def _schedule_blocks(
    s: te.Schedule, output: te.Tensor, product: te.Tensor, config: PackedMatmulConfig
) -> None:
    """A block of rows a task; the sums of several stretches are added up in the product's block."""
    summed = product.op
    tile = summed.input_tensors[0]
    rows, columns = dims(product.shape)
    vectors = config.columns // config.lanes
    cost = tile_cost(rows, columns, config.rows, vectors, config.lanes, processor())
    note(config, 1 / cost)
    block, y, x = _split_rows(s, output, config)
    s[output].parallel(block)
    if output.op is summed or not summed.reduce_axis:
        if output.op is not summed:
            s[product].compute_inline()
        position = _schedule_tiles(s, output, y, x, tile, config)
    else:
        _, lane = s[output].split(x, factor=config.lanes)
        s[output].vectorize(lane)
        s[product].compute_at(s[output], block)
        y, x = s[product].op.axis
        position = _schedule_tiles(s, product, y, x, tile, config)
    left, right = tile.op.input_tensors
    _schedule_left(s, left, (output, block) if position is None else position)
    _schedule_right(s, right, config)


def _split_rows(
    s: te.Schedule, output: te.Tensor, config: PackedMatmulConfig
) -> tuple[tir.IterVar, tir.IterVar, tir.IterVar]:
    y, x = s[output].op.axis
    block, y = s[output].split(y, factor=config.block_rows)
    return block, y, x


def _schedule_tiles(
    s: te.Schedule,
    final: te.Tensor,
    y: tir.IterVar,
    x: tir.IterVar,
    tile: te.Tensor,
    config: PackedMatmulConfig,
) -> tuple[te.Tensor, tir.IterVar] | None:
    """Whole tiles below panels; returns the loop over stretches of k, if there is one."""
    stretches = list(s[final].op.reduce_axis)
    tiles, y = s[final].split(y, factor=config.rows)
    panels, x = s[final].split(x, factor=config.columns)
    s[final].reorder(*stretches, panels, tiles, y, x)
    s[final].unroll(y)
    _vectorize(s, final, x, config)
    s[tile].compute_at(s[final], tiles)
    s[tile].set_scope("local")
    _, y, x = s[tile].op.axis
    s[tile].reorder(*s[tile].op.reduce_axis, y, x)
    s[tile].unroll(y)
    _vectorize(s, tile, x, config)
    return (final, stretches[0]) if stretches else None


def _vectorize(
    s: te.Schedule, stage: te.Tensor, axis: tir.IterVar, config: PackedMatmulConfig
) -> None:
    """Unrolled vectors of a tile's row."""
    vectors, lane = s[stage].split(axis, factor=config.lanes)
    s[stage].unroll(vectors)
    s[stage].vectorize(lane)


def _schedule_left(s: te.Schedule, left: te.Tensor, place: tuple[te.Tensor, tir.IterVar]) -> None:
    s[left].compute_at(s[place[0]], place[1])
    *_, rows, segment = s[left].op.axis
    is_transposed = dims(left.shape)[-1] == 1
    s[left].vectorize(rows if is_transposed else segment)


def _schedule_right(s: te.Schedule, right: te.Tensor, config: PackedMatmulConfig) -> None:
    stretch, panel, _, x = s[right].op.axis
    s[right].parallel(s[right].fuse(stretch, panel))
    _vectorize(s, right, x, config)
