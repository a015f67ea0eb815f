"""Reductions: rows on all threads, each row in vectors of partial results.

for i in parallel(n):
    for k in range(m / 16):                      # 16 partial sums in one register
        partial[0:16] += A[i, k * 16 : k * 16 + 16]
    for j in range(16):
        B[i] += partial[j]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tvm import te, tir
from tvm.target.cpu import CpuInfo

from ..access import are_read_as_one, indexed_reads
from ..generic.schedules import open_schedule
from ..tag import COMM_REDUCE, is_injective
from ..utils import ceil_div, dims, extents_of, get_max_power2_factor, prod
from .common import (
    PARALLEL_ELEMENTS,
    element_count,
    fuse_and_parallel,
    masked_lanes,
    processor,
)
from .injective import schedule_injective

# vectors of columns whose sums hide the latency of additions
SUMS_SIDE_BY_SIDE = 5


@dataclass(frozen=True, slots=True)
class Lanes:
    """How a row is cut: elements in a vector, and vectors that run side by side."""

    vector: int
    side_by_side: int

    @property
    def total(self) -> int:
        return self.vector * self.side_by_side


def choose_lanes(extent: object, dtype: str, info: CpuInfo) -> Lanes | None:
    """Partial results for a row of that extent; None if it is not worth it."""
    if not isinstance(extent, int):
        return None
    vector = masked_lanes(extent, dtype, info)
    if vector < 4 or extent // vector < 2:
        return None
    # more registers hide the latency of additions
    whole = extent // vector if extent % vector == 0 else 4
    side = get_max_power2_factor(whole, 4) if extent >= 8 * vector else 1
    return Lanes(vector, side if extent // (vector * side) > 1 else 1)


def schedule_reduce(outs: te.Tensor | Sequence[te.Tensor]) -> te.Schedule:
    """Schedule a reduction with element-wise operators before and after it."""
    s, final, ops = open_schedule(outs)
    reductions = [op for op in ops if isinstance(op, te.tensor.ComputeOp) and op.reduce_axis]
    if not reductions:  # over no axis at all
        return schedule_injective(outs)
    for op in ops:
        if not op.reduce_axis and op is not final.op:
            if is_injective(op.tag) or _feeds_only_final(op, final):
                s[op].compute_inline()
    info = processor()
    position: tuple[te.Tensor, tir.IterVar] | None = None
    if len(reductions) == 1 and _are_columns(reductions[0], final):
        sums = reductions[0].output(0)
        _schedule_columns_below(s, sums, final, _work(reductions[0]), info)
        return s
    if reductions[-1] is not final.op:
        axes = list(s[final].op.axis)
        work = max([_work(op) for op in reductions])
        if axes:
            fused = fuse_and_parallel(s, final, axes, work)
            if len(reductions) == 1 and work > 8 * element_count(final):
                position = (final, fused)
    for op in reductions:
        _schedule_one(s, op, position, info)
    return s


def _feeds_only_final(op: te.tensor.Operation, final: te.Tensor) -> bool:
    return op.tag in ("", COMM_REDUCE) and not op.reduce_axis


def _work(op: te.tensor.Operation) -> int:
    """The number of elements reduced."""
    total = element_count(op.output(0))
    for axis in op.reduce_axis:
        extent = extents_of((axis,))[0]
        total *= extent if isinstance(extent, int) else 1 << 20
    return total


def _schedule_one(
    s: te.Schedule,
    op: te.tensor.ComputeOp,
    place: tuple[te.Tensor, tir.IterVar] | None,
    info: CpuInfo,
) -> None:
    """Schedule one reduction, at a position of its consumer or as loops of its own."""
    out, work = op.output(0), _work(op)
    innermost = _reduces_innermost(op)
    if place is None and not innermost and len(op.axis) and op.num_outputs == 1:
        _schedule_columns(s, out, info)
        return
    row = lanes = None
    if innermost:
        row, lanes = find_row(op, info)
    partial: list[te.Tensor] = []
    if row is not None and lanes is not None:
        is_single = element_count(out) < info.cores and op.num_outputs == 1
        if place is None and is_single and row.extent >= 4 * PARALLEL_ELEMENTS:
            out, row = _cut(s, out, row, lanes, info)
        # factoring makes the loops of `out` anew: it comes before they are arranged
        partial = partial_sums(s, out, row, lanes)
    if place is not None:
        s[out].compute_at(s[place[0]], place[1])
    elif s[out].op.axis:
        place = (out, fuse_and_parallel(s, out, list(s[out].op.axis), work))
    if place is not None:
        for x in partial:
            s[x].compute_at(s[place[0]], place[1])


def _are_columns(op: te.tensor.ComputeOp, final: te.Tensor) -> bool:
    """Whether a reduction that leaves the last axis feeds element-wise operators."""
    same = dims(op.output(0).shape) == dims(final.shape)
    return op is not final.op and same and len(op.axis) > 0 and not _reduces_innermost(op)


def _schedule_columns(s: te.Schedule, out: te.Tensor, info: CpuInfo) -> None:
    """The innermost axis stays: vectors of results, the reduction around them."""
    work = _work(out.op)
    sums = s.cache_write(out, "local")
    _schedule_columns_below(s, sums, s[out].op.output(0), work, info)


def _schedule_columns_below(
    s: te.Schedule, sums: te.Tensor, final: te.Tensor, work: int, info: CpuInfo
) -> None:
    """The sums of a stretch of columns in registers, then what is made of them."""
    s[sums].set_scope("local")
    *rows, last = s[final].op.axis
    columns, inner, lanes = _column_vectors(s, final, last, info)
    s[final].reorder(*rows, columns, *inner)
    _vectorize_columns(s, final, inner, lanes)
    position = fuse_and_parallel(s, final, [*rows, columns], work)
    s[sums].compute_at(s[final], position)
    *_, last = s[sums].op.axis
    vectors, lane = s[sums].split(last, factor=lanes)
    s[sums].reorder(*s[sums].op.reduce_axis, vectors, lane)
    _vectorize_columns(s, sums, [vectors, lane], lanes)


def _column_vectors(
    s: te.Schedule, stage: te.Tensor, axis: tir.IterVar, info: CpuInfo
) -> tuple[tir.IterVar, list[tir.IterVar], int]:
    """An axis as stretches of a few vectors, on which reductions run side by side."""
    extent = dims(stage.shape)[-1]
    lanes, count = masked_lanes(extent, stage.dtype, info), 1
    if isinstance(extent, int):
        vectors = ceil_div(extent, lanes)
        count = ceil_div(vectors, ceil_div(vectors, SUMS_SIDE_BY_SIDE))
    columns, inner = s[stage].split(axis, factor=lanes * count)
    return columns, list(s[stage].split(inner, factor=lanes)), lanes


def _vectorize_columns(
    s: te.Schedule, stage: te.Tensor, inner: list[tir.IterVar], lanes: int
) -> None:
    vectors, lane = inner
    s[stage].unroll(vectors)
    if lanes > 1:
        s[stage].vectorize(lane)


def _reduces_innermost(op: te.tensor.ComputeOp) -> bool:
    """Whether the last axis of what is read is reduced."""
    if not op.input_tensors:
        return False
    last = op.reduce_axis[-1]
    return len(op.axis) == 0 or _last_index_is(op, last)


def _last_index_is(op: te.tensor.ComputeOp, axis: tir.IterVar) -> bool:
    """Whether some tensor is read along `axis` in its last dimension."""
    return any(indices and indices[-1] is axis.var for _, indices in indexed_reads(op))


@dataclass(frozen=True, slots=True)
class Row:
    """Loops of a reduction that step through memory as one."""

    axes: tuple[tir.IterVar, ...]
    extent: int


def find_row(op: te.tensor.ComputeOp, info: CpuInfo) -> tuple[Row | None, Lanes | None]:
    """The loops that a reduction's innermost one is joined with, and how they are cut; None if not."""
    axes = list(op.reduce_axis)
    for start in range(len(axes)):
        extent = prod(extents_of(axes[start:]))
        if start < len(axes) - 1 and not are_read_as_one(op, axes[start:]):
            continue
        lanes = choose_lanes(extent, op.output(0).dtype, info)
        return (Row(tuple(axes[start:]), extent), lanes) if lanes else (None, None)
    return None, None


def _cut(
    s: te.Schedule, out: te.Tensor, row: Row, lanes: Lanes, info: CpuInfo
) -> tuple[te.Tensor, Row]:
    """One row as a piece for each core: the results of the pieces, and the row of a piece."""
    extent = ceil_div(ceil_div(row.extent, info.cores), lanes.total) * lanes.total
    piece, _ = s[out].split(_fused(s, out, row), factor=extent)
    pieces = s.rfactor(out, piece)
    return pieces, Row((s[pieces].op.reduce_axis[-1],), extent)


def _fused(s: te.Schedule, out: te.Tensor, row: Row) -> tir.IterVar:
    return row.axes[0] if len(row.axes) == 1 else s[out].fuse(*row.axes)


def partial_sums(s: te.Schedule, out: te.Tensor, row: Row, lanes: Lanes) -> list[te.Tensor]:
    """Cut a row's reduction into vectors of partial results, combined as a tree: 64, 16, 4, 1.

    Returns the partial results; they are to be computed where `out` is.
    """
    stages = [_factor(s, out, _fused(s, out, row), lanes.total, lanes.vector)]
    left = lanes.total
    while left > 4:
        left = max(left // 4, 4)
        stages.append(_factor(s, out, s[out].op.reduce_axis[-1], left, min(left, lanes.vector)))
    return stages


def _factor(s: te.Schedule, out: te.Tensor, k: tir.IterVar, count: int, vector: int) -> te.Tensor:
    """Partial results out[k % count], in vectors; those that the row ends in are separate."""
    _, inner = s[out].split(k, factor=count)
    found = s.rfactor(out, inner)
    partial: te.Tensor = found[0] if isinstance(found, list) else found
    stage = s[partial]
    stage.set_scope("local")
    lane = stage.op.axis[0]
    rest = [*stage.op.axis[1:], *stage.op.reduce_axis]
    if count > vector:
        side, lane = stage.split(lane, factor=vector)
        stage.reorder(*rest, side, lane)
        stage.unroll(side)
    else:
        stage.reorder(*rest, lane)
    stage.vectorize(lane)
    stage.pragma(stage.op.reduce_axis[-1], "loop_partition_hint")
    return partial


__all__ = ["Lanes", "Row", "choose_lanes", "find_row", "partial_sums", "schedule_reduce"]
