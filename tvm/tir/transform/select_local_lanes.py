"""Replace masks on vectors of registers by choices.

    acc.vstore([ramp], acc.vload([ramp], mask) + x, mask)   ->   acc[ramp] = select(mask, acc[ramp] + x, acc[ramp])

A masked access keeps its buffer in memory, where a store under a mask is slow to read again. Cells of local
buffers belong to one thread, so those of hidden lanes may be written with what they hold; a buffer that ends
within a vector is made longer.
"""

from __future__ import annotations

from collections.abc import Mapping

from tvm.arith import Analyzer
from tvm.ir.expr import PrimExpr
from tvm.ir.structural import structural_equal
from tvm.ir.visitor import Visitor
from tvm.tir.buffer import Buffer
from tvm.tir.expr import (
    BinaryOpExpr,
    Broadcast,
    BufferLoad,
    IntImm,
    Ramp,
    Range,
    Select,
    Var,
    const,
)
from tvm.tir.function import PrimFunc
from tvm.tir.stmt import Allocate, BufferStore, For, Stmt
from tvm.tir.stmt_functor import BufferRewriter
from tvm.tir.transform.common import is_const, prim_func_pass


class LaneFinder(Visitor):
    """How far masked vectors reach in local buffers; None where that is not known."""

    def __init__(self) -> None:
        self.reach: dict[Var, int | None] = {}
        self.loops: list[For] = []

    def visit_for(self, loop: For) -> None:
        self.loops.append(loop)
        self.visit_children(loop)
        self.loops.pop()

    def visit_buffer_store(self, store: BufferStore) -> None:
        self.visit_children(store)
        self._note(store)

    def visit_buffer_load(self, load: BufferLoad) -> None:
        self.visit_children(load)
        self._note(load)

    def _note(self, access: BufferStore | BufferLoad) -> None:
        buffer = access.buffer
        if access.predicate is None or buffer.scope() != "local":
            return
        known = self.reach.setdefault(buffer.data, 0)
        end = self._end(buffer, access.indices)
        self.reach[buffer.data] = None if known is None or end is None else max(known, end)

    def _end(self, buffer: Buffer, indices: tuple[PrimExpr, ...]) -> int | None:
        """The cell behind the last lane."""
        index = indices[0]
        if len(indices) != 1 or buffer.dtype.lanes > 1 or type(index) is not Ramp:
            return None
        analyzer = Analyzer()
        for loop in self.loops:
            analyzer.bind(loop.loop_var, Range(loop.min, loop.min + loop.extent))
        bound = analyzer.const_int_bound(index.base)
        if not is_const(index.stride, 1) or bound.min_value < 0:
            return None
        return int(bound.max_value) + index.lanes


class LaneSelector(BufferRewriter):
    """Lengthens the buffers that masked vectors leave, and chooses where they masked."""

    def __init__(self, reach: Mapping[Var, int]) -> None:
        super().__init__()
        self.reach = reach

    def visit_allocate(self, allocate: Allocate) -> Stmt:
        allocate = self.rewrite_children(allocate)
        size = self._size(allocate.buffer_var, allocate.extents)
        return allocate if size is None else allocate.replace(extents=size)

    def map_buffer(self, buffer: Buffer) -> Buffer:
        size = self._size(buffer.data, buffer.shape)
        return super().map_buffer(buffer) if size is None else buffer.replace(shape=size)

    def _size(self, data: Var, shape: tuple[PrimExpr, ...]) -> tuple[PrimExpr] | None:
        """The longer shape of a buffer that ends too early."""
        reach, old = self.reach.get(data), shape[0] if len(shape) == 1 else None
        if reach is None or not isinstance(old, IntImm) or old.value >= reach:
            return None
        return (const(reach, old.dtype),)

    def visit_buffer_store(self, node: BufferStore) -> Stmt:
        new = super().visit_buffer_store(node)
        assert isinstance(new, BufferStore)
        mask = new.predicate
        if mask is None:
            return new
        value = chosen(new.value, mask)
        if new.buffer.data not in self.reach:
            return new if value is new.value else new.replace(value=value)
        if not is_all(mask):
            value = Select(mask, value, BufferLoad(new.buffer, new.indices))
        return new.replace(value=value, predicate=None)

    def visit_buffer_load(self, load: BufferLoad) -> PrimExpr:
        new = super().visit_buffer_load(load)
        assert isinstance(new, BufferLoad)
        mask = new.predicate
        if mask is None or new.buffer.data not in self.reach:
            return new
        whole = new.replace(predicate=None)
        zeros = Broadcast(const(0, new.dtype.element), new.dtype.lanes)
        return whole if is_all(mask) else Select(mask, whole, zeros)


def chosen(e: PrimExpr, mask: PrimExpr) -> PrimExpr:
    """A value for those lanes alone that the mask shows."""
    if isinstance(e, Select) and structural_equal(e.condition, mask):
        return e.true_value
    if not isinstance(e, BinaryOpExpr):
        return e
    a, b = chosen(e.a, mask), chosen(e.b, mask)
    return e if a is e.a and b is e.b else e.replace(a=a, b=b)


def is_all(mask: PrimExpr) -> bool:
    """Whether a mask hides no lane."""
    return type(mask) is Broadcast and is_const(mask.value, 1)


@prim_func_pass("tir.SelectLocalLanes")
def select_local_lanes(func: PrimFunc) -> PrimFunc:
    """Replace masks on vectors of local buffers by choices."""
    finder = LaneFinder()
    finder.visit(func.body)
    reach = {data: end for data, end in finder.reach.items() if end is not None}
    return func.with_body(LaneSelector(reach).visit(func.body)) if reach else func


SelectLocalLanes = select_local_lanes.factory
