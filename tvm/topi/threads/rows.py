"""Long sums for few elements: all threads of a block sum parts of a row, and combine them.

B[i] = sum(A[i, k], k)    ->    blockIdx.x is i, threadIdx.x takes every 64th k
"""

from __future__ import annotations

from tvm import te

from .device import GpuInfo
from .reads import Reads, extent_of

SHORTEST = 64
MOST_THREADS = 256
# combining the threads' parts costs as much as some elements
FEW_ROWS = 1 << 14


def is_row_reduction(reads: Reads) -> bool:
    """Whether a block for each result pays: rows are long, few, and read in order by its threads."""
    length = 1
    for extent in reads.reduced:
        length *= extent
    rows = reads.work // max(length, 1)
    if length < SHORTEST or rows > FEW_ROWS or not reads.reads:
        return False
    last = len(reads.extents) - 1
    largest = max(reads.reads, key=lambda read: read.footprint(reads.extents))
    is_read_once = reads.work < 4 * largest.footprint(reads.extents)
    return is_read_once and largest.is_innermost(last)


def schedule_rows(
    s: te.Schedule, op: te.tensor.ComputeOp, last: te.tensor.ComputeOp, info: GpuInfo
) -> None:
    """Give each result of the reduction a block.

    What follows is little, and done by all of its threads alike.
    """
    result = op.output(0)
    axes = list(s[result].op.reduce_axis)
    length = 1
    for axis in axes:
        length *= extent_of(axis)
    threads = 32
    while threads < min(MOST_THREADS, info.max_threads) and threads * 4 <= length:
        threads *= 2
    fused = axes[0] if len(axes) == 1 else s[result].fuse(*axes)
    _, inner = s[result].split(fused, factor=threads)
    part = s.rfactor(result, inner)
    thread = te.thread_axis((0, threads), "threadIdx.x")
    place = result if op is last else last.output(0)
    spatial = list(s[place].op.axis)
    if spatial:
        block = s[place].fuse(*spatial)
        if op is not last:
            s[result].set_scope("shared")
            s[result].compute_at(s[place], block)
        s[place].bind(block, te.thread_axis("blockIdx.x"))
    s[result].bind(s[result].op.reduce_axis[0], thread)
    s[part].compute_at(s[result], s[result].op.reduce_axis[0])
    s[result].set_store_predicate(thread.var.equal(0))
