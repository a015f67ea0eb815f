"""One element of an output for each thread.

for i, j in grid(n, m): B[i, j] = ...    ->    blockIdx.x * 256 + threadIdx.x is i * m + j
"""

from __future__ import annotations

from collections.abc import Sequence

from tvm import te, tir

from ..generic.schedules import as_outputs, inline_injective
from .device import GpuInfo, current_device

USUAL_THREADS = 256


def bind_elements(s: te.Schedule, out: te.Tensor, info: GpuInfo) -> tir.IterVar | None:
    """Bind all axes of a stage; the axis of threads, or None for a stage without axes."""
    axes = list(s[out].op.axis)
    if not axes:
        return None
    fused = s[out].fuse(*axes)
    block, thread = s[out].split(fused, factor=_threads(out, info))
    s[out].bind(block, te.thread_axis("blockIdx.x"))
    s[out].bind(thread, te.thread_axis("threadIdx.x"))
    found: tir.IterVar = thread
    return found


def _threads(out: te.Tensor, info: GpuInfo) -> int:
    """Threads of a block: fewer where there are few elements, so that more processors have some."""
    most = min(USUAL_THREADS, info.max_threads)
    count = 1
    for dim in out.shape:
        if not isinstance(dim, tir.IntImm):
            return most
        count *= int(dim)
    threads = min(32, most)
    while threads < most and count > threads * info.processors:
        threads *= 2
    return threads


def schedule_injective_from_existing(sch: te.Schedule, out: te.Tensor) -> te.Schedule:
    """Bind the axes of an output of a schedule that is under way."""
    bind_elements(sch, out, current_device())
    return sch


def schedule_injective(outs: te.Tensor | Sequence[te.Tensor]) -> te.Schedule:
    """Inline all above the outputs, and give each thread one of their elements."""
    outputs = as_outputs(outs)
    s = te.create_schedule([x.op for x in outputs])
    inline_injective(s, outputs)
    for out in outputs:
        if isinstance(out.op, te.tensor.ComputeOp):
            bind_elements(s, out, current_device())
    return s
