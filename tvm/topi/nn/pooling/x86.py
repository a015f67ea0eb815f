"""Pooling on x86: outer loops parallel, blocked channels in vectors."""

from __future__ import annotations

from collections.abc import Sequence

from tvm import te

from ...generic.schedules import as_outputs
from ...tag import is_injective
from ...utils import dims, operations_above
from ...x86.common import (
    element_count,
    fuse_and_parallel,
    masked_lanes,
    processor,
    vector_lanes,
    vectorize_inner,
)


def schedule_pool(outs: te.Tensor | Sequence[te.Tensor], layout: str = "NCHW") -> te.Schedule:
    """Schedule pooling with its mean and what is fused behind it."""
    output = as_outputs(outs)[0]
    s = te.create_schedule([x.op for x in as_outputs(outs)])
    ops = operations_above(output.op)
    anchor = next(op for op in ops if op.reduce_axis)
    pool = anchor.output(0)
    axes = list(s[output].op.axis)
    if not axes:
        return s
    is_blocked = any(c.islower() for c in layout) or layout[-1] == "C"
    is_whole = len(axes) > 1 and dims(output.shape) == dims(pool.shape)
    by_rows = is_whole and not is_blocked and anchor.tag in ("pool_max", "pool_sum")
    columns = _lanes_along_rows(anchor) if by_rows else 1
    kept = (anchor, output.op, *([anchor.input_tensors[0].op] if columns > 1 else []))
    for op in ops:
        if op not in kept and is_injective(op.tag):
            s[op].compute_inline()
    work = element_count(pool)
    for axis in anchor.reduce_axis:
        extent = dims((axis.dom.extent,))[0]
        work *= extent if isinstance(extent, int) else 1
    if columns > 1:
        _schedule_rows(s, output, anchor, columns, work)
        return s
    lanes = vector_lanes(dims(output.shape)[-1], output.dtype, processor()) if is_blocked else 1
    fused = fuse_and_parallel(s, output, axes[:-1] or axes, work)
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


def _lanes_along_rows(anchor: te.tensor.Operation) -> int:
    """Places of a row whose windows lie apart in a vector; 1 where LLVM finds neighbours itself."""
    pool, source = anchor.output(0), anchor.input_tensors[0]
    width, have = dims(pool.shape)[-1], dims(source.shape)[-1]
    if not isinstance(width, int) or not isinstance(have, int) or have < 2 * width - 1:
        return 1
    return vector_lanes(width, pool.dtype, processor())


def _schedule_rows(
    s: te.Schedule, output: te.Tensor, anchor: te.tensor.Operation, lanes: int, work: int
) -> None:
    """A row at a time: its windows with their border first, then neighbours in vectors."""
    pool, source = anchor.output(0), anchor.input_tensors[0]
    acc = s.cache_write(pool, "local") if output.op is anchor else pool
    s[acc].set_scope("local")
    final = s.outputs[0].output(0) if output.op is anchor else output
    *rows, column = s[final].op.axis
    vectors, lane = s[final].split(column, factor=lanes)
    row = fuse_and_parallel(s, final, rows, work)
    s[final].vectorize(lane)
    s[acc].compute_at(s[final], vectors)
    *_, lane = s[acc].op.axis
    s[acc].reorder(*s[acc].op.reduce_axis, lane)
    s[acc].vectorize(lane)
    if not isinstance(source.op, te.PlaceholderOp):
        s[source].compute_at(s[final], row)
        wide = masked_lanes(dims(source.shape)[-1], source.dtype, processor())
        vectorize_inner(s, source, s[source].op.axis[-1], wide)


def schedule_adaptive_pool(outs: te.Tensor | Sequence[te.Tensor]) -> te.Schedule:
    """Schedule adaptive and global pooling; a rank above four tells blocked channels."""
    output = as_outputs(outs)[0]
    return schedule_pool(outs, "NCHWc" if len(output.shape) > 4 else "NCHW")
