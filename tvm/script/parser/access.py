"""The regions of buffers that the statements of a block read and write.

for k in range(4):
    B[i] = A[i, k]        ->    reads A[i, 0:4], writes B[i]
"""

from __future__ import annotations

from typing import Any

from tvm.ir.expr import PrimExpr
from tvm.ir.structural import structural_equal
from tvm.ir.visitor import Visitor
from tvm.tir import op
from tvm.tir.buffer import Buffer
from tvm.tir.expr import (
    Add,
    BufferLoad,
    Cast,
    FloorDiv,
    FloorMod,
    IntImm,
    Max,
    Min,
    Mul,
    Ramp,
    Range,
    Sub,
    Var,
    int_imm,
)
from tvm.tir.linear import difference
from tvm.tir.stmt import Block, BlockRealize, BufferRegion, BufferStore, For, LetStmt

Interval = tuple[PrimExpr, PrimExpr]  # the least and the greatest value


def access_regions(block: Block) -> tuple[list[BufferRegion], list[BufferRegion]]:
    """What the block reads and writes, without the buffers that it allocates."""
    finder = _Accesses(block)
    if block.init is not None:
        finder.visit(block.init)
    finder.visit(block.body)
    # what a block writes first it does not read from outside
    writes = finder.regions(finder.writes)
    reads = finder.regions(
        {b: r for b, r in finder.reads.items() if not finder.writes_same(b, r, block)}
    )
    return reads, writes


class _Accesses(Visitor):
    """Collects accesses; variables of loops inside the block are replaced by their ranges."""

    def __init__(self, block: Block) -> None:
        self.local = dict.fromkeys(block.alloc_buffers)
        self.views = {match.buffer: match.source for match in block.match_buffers}
        self.reads: dict[Buffer, list[list[Interval]]] = {}
        self.writes: dict[Buffer, list[list[Interval]]] = {}
        self.domain: dict[Var, Interval] = {}

    def regions(self, accesses: dict[Buffer, list[list[Interval]]]) -> list[BufferRegion]:
        return [
            BufferRegion(buffer, tuple([_range_of(axis) for axis in _union(boxes)]))
            for buffer, boxes in accesses.items()
        ]

    def writes_same(self, buffer: Buffer, boxes: list[list[Interval]], block: Block) -> bool:
        """Whether a reduction reads what it updates, which its initialisation wrote."""
        if block.init is None or buffer not in self.writes:
            return False
        mine, written = _union(boxes), _union(self.writes[buffer])
        return all(structural_equal(a, b) for a, b in zip(mine, written, strict=True))

    def add(self, table: dict[Buffer, list[list[Interval]]], buffer: Buffer, indices: Any) -> None:
        if buffer in self.local:
            return
        if (source := self.views.get(buffer)) is not None:
            box = [(r.min, _last(r)) for r in source.region]
            table.setdefault(source.buffer, []).append(box)
            return
        table.setdefault(buffer, []).append([self.interval(index) for index in indices])

    def visit_for(self, loop: For) -> None:
        self.visit(loop.min)
        self.visit(loop.extent)
        low, high = (
            self.interval(loop.min),
            self.interval(op.subtract(op.add(loop.min, loop.extent), 1)),
        )
        self.domain[loop.loop_var] = (low[0], high[1])
        self.visit(loop.body)

    def visit_let_stmt(self, let: LetStmt) -> None:
        self.visit(let.value)
        self.domain[let.var] = self.interval(let.value)
        self.visit(let.body)

    def visit_buffer_store(self, store: BufferStore) -> None:
        self.visit_children(store)
        self.add(self.writes, store.buffer, store.indices)

    def visit_buffer_load(self, load: BufferLoad) -> None:
        self.visit_children(load)
        self.add(self.reads, load.buffer, load.indices)

    def visit_block_realize(self, realize: BlockRealize) -> None:
        """An inner block's regions, with its variables replaced by their values."""
        block = realize.block
        for value in realize.iter_values:
            self.visit(value)
        for axis, value in zip(block.iter_vars, realize.iter_values, strict=True):
            self.domain[axis.var] = self.interval(value)
        for table, regions in ((self.reads, block.reads), (self.writes, block.writes)):
            for region in regions:
                if region.buffer in self.local:
                    continue
                box = [(self.interval(r.min)[0], self.interval(_last(r))[1]) for r in region.region]
                table.setdefault(region.buffer, []).append(box)

    def interval(self, expr: PrimExpr) -> Interval:
        """The least and greatest value of an index; itself twice if no inner variable is in it."""
        kind = type(expr)
        if kind is IntImm:
            return expr, expr
        if isinstance(expr, Var):
            return self.domain.get(expr, (expr, expr))
        if kind is Ramp:
            base, last = self.interval(expr.base), op.multiply(expr.stride, expr.lanes - 1)  # type: ignore[attr-defined]
            return base[0], op.add(base[1], last)
        if kind in (Add, Sub, Mul, FloorDiv, FloorMod, Min, Max, Cast):
            return self._combined(expr)
        return expr, expr

    def _combined(self, expr: Any) -> Interval:
        kind = type(expr)
        if kind is Cast:
            low, high = self.interval(expr.value)
            return op.cast(low, expr.dtype), op.cast(high, expr.dtype)
        a, b = self.interval(expr.a), self.interval(expr.b)
        if a[0] is a[1] is expr.a and b[0] is b[1] is expr.b:
            return expr, expr
        if kind is Add:
            return op.add(a[0], b[0]), op.add(a[1], b[1])
        if kind is Sub:
            return op.subtract(a[0], b[1]), op.subtract(a[1], b[0])
        if kind is Min:
            return op.minimum(a[0], b[0]), op.minimum(a[1], b[1])
        if kind is Max:
            return op.maximum(a[0], b[0]), op.maximum(a[1], b[1])
        factor = b[0]
        if type(factor) is not IntImm or b[0] is not b[1] or factor.value < 0:
            return expr, expr
        if kind is Mul:
            return op.multiply(a[0], factor), op.multiply(a[1], factor)
        if kind is FloorDiv:
            return op.floordiv(a[0], factor), op.floordiv(a[1], factor)
        return int_imm(expr.dtype, 0), int_imm(expr.dtype, factor.value - 1)


def _last(item: Range) -> PrimExpr:
    return op.subtract(op.add(item.min, item.extent), 1)


def _union(boxes: list[list[Interval]]) -> list[Interval]:
    result = boxes[0]
    for box in boxes[1:]:
        result = [_hull(a, b) for a, b in zip(result, box, strict=True)]
    return result


def _hull(a: Interval, b: Interval) -> Interval:
    if structural_equal(a, b):
        return a
    return op.minimum(a[0], b[0]), op.maximum(a[1], b[1])


def _range_of(interval: Interval) -> Range:
    low, high = interval
    if low is high:
        return Range.from_min_extent(low, int_imm(low.dtype, 1))
    return Range.from_min_extent(low, op.add(difference(high, low), 1))
