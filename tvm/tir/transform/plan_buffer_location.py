"""Allocate each buffer in the innermost loop or block around its uses.

block("root"):               ->    for i in range(16):
    T = alloc_buffer([16])             block():
    for i in range(16):                    T = alloc_buffer([16])
        T[i] = A[i]                        T[i] = A[i]
        B[i] = T[i]                        B[i] = T[i]
"""

from __future__ import annotations

from collections.abc import Sequence

from tvm.ir.visitor import Rewriter
from tvm.tir.analysis.block_access_region import get_block_read_write_region
from tvm.tir.analysis.buffer_access_lca import ancestors
from tvm.tir.buffer import Buffer
from tvm.tir.expr import IntImm
from tvm.tir.function import PrimFunc
from tvm.tir.stmt import Block, BlockRealize, For, Stmt
from tvm.tir.transform.common import TRUE, comes_from_te, prim_func_pass


class AllocationPlacer(Rewriter):
    """Takes buffers out of the blocks that allocate them and puts them where they are used."""

    def __init__(
        self,
        places: dict[int, list[Buffer]],
        moving: dict[Buffer, None],
        known: Sequence[Buffer],
    ) -> None:
        self.places = places  # by the identity of a loop or block
        self.moving = moving
        self.known = known
        self.placed: list[Buffer] = []  # so far, inner ones first

    def visit_block(self, block: Block) -> Stmt:
        before = len(self.placed)
        new = self.rewrite_children(block)
        self.placed += self.places.get(id(block), ())
        if inside := dict.fromkeys(self.placed[before:]):
            # what is allocated inside is no region of the block
            reads, writes = [
                tuple([region for region in regions if region.buffer not in inside])
                for regions in (new.reads, new.writes)
            ]
            new = new.replace(reads=reads, writes=writes)
        kept = [buffer for buffer in block.alloc_buffers if buffer not in self.moving]
        buffers = (*kept, *self.places.get(id(block), ()))
        if len(buffers) == len(block.alloc_buffers) == len(kept):
            return new
        return new.replace(alloc_buffers=buffers)

    def visit_for(self, loop: For) -> Stmt:
        new = self.rewrite_children(loop)
        buffers = self.places.get(id(loop))
        if buffers is None:
            return new
        self.placed += buffers
        block = Block((), (), (), "", new.body, alloc_buffers=buffers)
        outside = {buffer.data: buffer for buffer in self.known if buffer not in buffers}
        reads, writes = get_block_read_write_region(block, outside)
        block = block.replace(reads=tuple(reads), writes=tuple(writes))
        return new.replace(body=BlockRealize((), TRUE, block))


@prim_func_pass("tir.PlanAndUpdateBufferAllocationLocation")
def plan_buffer_location(func: PrimFunc) -> PrimFunc:
    """Move allocations of blocks inwards."""
    if comes_from_te(func):
        return func
    arguments = dict.fromkeys(func.buffer_map.values())
    allocating = AllocationFinder()
    allocating.visit(func.body)
    places: dict[int, list[Buffer]] = {}
    moving: dict[Buffer, None] = {}
    for buffer, place in ancestors(func, keeps_sums=True).items():
        owner = allocating.owners.get(buffer)
        if buffer in arguments or owner is None or place is None or place is owner:
            continue
        if isinstance(place, (For, Block)) and all([isinstance(e, IntImm) for e in buffer.shape]):
            places.setdefault(id(place), []).append(buffer)
            moving[buffer] = None
    if not moving:
        return func
    known = [*arguments, *allocating.owners]
    return func.with_body(AllocationPlacer(places, moving, known).visit(func.body))


class AllocationFinder(Rewriter):
    """Remembers which block allocates a buffer."""

    def __init__(self) -> None:
        self.owners: dict[Buffer, Block] = {}

    def visit_block(self, block: Block) -> Stmt:
        for buffer in block.alloc_buffers:
            self.owners[buffer] = block
        return self.rewrite_children(block)


PlanAndUpdateBufferAllocationLocation = plan_buffer_location.factory
