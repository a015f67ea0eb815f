"""Allocate only the part of a buffer that is used inside the block that allocates it.

block():                     ->    block():
    T = alloc_buffer([64])             T = alloc_buffer([4])
    for j in range(4):                 for j in range(4):
        T[i * 4 + j] = ...                 T[j] = ...
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tvm.arith import Analyzer
from tvm.ir.expr import PrimExpr
from tvm.tir.analysis.block_access_region import AccessFinder
from tvm.tir.buffer import Buffer
from tvm.tir.expr import BufferLoad, IntImm, Range
from tvm.tir.function import PrimFunc
from tvm.tir.stmt import Block, BufferRegion, BufferStore, Stmt
from tvm.tir.stmt_functor import BufferRewriter
from tvm.tir.transform.common import comes_from_te, is_const, prim_func_pass


@dataclass(frozen=True)
class CompactBufferAllocationConfig:
    """What may become of a buffer."""

    is_strict: bool = True  # only shrink; otherwise grow as well, to what guarded accesses reach


class AllocationCompacter(BufferRewriter):
    """Shrinks buffers and shifts the indices of their accesses."""

    def __init__(self, config: CompactBufferAllocationConfig) -> None:
        super().__init__()
        self.config = config
        self.starts: dict[Buffer, list[PrimExpr]] = {}
        self.analyzer = Analyzer()

    def visit_block(self, block: Block) -> Stmt:
        for buffer, region in used_regions(block).items():
            self._compact(buffer, region)
        return super().visit_block(block)

    def _compact(self, buffer: Buffer, region: Sequence[Range]) -> None:
        if buffer.strides or buffer.axis_separators or not is_const(buffer.elem_offset, 0):
            return
        starts: list[PrimExpr] = []
        shape: list[PrimExpr] = []
        for whole, used in zip(buffer.shape, region, strict=True):
            fits = self._is_better(used.extent, whole)
            starts.append(used.min if fits else IntImm(whole.dtype, 0))
            shape.append(used.extent if fits else whole)
        if any([a is not b for a, b in zip(shape, buffer.shape, strict=True)]):
            self._buffers[buffer] = buffer.replace(shape=tuple(shape))
            self.starts[buffer] = starts

    def _is_better(self, used: PrimExpr, whole: PrimExpr) -> bool:
        if not isinstance(used, IntImm) or not isinstance(whole, IntImm):
            return False
        grows = used.value > whole.value and not self.config.is_strict
        return 0 < used.value < whole.value or grows

    def visit_buffer_load(self, load: BufferLoad) -> PrimExpr:
        starts = self.starts.get(load.buffer)
        if starts is None:
            return super().visit_buffer_load(load)
        indices = [self.visit(index) for index in load.indices]
        return BufferLoad(
            self.buffer(load.buffer), tuple(self._shifted(indices, starts)), load.predicate
        )

    def visit_buffer_store(self, node: BufferStore) -> Stmt:
        starts = self.starts.get(node.buffer)
        if starts is None:
            return super().visit_buffer_store(node)
        value = self.visit(node.value)
        indices = [self.visit(index) for index in node.indices]
        return BufferStore(
            self.buffer(node.buffer), value, self._shifted(indices, starts), node.predicate
        )

    def visit_buffer_region(self, node: BufferRegion) -> BufferRegion:
        starts = self.starts.get(node.buffer)
        if starts is None:
            return super().visit_buffer_region(node)
        ranges = [self.visit(r) for r in node.region]
        mins = self._shifted([r.min for r in ranges], starts)
        moved = [Range.from_min_extent(m, r.extent) for m, r in zip(mins, ranges, strict=True)]
        return BufferRegion(self.buffer(node.buffer), tuple(moved))

    def _shifted(self, indices: Sequence[PrimExpr], starts: Sequence[PrimExpr]) -> list[PrimExpr]:
        return [
            index if is_const(start, 0) else self.analyzer.simplify(index - start)
            for index, start in zip(indices, starts, strict=True)
        ]


def used_regions(block: Block) -> dict[Buffer, Sequence[Range]]:
    """The box around all accesses of each buffer that a block allocates; those used through their pointer
    are left out."""
    if not block.alloc_buffers:
        return {}
    finder = AccessFinder({buffer.data: buffer for buffer in block.alloc_buffers})
    finder.visit(block.body)
    accesses = {buffer: list(boxes) for buffer, boxes in finder.reads.items()}
    for buffer, boxes in finder.writes.items():
        accesses.setdefault(buffer, []).extend(boxes)
    return {region.buffer: region.region for region in finder.regions(accesses)}


@prim_func_pass("tir.CompactBufferAllocation", CompactBufferAllocationConfig)
def compact_buffer_allocation(func: PrimFunc, config: CompactBufferAllocationConfig) -> PrimFunc:
    """Shrink what blocks allocate to what they use."""
    if comes_from_te(func):
        return func
    return func.with_body(AllocationCompacter(config).visit(func.body))


CompactBufferAllocation = compact_buffer_allocation.factory
