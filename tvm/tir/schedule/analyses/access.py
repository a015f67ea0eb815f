"""What blocks read and write, found in their bodies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tvm.ir.visitor import Visitor
from tvm.tir.analysis import get_block_access_region
from tvm.tir.block_scope import StmtSRef
from tvm.tir.buffer import Buffer
from tvm.tir.expr import BufferLoad, Var
from tvm.tir.stmt import Block, BufferRegion

from .regions import full_region


def buffers_by_pointer(buffers: Iterable[Buffer]) -> dict[Var, Buffer]:
    """Buffers by the variables of their pointers."""
    return {buffer.data: buffer for buffer in buffers}


class _LoadFinder(Visitor):
    """Finds which of some buffers are loaded from."""

    def __init__(self, buffers: Mapping[Buffer, None]) -> None:
        self.buffers = buffers
        self.found: dict[Buffer, None] = {}

    def visit_buffer_load(self, load: BufferLoad) -> None:
        if load.buffer in self.buffers:
            self.found[load.buffer] = None
        self.visit_children(load)


def undeclared_reads(
    scope: Block, children: Sequence[StmtSRef]
) -> dict[StmtSRef, list[BufferRegion]]:
    """What blocks in a scope load from buffers of it that are written and that no block declares to read.

    How much of a buffer it is isn't known, so all of it.
    """
    blocks = [child.block for child in children]
    declared = dict.fromkeys([region.buffer for block in blocks for region in block.reads])
    written = dict.fromkeys([region.buffer for block in blocks for region in block.writes])
    buffers = dict.fromkeys([b for b in scope.alloc_buffers if b in written and b not in declared])
    found: dict[StmtSRef, list[BufferRegion]] = {}
    for child in children if buffers else ():
        own = dict.fromkeys([region.buffer for region in child.block.writes])
        finder = _LoadFinder(buffers)
        finder.visit(child.block.body)
        if loaded := [full_region(buffer) for buffer in finder.found if buffer not in own]:
            found[child] = loaded
    return found


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
