"""Attention on processors: scores of a few rows at a time, which never leave the cache.

for n in parallel(batch * heads):
    K = the keys side by side; V = the values
    for block of rows:
        for panel of K, tile of rows: scores[tile, panel] = Q[tile] @ K[panel] * scale + bias
        exponentials = exp(scores - the largest of each row)
        for tile of rows: O[tile] = exponentials[tile] @ V / the sum of each row
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from math import fsum
from typing import Any

from tvm import te, tir
from tvm.support.dtype import dtype as as_dtype
from tvm.target import Target
from tvm.target.cpu import CpuInfo

from ...choice import note
from ...cpu.common import fuse_and_parallel, lanes_of, processor, vector_lanes, vectorize_inner
from ...generic.schedules import open_schedule
from ...utils import ceil_div, dims, divisors, is_dynamic_shape
from ..dense.cpu import inline_injective_but
from ..dense.pack_cpu import register_tiles, tile_cost
from .compute import OUTPUT, AttentionConfig

Ops = dict[str, te.Tensor]
# fewer queries than this do not pay for packing the keys
LEAST_QUERIES = 4
# lengths that tiles are chosen for where only the run knows them
_TYPICAL_LENGTHS = (16, 40, 100, 256)


def choose_attention(
    query: Sequence[Any], value: Sequence[Any], dtype: str, target: Target | None = None
) -> AttentionConfig | None:
    """The tiles for operands of two shapes; None without vectors of values, or for few queries.

    Lengths that only the run knows get the tiles that suit short and long ones alike.
    """
    info = processor(target)
    (_, queries, depth), (_, keys, width) = query, value
    if is_dynamic_shape((depth, width)):
        return None
    if is_dynamic_shape((queries, keys)):
        return _choose_open(queries, keys, (depth, width), dtype, info)
    lanes, value_lanes = lanes_of(dtype, info), vector_lanes(width, dtype, info)
    if value_lanes < 4 or queries < LEAST_QUERIES or keys < 1 or depth < 1:
        return None

    def tiles(rows: int) -> tuple[float, int, tuple[int, int]]:
        """What both products cost with that many rows a tile, the best vectors of scores, the best
        columns and lanes of results."""
        fitting = [v for h, v in register_tiles(info) if h == rows]
        narrow = [v for v in fitting if v == 1 or v * lanes < keys]
        score, scores = min([(tile_cost(queries, keys, rows, v, lanes, info), v) for v in narrow])
        options = [
            (v * value_lanes, value_lanes) for v in fitting if width % (v * value_lanes) == 0
        ]
        padded = ceil_div(width, lanes) * lanes
        if value_lanes < lanes and padded // lanes in fitting:
            options.append((padded, lanes))  # one tile of full vectors, zeros at its end

        def cost(option: tuple[int, int]) -> float:
            """Vectors to multiply."""
            vectors, covered = option[0] // option[1], max(width, option[0])
            cycles = tile_cost(queries, covered, rows, vectors, option[1], info)
            return float(cycles * covered / option[1])

        best = min(options, key=cost)
        return score * depth / lanes + cost(best), scores, best

    heights = dict.fromkeys([h for h, _ in register_tiles(info) if h <= queries])
    (_, columns, values), rows = min([(tiles(h), h) for h in heights])
    block = _block_tiles(ceil_div(queries, rows), rows * keys * as_dtype(dtype).bits // 8, info)
    return AttentionConfig(rows, columns * lanes, lanes, *values, block)


def _choose_open(
    queries: Any, keys: Any, widths: tuple[int, int], dtype: str, info: CpuInfo
) -> AttentionConfig | None:
    """Tiles that need not divide the lengths."""
    (depth, width), lanes = widths, lanes_of(dtype, info)
    value_lanes = vector_lanes(width, dtype, info)
    least = zip((queries, keys, depth), (LEAST_QUERIES, 1, 1), strict=True)
    if value_lanes < 4 or any([isinstance(n, int) and n < limit for n, limit in least]):
        return None
    lengths = [
        (
            queries if isinstance(queries, int) else length,
            keys if isinstance(keys, int) else length,
        )
        for length in _TYPICAL_LENGTHS
    ]

    def score_cost(rows: int, vectors: int) -> float:
        return fsum([tile_cost(q, k, rows, vectors, lanes, info) for q, k in lengths])

    def value_cost(rows: int, vectors: int) -> float:
        costs = [tile_cost(q, width, rows, vectors, value_lanes, info) for q, _ in lengths]
        return fsum(costs) * lanes / value_lanes

    tiles = [
        (h, v) for h, v in register_tiles(info) if not isinstance(queries, int) or h <= queries
    ]
    options = [
        (score_cost(rows, scores) * depth + value_cost(rows, values) * width, rows, scores, values)
        for rows, scores in tiles
        for other, values in tiles
        if other == rows and width % (values * value_lanes) == 0
    ]
    if not options:
        return None
    _, rows, scores, values = min(options)
    return AttentionConfig(rows, scores * lanes, lanes, values * value_lanes, value_lanes, 1)


def _block_tiles(tiles: int, tile_bytes: int, info: CpuInfo) -> int:
    """Tiles of a block whose scores and exponentials stay in L2."""
    most = min(max(info.l2 // 4 // (2 * tile_bytes), 1), 8)
    return max([count for count in divisors(tiles) if count <= most])


def schedule_attention(outs: te.Tensor | Sequence[te.Tensor]) -> te.Schedule:
    """Schedule attention; what is fused before it is computed where it is read."""
    s, output, ops = open_schedule(outs)
    anchor = next(op for op in ops if op.tag == OUTPUT)
    config = AttentionConfig(*[int(anchor.attrs[f.name]) for f in fields(AttentionConfig)])
    stages = {op.name.removeprefix("T_attention_"): op.output(0) for op in ops}
    inline_injective_but(s, ops, anchor, output)
    result = anchor.output(0)
    head, block, tile = _split_output(s, result, config)
    if output.op is not anchor and len(output.shape) > 1:
        fuse_and_parallel(s, output, list(s[output].op.axis)[:-1])
    heads = dims(stages["product"].shape)[0]
    if not isinstance(heads, int) or heads >= processor().cores:
        s[result].parallel(head)
        for name in ("key", "value"):
            s[stages[name]].compute_at(s[result], head)
    else:
        block = _share_blocks(s, result, head, block)
        for name in ("key", "value"):
            s[stages[name]].parallel(s[stages[name]].op.axis[0])
    _note_tile(result, config)
    _schedule_copies(s, stages, config)
    _schedule_scores(s, stages, result, block, config)
    _schedule_rows(s, stages, result, block, config)
    _schedule_sum(s, stages["sum"], result, tile, config)
    return s


def _share_blocks(
    s: te.Schedule, result: te.Tensor, head: tir.IterVar, block: tir.IterVar
) -> tir.IterVar:
    """Give the blocks of all heads to threads; returns the loop around one.

    Which head a block is of would take divisions where their number is open.
    """
    if is_dynamic_shape(result.shape):
        s[result].reorder(block, head)
        s[result].parallel(block)
        return head
    return fuse_and_parallel(s, result, [head, block])


def _note_tile(result: te.Tensor, config: AttentionConfig) -> None:
    queries, width = dims(result.shape)[1], int(result.op.attrs["width"])
    queries = queries if isinstance(queries, int) else max(_TYPICAL_LENGTHS)
    vectors, lanes = config.value_columns // config.value_lanes, config.value_lanes
    note(config, 1 / tile_cost(queries, width, config.rows, vectors, lanes, processor()))


def _split_output(
    s: te.Schedule, result: te.Tensor, config: AttentionConfig
) -> tuple[tir.IterVar, tir.IterVar, tir.IterVar]:
    """Loops over heads, blocks of rows, and tiles."""
    stage, attrs = s[result], result.op.attrs
    head, y, x = stage.op.axis
    if int(attrs["merged"]):
        inner_head, x = stage.split(x, factor=int(attrs["width"]))
        stage.reorder(head, inner_head, y, x)
        head = stage.fuse(head, inner_head)
    y, row = stage.split(y, factor=config.rows)
    block, tile = stage.split(y, factor=config.block)
    # the last columns of a tile may be beyond the result
    columns = min(config.value_columns, int(attrs["width"]))
    panel, x = stage.split(x, factor=columns)
    stage.reorder(head, block, tile, panel, row, x)
    stage.unroll(row)
    lanes = vector_lanes(columns, result.dtype, processor())
    _vectors(s, result, x, columns, min(lanes, config.value_lanes))
    return head, block, panel


def _vectors(s: te.Schedule, stage: te.Tensor, axis: tir.IterVar, width: int, lanes: int) -> None:
    """Unrolled vectors of a tile's row."""
    if lanes == 1:
        return
    if width > lanes:
        vectors, axis = s[stage].split(axis, factor=lanes)
        s[stage].unroll(vectors)
    s[stage].vectorize(axis)


def _schedule_copies(s: te.Schedule, stages: Ops, config: AttentionConfig) -> None:
    """Full panels of keys are gathered in vectors; others are read in order, an address for each key."""
    key, value = stages["key"], stages["value"]
    *_, depth, column = s[key].op.axis
    if _is_full(key.op.input_tensors[0], config):
        _vectors(s, key, column, config.columns, config.lanes)
    else:
        s[key].reorder(column, depth)
    vectorize_inner(s, value, s[value].op.axis[2], config.value_lanes)


def _is_full(key: te.Tensor, config: AttentionConfig) -> bool:
    """Whether keys fill the last panel."""
    keys = dims(key.shape)[1]
    return isinstance(keys, int) and keys % config.columns == 0


def _schedule_scores(
    s: te.Schedule, stages: Ops, result: te.Tensor, block: tir.IterVar, config: AttentionConfig
) -> None:
    scores, product = stages["scores"], stages["product"]
    s[scores].compute_at(s[result], block)
    n, y, x = s[scores].op.axis
    tile, row = s[scores].split(y, factor=config.rows)
    panel, x = s[scores].split(x, factor=config.columns)
    s[scores].reorder(n, panel, tile, row, x)
    s[scores].unroll(row)
    _vectors(s, scores, x, config.columns, config.lanes)
    s[product].compute_at(s[scores], tile)
    s[product].set_scope("local")
    _, y, x = s[product].op.axis
    s[product].reorder(s[product].op.reduce_axis[0], y, x)
    s[product].unroll(y)
    _vectors(s, product, x, config.columns, config.lanes)


def _schedule_rows(
    s: te.Schedule, stages: Ops, result: te.Tensor, block: tir.IterVar, config: AttentionConfig
) -> None:
    """The largest score, the exponentials and their sum, a row at a time."""
    exponentials = stages["exp"]
    s[exponentials].compute_at(s[result], block)
    _, row, column = s[exponentials].op.axis
    vectorize_inner(s, exponentials, column, config.lanes)
    total = stages["total"]
    s[total].compute_at(s[result], block)
    for name, tensor in stages.items():
        if name.startswith("largest"):
            s[tensor].compute_at(s[exponentials], row)
        elif name.startswith("total_"):
            s[tensor].compute_at(s[total], s[total].op.axis[1])
        else:
            continue
        axes = s[tensor].op.axis
        if len(axes) == 3:
            s[tensor].reorder(*axes[:2], *s[tensor].op.reduce_axis, axes[2])
            extent = dims(tensor.shape)[2]
            _vectors(s, tensor, axes[2], extent, min(extent, config.lanes))


def _schedule_sum(
    s: te.Schedule,
    product: te.Tensor,
    result: te.Tensor,
    tile: tir.IterVar,
    config: AttentionConfig,
) -> None:
    s[product].compute_at(s[result], tile)
    s[product].set_scope("local")
    _, y, x = s[product].op.axis
    s[product].reorder(s[product].op.reduce_axis[0], y, x)
    s[product].unroll(y)
    _vectors(s, product, x, config.value_columns, config.value_lanes)
