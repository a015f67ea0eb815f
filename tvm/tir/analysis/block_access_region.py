"""Which parts of which buffers a block reads and writes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tvm.arith import Analyzer, IntervalSet, neg_inf, pos_inf
from tvm.ir.expr import PrimExpr
from tvm.ir.visitor import Visitor
from tvm.tir import op
from tvm.tir.buffer import Buffer
from tvm.tir.expr import BufferLoad, Call, IntImm, Range, Var, const
from tvm.tir.stmt import Block, BlockRealize, BufferRegion, BufferStore, For, LetStmt
from tvm.tir.stmt_functor import substitute


def get_block_access_region(
    block: Block, buffer_var_map: Mapping[Var, Buffer]
) -> list[list[BufferRegion]]:
    """What a block reads, what it writes, and what it accesses in ways that cannot be told apart.

    Parameters
    ----------
    block : Block
        The block; its iteration variables appear in the regions.
    buffer_var_map : dict of Var to Buffer
        The buffers outside the block, by their pointers.
    """
    finder = AccessFinder(buffer_var_map)
    for match in block.match_buffers:
        finder.views[match.buffer] = match.source
    if block.init is not None:
        finder.visit(block.init)
    finder.visit(block.body)
    return [finder.regions(finder.reads), finder.regions(finder.writes), finder.whole()]


def get_block_read_write_region(
    block: Block, buffer_var_map: Mapping[Var, Buffer]
) -> list[list[BufferRegion]]:
    """What a block reads and what it writes; opaque accesses count as both, of the whole buffer."""
    reads, writes, opaque = get_block_access_region(block, buffer_var_map)
    return [merged(reads, opaque), merged(writes, opaque)]


def merged(regions: list[BufferRegion], opaque: list[BufferRegion]) -> list[BufferRegion]:
    """The regions, with opaque ones in the place of those of the same buffer."""
    hidden = {region.buffer: None for region in opaque}
    return [region for region in regions if region.buffer not in hidden] + opaque


class AccessFinder(Visitor):
    """Collects the indices of accesses, relaxed over the loops inside the block."""

    def __init__(self, buffers: Mapping[Var, Buffer]) -> None:
        self.buffers = buffers
        self.views: dict[Buffer, BufferRegion] = {}
        self.reads: dict[Buffer, list[list[IntervalSet]]] = {}
        self.writes: dict[Buffer, list[list[IntervalSet]]] = {}
        self.opaque: dict[Buffer, None] = {}
        self.domains: dict[Var, IntervalSet] = {}
        self.lets: dict[Var, PrimExpr] = {}
        self.analyzer = Analyzer()

    def visit_for(self, loop: For) -> None:
        last = loop.min + loop.extent - 1
        self.domains[loop.loop_var] = IntervalSet(loop.min, last)
        self.analyzer.bind(loop.loop_var, Range.from_min_extent(loop.min, loop.extent), True)
        self.visit(loop.body)
        del self.domains[loop.loop_var]

    def visit_let_stmt(self, let: LetStmt) -> None:
        self.visit(let.value)
        self.lets[let.var] = let.value
        self.visit(let.body)

    def visit_block_realize(self, realize: BlockRealize) -> None:
        block = realize.block
        values = {
            axis.var: value
            for axis, value in zip(block.iter_vars, realize.iter_values, strict=True)
        }
        inside = dict.fromkeys(block.alloc_buffers)
        for found, regions in ((self.reads, block.reads), (self.writes, block.writes)):
            for region in regions:
                if region.buffer not in inside:
                    moved = [substitute(r, values) for r in region.region]
                    self._note(found, region.buffer, moved)

    def visit_buffer_load(self, load: BufferLoad) -> None:
        self._note(self.reads, load.buffer, load.indices)
        self.visit_children(load)

    def visit_buffer_store(self, store: BufferStore) -> None:
        self._note(self.writes, store.buffer, store.indices)
        self.visit_children(store)

    def visit_var(self, var: Var) -> None:
        if var in self.buffers:
            self.opaque[self.buffers[var]] = None

    def _note(
        self, found: dict[Buffer, list[list[IntervalSet]]], buffer: Buffer, indices: Any
    ) -> None:
        if buffer in self.views:
            source = self.views[buffer]
            buffer, indices = source.buffer, source.region
        if self.buffers.get(buffer.data) is not buffer:
            return
        found.setdefault(buffer, []).append([self._relaxed(index) for index in indices])

    def _relaxed(self, index: Any) -> IntervalSet:
        if isinstance(index, Range):
            low = self._relaxed(index.min)
            if type(index.extent) is IntImm and index.extent.value == 1:
                return low
            high = self._relaxed(index.min + index.extent - 1)
            return IntervalSet(low.min_value, high.max_value)
        if self.lets:
            index = substitute(index, self.lets)
        contents = _IndexContents(index)
        if contents.is_opaque:
            return IntervalSet(neg_inf(), pos_inf())
        if not any([var in self.domains for var in contents.variables]):
            return IntervalSet(index, index)  # as it was written
        found = self.analyzer.int_set(index, self.domains)
        return IntervalSet(found.min_value, found.max_value)

    def regions(self, accesses: dict[Buffer, list[list[IntervalSet]]]) -> list[BufferRegion]:
        """The box around the accesses of each buffer, within its bounds."""
        return [
            BufferRegion(
                buffer,
                tuple([self._hull(buffer, axis, boxes) for axis in range(len(buffer.shape))]),
            )
            for buffer, boxes in accesses.items()
            if buffer not in self.opaque
        ]

    def _hull(self, buffer: Buffer, axis: int, boxes: list[list[IntervalSet]]) -> Range:
        sides = [box[axis] for box in boxes]
        if not all([is_finite(side) for side in sides]):
            extent = buffer.shape[axis]
            return Range.from_min_extent(const(0, extent.dtype), extent)
        low, high = sides[0].min_value, sides[0].max_value
        if len(sides) == 1 and low is high:
            return Range.from_min_extent(low, 1)
        for side in sides[1:]:
            low = self.analyzer.simplify(op.minimum(low, side.min_value))
            high = self.analyzer.simplify(op.maximum(high, side.max_value))
        return Range.from_min_extent(
            self.analyzer.simplify(low), self.analyzer.simplify(high + 1 - low)
        )

    def whole(self) -> list[BufferRegion]:
        """All of each buffer that is accessed through its pointer."""
        return [
            BufferRegion(buffer, tuple([Range(extent) for extent in buffer.shape]))
            for buffer in self.opaque
        ]


class _IndexContents(Visitor):
    """What an index is made of: variables, and memory and calls, of which intervals say nothing."""

    def __init__(self, index: PrimExpr) -> None:
        self.variables: list[Var] = []
        self.is_opaque = False
        self.visit(index)

    def visit_var(self, var: Var) -> None:
        self.variables.append(var)

    def visit_call(self, call: Call) -> None:
        self.is_opaque = True

    def visit_buffer_load(self, load: BufferLoad) -> None:
        self.is_opaque = True


def is_finite(side: IntervalSet) -> bool:
    """Whether both ends of an interval are known."""
    return side.min_value is not neg_inf() and side.max_value is not pos_inf()
