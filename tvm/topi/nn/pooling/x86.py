"""Pooling on x86: outer loops parallel, blocked channels in vectors."""

from __future__ import annotations

from collections.abc import Sequence

from tvm import te

from ...generic.schedules import as_outputs
from ...tag import is_injective
from ...utils import dims, operations_above
from ...x86.common import element_count, fuse_and_parallel, processor, vector_lanes


def schedule_pool(outs: te.Tensor | Sequence[te.Tensor], layout: str = "NCHW") -> te.Schedule:
    """Schedule pooling with its mean and what is fused behind it."""
    output = as_outputs(outs)[0]
    s = te.create_schedule([x.op for x in as_outputs(outs)])
    ops = operations_above(output.op)
    anchor = next(op for op in ops if op.reduce_axis)
    for op in ops:
        if op is not output.op and op is not anchor and is_injective(op.tag):
            s[op].compute_inline()
    pool = anchor.output(0)
    work = element_count(pool)
    for axis in anchor.reduce_axis:
        extent = dims((axis.dom.extent,))[0]
        work *= extent if isinstance(extent, int) else 1
    axes = list(s[output].op.axis)
    if not axes:
        return s
    is_blocked = any(c.islower() for c in layout) or layout[-1] == "C"
    lanes = vector_lanes(dims(output.shape)[-1], output.dtype, processor()) if is_blocked else 1
    fused = fuse_and_parallel(s, output, axes[:-1] or axes, work)
    if output.op is not anchor and len(axes) > 1 and dims(output.shape) == dims(pool.shape):
        s[pool].compute_at(s[output], fused)
        if lanes > 1:
            _, inner = s[output].split(axes[-1], factor=lanes)
            s[output].vectorize(inner)
    if lanes > 1:
        outer, inner = s[pool].split(s[pool].op.axis[-1], factor=lanes)
        s[pool].reorder(outer, *s[pool].op.reduce_axis, inner)
        s[pool].vectorize(inner)
    return s


def schedule_adaptive_pool(outs: te.Tensor | Sequence[te.Tensor]) -> te.Schedule:
    """Schedule adaptive and global pooling; a rank above four tells blocked channels."""
    output = as_outputs(outs)[0]
    return schedule_pool(outs, "NCHWc" if len(output.shape) > 4 else "NCHW")
