"""Computes of several steps that do not fuse: one after another, each in parallel."""

from __future__ import annotations

from collections.abc import Sequence

from tvm import te

from ..generic.schedules import as_outputs
from ..utils import operations_above
from .common import element_count, fuse_and_parallel


def schedule_steps(outs: te.Tensor | Sequence[te.Tensor]) -> te.Schedule:
    """Schedule every step on its own, its outer axes on all threads."""
    outputs = as_outputs(outs)
    s = te.create_schedule([x.op for x in outputs])
    for op in dict.fromkeys([op for x in outputs for op in operations_above(x.op)]):
        if not isinstance(op, te.tensor.ComputeOp):
            continue
        stage = op.output(0)
        if outer := list(s[stage].op.axis)[:-1]:
            fuse_and_parallel(s, stage, outer, element_count(stage))
    return s
