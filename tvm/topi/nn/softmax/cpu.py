"""Softmax on processors: a row at a time, every pass over it in vectors."""

from __future__ import annotations

from collections.abc import Sequence

from tvm import te, tir
from tvm.target.cpu import CpuInfo

from ...cpu.common import (
    covering_lanes,
    element_count,
    fuse_and_parallel,
    lanes_of,
    processor,
    row_lanes,
    vectorize_inner,
)
from ...cpu.reduction import find_row, partial_sums
from ...generic.schedules import open_schedule
from ...tag import is_injective
from ...utils import dims


def schedule_softmax(outs: te.Tensor | Sequence[te.Tensor]) -> te.Schedule:
    """Schedule softmax or log_softmax, with element-wise operators after it."""
    return schedule_rows(outs, ("softmax_output", "log_softmax_output"))


def schedule_layer_norm(outs: te.Tensor | Sequence[te.Tensor]) -> te.Schedule:
    """Schedule layer norm along the last axis, with element-wise operators after it."""
    return schedule_rows(outs, ("layer_norm",))


def schedule_rows(outs: te.Tensor | Sequence[te.Tensor], anchors: tuple[str, ...]) -> te.Schedule:
    """All stages of an operator that works on rows, computed row by row."""
    s, final, ops = open_schedule(outs)
    anchor = next(op for op in ops if op.tag in anchors)
    info = processor()
    rank = len(anchor.axis)
    axis = _row_axis(anchor)
    if axis != rank - 1 or dims(final.shape) != dims(anchor.output(0).shape):
        _schedule_in_order(s, final, ops)
        return s
    *rows, column = s[final].op.axis
    row = fuse_and_parallel(s, final, rows, element_count(final)) if rows else None
    for op in ops:
        if op is final.op:
            continue
        if is_injective(op.tag) or op is anchor or (not op.reduce_axis and len(op.axis) < rank):
            s[op].compute_inline()
        elif row is not None:
            s[op].compute_at(s[final], row)
    if row is not None:
        _vectorize(s, final, ops, column, row, info)
    return s


def _row_axis(anchor: te.tensor.Operation) -> int:
    return int(anchor.attrs["axis"]) if "axis" in anchor.attrs else len(anchor.axis) - 1


def _vectorize(
    s: te.Schedule,
    final: te.Tensor,
    ops: Sequence[te.tensor.Operation],
    column: tir.IterVar,
    row: tir.IterVar,
    info: CpuInfo,
) -> None:
    columns = dims(final.shape)[-1]
    is_short = isinstance(columns, int) and columns < lanes_of(final.dtype, info)
    lanes = (covering_lanes if is_short else row_lanes)(columns, final.dtype, info)
    if lanes == 1:
        return
    vectorize_inner(s, final, column, lanes)
    for op in ops:
        if op is not final.op and not op.reduce_axis and not s[op].is_inlined:
            vectorize_inner(s, op.output(0), op.axis[-1], lanes)
    for op in ops:
        if not isinstance(op, te.tensor.ComputeOp) or not op.reduce_axis:
            continue
        line, choice = find_row(op, info)
        if line is not None and choice is not None:
            for x in partial_sums(s, op.output(0), line, choice):
                s[x].compute_at(s[final], row)


def _schedule_in_order(
    s: te.Schedule, final: te.Tensor, ops: Sequence[te.tensor.Operation]
) -> None:
    """Softmax along an axis that is not the last: plain loops, the outermost parallel."""
    for op in ops:
        if is_injective(op.tag) and op is not final.op:
            s[op].compute_inline()
            continue
        axes = list(s[op].op.axis)
        if axes:
            fuse_and_parallel(s, op.output(0), axes[:1], element_count(final))
