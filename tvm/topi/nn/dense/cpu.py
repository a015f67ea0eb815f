"""Matrix products on processors: a tile of rows and vectors of columns in registers.

for xo.yo in parallel(...):                      # a panel of the weight, a tile of rows
    acc[8][3][0:16] = 0
    for k:
        for y in unrolled(8), v in unrolled(3):
            acc[y][v] += broadcast(A[yo * 8 + y, k]) * W[xo, k, v * 16 : v * 16 + 16]
    C[...] = epilogue(acc)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tvm import te, tir
from tvm.support.dtype import dtype as as_dtype
from tvm.target import Target
from tvm.target.cpu import CpuInfo

from ...choice import note
from ...configuration import Choices, Workload, is_active, workload, workload_of
from ...cpu.common import (
    covering_lanes,
    fuse_and_parallel,
    has_shape_of,
    processor,
    vector_lanes,
)
from ...cpu.fitted import MATMUL
from ...cpu.prefetch import is_streamed, prefetch_panels
from ...cpu.reduction import schedule_reduce
from ...cpu.tile_cost import TileStep, relative_cycles
from ...generic.schedules import open_schedule
from ...tag import is_injective
from ...utils import (
    ceil_div,
    dims,
    divisors,
    largest_divisor,
    operations_above,
    prod,
    product_dtype,
)
from .compute import PACK_TASK, SYMBOLIC_TILE, padded_rows

# steps of a sum between two prefetches
PREFETCH_STEPS = 16
# of a vector from L2, whatever its length: rows of panels lie in full cache lines
VECTOR_BYTES = 64
# fewer rows are not worth turning the lines of the right operand into columns
FEW_ROWS = 8
TILE_KNOBS = {"tile_y": "rows", "tile_x": "columns"}


@dataclass(frozen=True, slots=True)
class MatmulConfig:
    """The tile of the product held in registers."""

    rows: int
    columns: int  # elements, full vectors
    lanes: int


def choose_matmul(
    rows: int, columns: int, dtype: str, info: CpuInfo, inner: int = 0
) -> MatmulConfig | None:
    """The tile with the fewest loads for each multiplication; None without vectors of columns.

    With `inner`, a panel of that many rows should stay in L2.
    """
    choices = matmul_choices(rows, columns, dtype, info, inner)
    return None if choices is None else choices.best()


def matmul_choices(
    rows: int, columns: int, dtype: str, info: CpuInfo, inner: int = 0
) -> Choices[MatmulConfig] | None:
    """The tiles that fit the registers, and their cost; None without vectors of columns."""
    lanes = vector_lanes(columns, dtype, info)
    if lanes < 4:
        return None
    room = info.vector_registers - 1
    room_in_cache = info.l2 // 2 // max(inner * lanes * as_dtype(dtype).bits // 8, 1)
    widest = max(min(room_in_cache, 16), 2) if inner else 16
    row_traffic = VECTOR_BYTES / MATMUL.l2_bandwidth * info.timing.fmas_per_cycle

    def tiles() -> list[MatmulConfig]:
        fitting = [
            MatmulConfig(height, vectors * lanes, lanes)
            for vectors in divisors(columns // lanes)
            if vectors <= widest
            for height in divisors(rows)
            if height <= 32 and vectors * height + vectors + 1 <= room
        ]
        return fitting or [MatmulConfig(1, lanes, lanes)]

    def cost(tile: MatmulConfig) -> float:
        cycles = tile_cycles(tile.rows, tile.columns // tile.lanes, info)
        # rows of a panel come from L2
        return max(cycles, row_traffic / tile.rows) if inner else cycles

    return Choices(TILE_KNOBS, tiles, cost)


def masked_matmul_choices(
    rows: int, columns: int, dtype: str, info: CpuInfo
) -> Choices[MatmulConfig] | None:
    """As `matmul_choices`, for columns that full vectors need not divide: masks cut the last ones."""
    lanes = covering_lanes(columns, dtype, info)
    return matmul_choices(rows, ceil_div(columns, lanes) * lanes, dtype, info)


def tile_cycles(rows: int, vectors: int, info: CpuInfo, l2_bytes: float = 0.0) -> float:
    """Cycles of a tile's step in those that its multiply-adds take alone."""
    step = TileStep(rows * vectors, rows + vectors, l2_bytes)
    return relative_cycles(step, MATMUL, info.timing)


def packed_columns(
    rows: int, units: int, inner: int, dtype: str, target: Target | None = None
) -> int | None:
    """The panel width for a packed weight; None if packing is not worth it."""
    choices = matmul_choices(padded_rows(rows), units, dtype, processor(target), inner)
    if choices is None:
        return None
    if not is_active():
        return choices.best().columns

    def task(*weight: int) -> Workload | None:
        factors = ("TENSOR", (rows, inner), dtype), ("TENSOR", weight, dtype)
        return workload(PACK_TASK, *factors, None, product_dtype(dtype))

    def packed(tile: MatmulConfig) -> Workload | None:
        return task(units // tile.columns, inner, tile.columns)

    return choices.choose(task(units, inner), packed).columns


def schedule_dense_pack(
    outs: te.Tensor | Sequence[te.Tensor], config: MatmulConfig | None = None
) -> te.Schedule:
    """Schedule a dense layer with a packed weight, and what is fused behind it."""
    s, output, ops = open_schedule(outs)
    anchor = next(op for op in ops if op.tag == "dense_pack")
    product = anchor.output(0)
    info = processor()
    inline_injective_but(s, ops, anchor, output)
    rows = dims(product.shape)[-2]
    block = dims(anchor.input_tensors[1].shape)[2]
    if not is_full_output(output, product):
        return s
    rows = rows if isinstance(rows, int) else SYMBOLIC_TILE
    chosen = config or panel_choices(rows, block, product.dtype, info).choose(workload_of(anchor))
    schedule_tile(s, output, product, chosen, streamed=anchor.input_tensors[1])
    return s


def panel_choices(rows: int, block: int, dtype: str, info: CpuInfo) -> Choices[MatmulConfig]:
    """The tiles whose accumulators fit beside one row of the panel; the tallest is the best."""
    lanes = vector_lanes(block, dtype, info) if block >= 4 else 1
    vectors = max(block // lanes, 1)
    room = info.vector_registers - 2 - vectors

    def tiles() -> list[MatmulConfig]:
        heights = [height for height in divisors(rows) if height * vectors <= room] or [1]
        return [MatmulConfig(height, block, lanes) for height in heights]

    return Choices(TILE_KNOBS, tiles, lambda tile: 1 / tile.rows)


def inline_injective_but(
    s: te.Schedule,
    ops: Sequence[te.tensor.Operation],
    anchor: te.tensor.Operation,
    output: te.Tensor,
    kept: Sequence[str] = (),
) -> None:
    """Inline injective operators, the output and those named excepted."""
    for op in ops:
        if op.name in kept:
            continue
        if op is not anchor and op is not output.op and is_injective(op.tag):
            s[op].compute_inline()


def is_full_output(output: te.Tensor, product: te.Tensor) -> bool:
    """Whether the output has the product's elements, rows and columns of padding aside."""
    cropped = [op for op in operations_above(output.op) if op.name == "T_crop"]
    whole = cropped[0].output(0) if cropped else product
    return has_shape_of(output, whole)


def schedule_tile(
    s: te.Schedule,
    output: te.Tensor,
    product: te.Tensor,
    config: MatmulConfig,
    batched: bool = False,
    streamed: te.Tensor | None = None,
    by_rows: bool = False,
) -> tuple[te.Tensor, tir.IterVar] | None:
    """Tile the last two axes of the output; the product's tile is accumulated in registers.

    Panels of the streamed operand are brought from memory ahead of their use. Threads share the
    matrices of a batch, the panels, or with `by_rows` the tiles of rows.
    Returns the position where one matrix of a batch is computed.
    """
    vectors = config.columns // config.lanes
    note(config, 1 / tile_cycles(config.rows, vectors, processor()))
    is_output = output.op is product.op
    acc = s.cache_write(product, "local") if is_output else product
    s[acc].set_scope("local")
    final = s.outputs[0].output(0) if is_output else output
    *lead, y, x = s[final].op.axis
    x_outer, x_inner = s[final].split(x, factor=config.columns)
    y_outer, y_inner = s[final].split(y, factor=config.rows)
    outer = (y_outer, x_outer) if by_rows else (x_outer, y_outer)
    s[final].reorder(*lead, *outer, y_inner, x_inner)
    if not batched and _is_uneven(final, config):
        y_outer = s[final].fuse(x_outer, y_outer)
        position, streamed = fuse_and_parallel(s, final, [*lead, y_outer]), None
        s[acc].compute_at(s[final], position)
    else:
        s[acc].compute_at(s[final], outer[1])
        position = fuse_and_parallel(s, final, lead if batched else [*lead, outer[0]])
    vector_loop(s, final, x_inner, config)
    s[final].unroll(y_inner)
    *_, y, x = s[acc].op.axis
    k = s[acc].op.reduce_axis[-1]
    s[acc].reorder(k, y, x)
    columns = dims(final.shape)[-1]
    if isinstance(columns, int) and columns % config.lanes:
        s[acc].storage_align(y, config.lanes, 0)  # rows of full registers
    vector_loop(s, acc, x, config)
    s[acc].unroll(y)
    if streamed is not None and position is not None:
        _prefetch(s, (final, position), acc, streamed, config)
    return None if position is None else (final, position)


def _is_uneven(final: te.Tensor, config: MatmulConfig) -> bool:
    """Whether panels are too few for all threads to have the same number, and tiles of rows are not."""
    *lead, rows, columns = dims(final.shape)
    if not all(isinstance(extent, int) for extent in (*lead, rows, columns)):
        return False
    panels, cores = int(prod(lead)) * ceil_div(columns, config.columns), processor().cores
    return panels < 4 * cores and panels % cores != 0 and int(rows) // config.rows >= cores


def _prefetch(
    s: te.Schedule,
    place: tuple[te.Tensor, tir.IterVar],
    acc: te.Tensor,
    weight: te.Tensor,
    config: MatmulConfig,
) -> None:
    """Bring the next panel while the tiles of rows visit one; a single visit streams by itself."""
    rows = dims(s[acc].op.output(0).shape)[-2]
    if not isinstance(rows, int) or rows < 2 * config.rows or not is_streamed(weight, processor()):
        return
    _, inner, block = dims(weight.shape)
    *_, k = s[acc].op.reduce_axis
    far, _ = s[acc].split(k, factor=largest_divisor(inner, PREFETCH_STEPS))
    panel_bytes = inner * block * as_dtype(weight.dtype).bits // 8
    prefetch_panels(s, place, weight, [far], rows // config.rows, panel_bytes)


def vector_loop(s: te.Schedule, stage: te.Tensor, axis: tir.IterVar, config: MatmulConfig) -> None:
    """Unrolled vectors of a tile's row."""
    if config.lanes == 1:
        return
    if config.columns > config.lanes:
        vectors, axis = s[stage].split(axis, factor=config.lanes)
        s[stage].unroll(vectors)
    s[stage].vectorize(axis)


def schedule_dense_nopack(
    outs: te.Tensor | Sequence[te.Tensor], config: MatmulConfig | None = None
) -> te.Schedule:
    """Schedule a product of two matrices that come as they are.

    A transposed right operand is read by columns; few rows are multiplied with its lines instead.
    """
    s, output, ops = open_schedule(outs)
    anchor = next(op for op in ops if isinstance(op, te.tensor.ComputeOp) and op.tag == "matmul")
    product = anchor.output(0)
    info = processor()
    inline_injective_but(s, ops, anchor, output)
    shape = dims(product.shape)
    static = all(isinstance(d, int) for d in shape) and len(shape) >= 2
    if not static or dims(output.shape) != shape:
        _plain(s, output)
        return s
    if shape[-2] <= FEW_ROWS and reads_lines(anchor):
        return schedule_reduce(outs)
    choices = masked_matmul_choices(shape[-2], shape[-1], product.dtype, info)
    if config is None and choices is not None:
        config = choices.choose(workload_of(anchor))
    if config is None:
        _plain(s, output)
    else:
        schedule_tile(s, output, product, config)
    return s


def reads_lines(anchor: te.tensor.ComputeOp) -> bool:
    """Whether both operands of a product are read in order by its sum."""
    k = anchor.reduce_axis[-1].var
    reads: list[bool] = []

    def visit(node: object) -> None:
        if isinstance(node, tir.ProducerLoad):
            reads.append(node.indices[-1] is k)

    tir.stmt_functor.post_order_visit(anchor.body[0], visit)
    return all(reads)


def _plain(s: te.Schedule, output: te.Tensor) -> None:
    axes = list(s[output].op.axis)
    if axes:
        fuse_and_parallel(s, output, axes[:1])
