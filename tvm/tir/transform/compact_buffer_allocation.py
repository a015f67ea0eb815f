"""Allocate only the part of a buffer that is used inside the block that allocates it.

block():                     ->    block():
    T = alloc_buffer([64])             T = alloc_buffer([4])
    for j in range(4):                 for j in range(4):
        T[i * 4 + j] = ...                 T[j] = ...
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tvm.arith import Analyzer
from tvm.ir.expr import PrimExpr
from tvm.ir.structural import structural_equal
from tvm.tir.buffer import Buffer, allocation_shape
from tvm.tir.expr import BufferLoad, Range, Var
from tvm.tir.function import PrimFunc
from tvm.tir.stmt import Allocate, Block, BufferRegion, BufferStore, Stmt
from tvm.tir.stmt_functor import BufferRewriter
from tvm.tir.transform.block_form import require_no_init, require_opaque
from tvm.tir.transform.common import comes_from_te, is_const, prim_func_pass
from tvm.tir.transform.dim_align import DIM_ALIGN, AlignFinder, Aligns, DimAlign, aligned_strides
from tvm.tir.transform.used_region import used_regions


@dataclass(frozen=True)
class CompactBufferAllocationConfig:
    """What may become of a buffer."""

    is_strict: bool = True  # only shrink; otherwise grow as well, to what guarded accesses reach


class AllocationCompacter(BufferRewriter):
    """Shrinks buffers and shifts the indices of their accesses."""

    def __init__(self, regions: Mapping[Buffer, Sequence[Range]], aligns: Aligns) -> None:
        super().__init__()
        self.starts: dict[Buffer, list[PrimExpr]] = {}
        self.allocated: dict[Var, Buffer] = {}
        self.analyzer = Analyzer()
        for buffer, region in regions.items():
            self._compact(buffer, region, aligns.get(buffer.data, {}))

    def _compact(
        self, buffer: Buffer, region: Sequence[Range], aligns: Mapping[int, DimAlign]
    ) -> None:
        if buffer.strides or buffer.axis_separators or not is_const(buffer.elem_offset, 0):
            return
        shape = tuple([bound.extent for bound in region])
        strides = aligned_strides(shape, aligns) if aligns else ()
        if not strides and structural_equal(shape, tuple(buffer.shape)):
            return
        self._buffers[buffer] = compact = buffer.replace(shape=shape, strides=strides)
        self.allocated[buffer.data] = compact
        self.starts[buffer] = [bound.min for bound in region]

    def visit_block(self, block: Block) -> Stmt:
        require_opaque(block, "CompactBufferAllocation")
        require_no_init(block, "CompactBufferAllocation")
        return super().visit_block(block)

    def visit_allocate(self, alloc: Allocate) -> Stmt:
        compact = self.allocated.get(alloc.buffer_var)
        body = self.visit(alloc.body)
        if compact is None:
            return alloc if body is alloc.body else alloc.replace(body=body)
        kept = {key: value for key, value in alloc.annotations.items() if key != DIM_ALIGN}
        return alloc.replace(extents=allocation_shape(compact), body=body, annotations=kept)

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


@prim_func_pass("tir.CompactBufferAllocation", CompactBufferAllocationConfig)
def compact_buffer_allocation(func: PrimFunc, config: CompactBufferAllocationConfig) -> PrimFunc:
    """Shrink what blocks allocate to what they use."""
    if comes_from_te(func):
        return func
    regions = used_regions(func, config.is_strict)
    finder = AlignFinder()
    finder.visit(func.body)
    return func.with_body(AllocationCompacter(regions, finder.found).visit(func.body))


CompactBufferAllocation = compact_buffer_allocation.factory
