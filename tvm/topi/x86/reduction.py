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

from ..generic.schedules import as_outputs
from ..tag import COMM_REDUCE_IDX, is_injective
from ..utils import dims, get_max_power2_factor, largest_divisor, operations_above
from .common import (
    element_count,
    fuse_and_parallel,
    masked_lanes,
    processor,
    vector_lanes,
    vectorize_inner,
)
from .injective import schedule_injective


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
    outputs = as_outputs(outs)
    s = te.create_schedule([x.op for x in outputs])
    final = outputs[0]
    ops = operations_above(final.op)
    reductions = [op for op in ops if isinstance(op, te.tensor.ComputeOp) and op.reduce_axis]
    if not reductions:  # over no axis at all
        return schedule_injective(outputs)
    for op in ops:
        if not op.reduce_axis and op is not final.op:
            if is_injective(op.tag) or _feeds_only_final(op, final):
                s[op].compute_inline()
    info = processor()
    place: tuple[te.Tensor, tir.IterVar] | None = None
    if len(reductions) == 1 and _are_columns(reductions[0], final):
        _schedule_columns_below(s, reductions[0].output(0), final, info)
        return s
    if reductions[-1] is not final.op:
        axes = list(s[final].op.axis)
        work = max([_work(op) for op in reductions])
        fused = fuse_and_parallel(s, final, axes, work) if axes else None
        if fused is not None and len(reductions) == 1 and work > 8 * element_count(final):
            place = (final, fused)
    for op in reductions:
        _schedule_one(s, op, place, info)
    return s


def _feeds_only_final(op: te.tensor.Operation, final: te.Tensor) -> bool:
    return op.tag == "" and not op.reduce_axis


def _work(op: te.tensor.Operation) -> int:
    """The number of elements reduced."""
    total = element_count(op.output(0))
    for axis in op.reduce_axis:
        extent = dims((axis.dom.extent,))[0]
        total *= extent if isinstance(extent, int) else 1 << 20
    return total


def _schedule_one(
    s: te.Schedule,
    op: te.tensor.Operation,
    place: tuple[te.Tensor, tir.IterVar] | None,
    info: CpuInfo,
) -> None:
    """Schedule one reduction, at a place of its consumer or as loops of its own."""
    out = op.output(0)
    innermost = _reduces_innermost(op)
    lanes = None
    if innermost and op.tag != COMM_REDUCE_IDX and op.num_outputs == 1:
        k = s[out].op.reduce_axis[-1]
        lanes = choose_lanes(dims((k.dom.extent,))[0], out.dtype, info)
    # factoring makes the loops of `out` anew: it comes before they are arranged
    partial = [] if lanes is None else partial_sums(s, out, k, lanes)
    axes = list(s[out].op.axis)
    if place is None and not innermost and axes:
        _schedule_columns(s, out, axes, info)
        return
    if place is not None:
        s[out].compute_at(s[place[0]], place[1])
    else:
        row = fuse_and_parallel(s, out, axes, _work(op))
        place = None if row is None else (out, row)
    if place is not None:
        for x in partial:
            s[x].compute_at(s[place[0]], place[1])


def _are_columns(op: te.tensor.Operation, final: te.Tensor) -> bool:
    """Whether a reduction that leaves the last axis feeds element-wise operators."""
    same = dims(op.output(0).shape) == dims(final.shape)
    return op is not final.op and same and len(op.axis) > 0 and not _reduces_innermost(op)


def _schedule_columns(
    s: te.Schedule, out: te.Tensor, axes: list[tir.IterVar], info: CpuInfo
) -> None:
    """The innermost axis stays: vectors of results, the reduction around them."""
    columns, inner, lanes = _column_vectors(s, out, axes[-1], info)
    s[out].reorder(*axes[:-1], columns, *s[out].op.reduce_axis, *inner)
    _vectorize_columns(s, out, inner, lanes)
    fuse_and_parallel(s, out, [*axes[:-1], columns], _work(out.op))


def _schedule_columns_below(
    s: te.Schedule, out: te.Tensor, final: te.Tensor, info: CpuInfo
) -> None:
    """As `_schedule_columns`, where element-wise operators read the sums of each stretch."""
    *rows, last = s[final].op.axis
    columns, inner, lanes = _column_vectors(s, final, last, info)
    s[final].reorder(*rows, columns, *inner)
    _vectorize_columns(s, final, inner, lanes)
    place = fuse_and_parallel(s, final, [*rows, columns], _work(out.op))
    s[out].compute_at(s[final], place)
    *_, last = s[out].op.axis
    vectors, lane = s[out].split(last, factor=lanes)
    s[out].reorder(*s[out].op.reduce_axis, vectors, lane)
    _vectorize_columns(s, out, [vectors, lane], lanes)


def _column_vectors(
    s: te.Schedule, stage: te.Tensor, axis: tir.IterVar, info: CpuInfo
) -> tuple[tir.IterVar, list[tir.IterVar], int]:
    """An axis as stretches of a few vectors, on which reductions run side by side."""
    extent = dims(stage.shape)[-1]
    lanes, count = vector_lanes(extent, stage.dtype, info), 1
    if lanes < 4:  # masks keep the sums of each step in memory
        lanes = masked_lanes(extent, stage.dtype, info)
    if isinstance(extent, int) and extent % lanes == 0:
        count = largest_divisor(extent // lanes, 5)
    columns, inner = s[stage].split(axis, factor=lanes * count)
    vectors, lane = s[stage].split(inner, factor=lanes)
    return columns, [vectors, lane], lanes


def _vectorize_columns(
    s: te.Schedule, stage: te.Tensor, inner: list[tir.IterVar], lanes: int
) -> None:
    vectors, lane = inner
    s[stage].unroll(vectors)
    if lanes > 1:
        s[stage].vectorize(lane)


def _reduces_innermost(op: te.tensor.Operation) -> bool:
    """Whether the last axis of what is read is reduced."""
    if not op.input_tensors:
        return False
    last = op.reduce_axis[-1]
    return len(op.axis) == 0 or _last_index_is(op, last)


def _last_index_is(op: te.tensor.Operation, axis: tir.IterVar) -> bool:
    """Whether some tensor is read along `axis` in its last dimension."""
    from_body = _last_indices(op)
    return any(index is axis.var for index in from_body)


def _last_indices(op: te.tensor.Operation) -> list[object]:
    found: list[object] = []

    def visit(node: object) -> None:
        if isinstance(node, tir.ProducerLoad) and len(node.indices):
            found.append(node.indices[-1])

    for body in op.body:
        tir.stmt_functor.post_order_visit(body, visit)
    return found


def partial_sums(s: te.Schedule, out: te.Tensor, k: tir.IterVar, lanes: Lanes) -> list[te.Tensor]:
    """Cut a row's reduction into vectors of partial results, combined as a tree: 64, 16, 4, 1.

    Returns the partial results; they are to be computed where `out` is.
    """
    stages = [_factor(s, out, k, lanes.total, lanes.vector)]
    left = lanes.total
    while left > 4:
        left = max(left // 4, 4)
        stages.append(_factor(s, out, s[out].op.reduce_axis[-1], left, min(left, lanes.vector)))
    return stages


def _factor(s: te.Schedule, out: te.Tensor, k: tir.IterVar, count: int, vector: int) -> te.Tensor:
    """Partial results out[k % count], in vectors."""
    _, inner = s[out].split(k, factor=count)
    partial = s.rfactor(out, inner)
    stage = s[partial]
    lane = stage.op.axis[0]
    rest = [*stage.op.axis[1:], *stage.op.reduce_axis]
    if count > vector:
        side, lane = stage.split(lane, factor=vector)
        stage.reorder(*rest, side, lane)
        stage.unroll(side)
    else:
        stage.reorder(*rest, lane)
    stage.vectorize(lane)
    return partial


__all__ = ["Lanes", "choose_lanes", "partial_sums", "schedule_reduce", "vectorize_inner"]
