"""What a block reads and writes, found anew after its body changed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tvm.tir.analysis import get_block_access_region
from tvm.tir.buffer import Buffer
from tvm.tir.expr import Var
from tvm.tir.stmt import Block, BufferRegion


def buffers_by_pointer(buffers: Iterable[Buffer]) -> dict[Var, Buffer]:
    """Buffers by the variables of their pointers."""
    return {buffer.data: buffer for buffer in buffers}


def with_regions(block: Block, buffers: dict[Var, Buffer]) -> Block:
    """The block with the regions that its statements access; a reduction does not read its result."""
    known = {**buffers, **buffers_by_pointer([m.source.buffer for m in block.match_buffers])}
    for region in (*block.reads, *block.writes):
        known.setdefault(region.buffer.data, region.buffer)
    reads, writes, opaque = get_block_access_region(block, known)
    if block.init is not None:
        written = dict.fromkeys([region.buffer for region in writes])
        reads = [region for region in reads if region.buffer not in written]
    hidden = {region.buffer: region for region in opaque}
    return block.replace(
        reads=_merged(reads, block.reads, hidden), writes=_merged(writes, block.writes, hidden)
    )


def _merged(
    found: Sequence[BufferRegion],
    declared: Sequence[BufferRegion],
    hidden: dict[Buffer, BufferRegion],
) -> tuple[BufferRegion, ...]:
    """Regions that were found; what is accessed by pointers keeps the declared region."""
    kept = [region for region in declared if region.buffer in hidden]
    return (*[region for region in found if region.buffer not in hidden], *kept)
