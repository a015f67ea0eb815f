"""Pooling on processors: outer loops parallel, blocked channels in vectors."""

from __future__ import annotations

from collections.abc import Sequence

from tvm import te

from ...access import are_read_as_one, reads_neighbours
from ...cpu.common import (
    covering_lanes,
    element_count,
    fuse_and_parallel,
    fuse_rows_and_parallel,
    lanes_of,
    processor,
    row_lanes,
    vector_lanes,
    vectorize_inner,
)
from ...cpu.reduction import schedule_reduce
from ...generic.schedules import as_outputs, open_schedule
from ...tag import is_injective
from ...utils import ceil_div, dims, extents_of, largest_divisor, prod

# vectors of windows that hide the latency of additions
SIDE_BY_SIDE = 4


def schedule_pool(outs: te.Tensor | Sequence[te.Tensor], layout: str = "NCHW") -> te.Schedule:
    """Schedule pooling with its mean and what is fused behind it."""
    s, output, ops = open_schedule(outs)
    anchor = next(op for op in ops if isinstance(op, te.tensor.ComputeOp) and op.reduce_axis)
    pool = anchor.output(0)
    axes = list(s[output].op.axis)
    if not axes:
        return s
    is_blocked = any(c.islower() for c in layout) or layout[-1] == "C"
    if not is_blocked and are_read_as_one(anchor, list(anchor.reduce_axis)):
        return schedule_reduce(outs)  # windows that are full rows
    is_whole = len(axes) > 1 and dims(output.shape) == dims(pool.shape)
    by_rows = is_whole and not is_blocked and anchor.tag in ("pool_max", "pool_sum")
    columns = _lanes_along_rows(anchor) if by_rows else 1
    kept = (anchor, output.op, *([anchor.input_tensors[0].op] if columns > 1 else []))
    for op in ops:
        if op not in kept and is_injective(op.tag):
            s[op].compute_inline()
    work = element_count(pool)
    for axis in anchor.reduce_axis:
        extent = extents_of((axis,))[0]
        work *= extent if isinstance(extent, int) else 1
    if columns > 1:
        _schedule_rows(s, output, anchor, columns, work)
        return s
    lanes = vector_lanes(dims(output.shape)[-1], output.dtype, processor()) if is_blocked else 1
    fused = fuse_rows_and_parallel(s, output, axes[:-1] or axes, work)
    if output.op is not anchor and is_whole:
        s[pool].compute_at(s[output], fused)
        if lanes > 1:
            _, inner = s[output].split(axes[-1], factor=lanes)
            s[output].vectorize(inner)
    if lanes > 1:
        outer, inner = s[pool].split(s[pool].op.axis[-1], factor=lanes)
        s[pool].reorder(outer, *s[pool].op.reduce_axis, inner)
        s[pool].vectorize(inner)
    return s


def _lanes_along_rows(anchor: te.tensor.ComputeOp) -> int:
    """Positions of a row in a vector; 1 where rows are not known, or their windows fill no whole ones."""
    pool = anchor.output(0)
    width = dims(pool.shape)[-1]
    if not isinstance(width, int):
        return 1
    info = processor()
    exact = vector_lanes(width, pool.dtype, info)
    # masks cost more where every other element is picked: one vector for a short row pays
    is_short = exact < 4 and width <= lanes_of(pool.dtype, info)
    can_cover = reads_neighbours(anchor) or (is_short and reads_neighbours(anchor, 2))
    return covering_lanes(width, pool.dtype, info) if can_cover else exact


def _schedule_rows(
    s: te.Schedule, output: te.Tensor, anchor: te.tensor.Operation, lanes: int, work: int
) -> None:
    """Windows of neighbours in vectors, a few rows of them at a time.

    A plane is read with its border first.
    """
    pool, source = anchor.output(0), anchor.input_tensors[0]
    acc = s.cache_write(pool, "local") if output.op is anchor else pool
    s[acc].set_scope("local")
    final = s.outputs[0].output(0) if output.op is anchor else output
    *lead, y, x = s[final].op.axis
    vectors = ceil_div(dims(pool.shape)[-1], lanes)
    is_whole = dims(pool.shape)[-1] % lanes == 0
    columns = largest_divisor(vectors, SIDE_BY_SIDE) if is_whole else min(vectors, SIDE_BY_SIDE)
    height = dims(pool.shape)[-2]
    together = min(height, SIDE_BY_SIDE // columns) if isinstance(height, int) else 1
    y_outer, y_inner = s[final].split(y, factor=together)
    x_outer, x_inner = s[final].split(x, factor=lanes * columns)
    s[final].reorder(*lead, y_outer, x_outer, y_inner, x_inner)
    spatial = len(anchor.reduce_axis) - 1
    rows = [*lead, y_outer]
    are_planes = _has_many_planes(source, pool, spatial)
    position = fuse_and_parallel(
        s, final, rows[: len(rows) - spatial] if are_planes else rows, work
    )
    s[acc].compute_at(s[final], x_outer)
    *_, acc_y, acc_x = s[acc].op.axis
    for stage, row, column in ((s[final], y_inner, x_inner), (s[acc], acc_y, acc_x)):
        side_by_side, lane = stage.split(column, factor=lanes)
        stage.reorder(*stage.op.reduce_axis, row, side_by_side, lane)
        stage.unroll(row)
        stage.unroll(side_by_side)
        stage.vectorize(lane)
    if are_planes and spatial:
        s[final].pragma(y_outer, "loop_partition_hint")
    if not is_whole:
        s[acc].storage_align(s[acc].op.axis[-2], lanes, 0)  # rows of full registers
    if not isinstance(source.op, te.PlaceholderOp):
        s[source].compute_at(s[final], position)
        wide = row_lanes(dims(source.shape)[-1], source.dtype, processor())
        vectorize_inner(s, source, s[source].op.axis[-1], wide)


def _has_many_planes(source: te.Tensor, pool: te.Tensor, spatial: int) -> bool:
    """Whether there are enough planes for all cores, each of which stays in L2."""
    info, rank = processor(), len(pool.shape)
    planes, plane = dims(pool.shape)[: rank - spatial - 1], dims(source.shape)[rank - spatial - 1 :]
    if not all(isinstance(extent, int) for extent in (*planes, *plane)):
        return False
    return bool(prod(planes) >= 2 * info.cores and 4 * prod(plane) <= info.l2 // 2)


def schedule_adaptive_pool(outs: te.Tensor | Sequence[te.Tensor]) -> te.Schedule:
    """Schedule adaptive and global pooling; a rank above four tells blocked channels."""
    output = as_outputs(outs)[0]
    return schedule_pool(outs, "NCHWc" if len(output.shape) > 4 else "NCHW")
