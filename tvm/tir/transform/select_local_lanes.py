"""Take the masks from vectors of registers.

    acc.vstore([ramp], acc.vload([ramp], mask) + x, mask)   ->   acc[ramp] = acc[ramp] + x

A masked access keeps its buffer in memory, where a store under a mask is slow to read again. Cells of local
buffers belong to one thread, so those of hidden lanes may be written: with anything, where no access shows
them, or with what they hold. A buffer that ends within a vector is made longer; one of unknown size keeps
its masks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

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
from tvm.tir.stmt_functor import BufferRewriter, free_vars
from tvm.tir.transform.common import is_const, prim_func_pass


@dataclass
class Lanes:
    """How masked vectors use a local buffer."""

    reach: int = 0  # the cell behind their last lane
    is_bounded: bool = True
    is_seen: bool = False  # whether hidden lanes may be read
    width: int = 0
    masks: dict[int, PrimExpr | None] = field(default_factory=dict)  # of accesses, by their place

    def note(self, place: int, width: int, mask: PrimExpr | None) -> None:
        """An access at a known place: hidden lanes stay so if all accesses there hide the same."""
        self.width = self.width or width
        self.is_seen |= width != self.width or place % width != 0
        known = self.masks.setdefault(place, mask)
        self.is_seen |= (mask is None) != (known is None)
        if mask is not None and known is not None:
            self.is_seen |= not structural_equal(mask, known)


class LaneFinder(Visitor):
    """How the masked vectors of local buffers lie."""

    def __init__(self) -> None:
        self.found: dict[Var, Lanes] = {}
        self.loops: list[For] = []
        self.outside: dict[Var, int] = {}  # loops around a buffer's allocation
        self.is_constant: dict[Var, bool] = {}  # whether a buffer can be made longer

    def visit_allocate(self, allocate: Allocate) -> None:
        self.outside[allocate.buffer_var] = len(self.loops)
        is_flat = len(allocate.extents) == 1
        self.is_constant[allocate.buffer_var] = is_flat and allocate.constant_size() is not None
        self.visit(allocate.body)

    def visit_for(self, loop: For) -> None:
        self.loops.append(loop)
        self.visit_children(loop)
        self.loops.pop()

    def visit_var(self, var: Var) -> None:
        """A pointer that is passed on shows all lanes."""
        if var in self.outside:
            self.found.setdefault(var, Lanes()).is_seen = True

    def visit_buffer_store(self, store: BufferStore) -> None:
        self.visit_children(store)
        self._note(store, store.value.dtype.lanes)

    def visit_buffer_load(self, load: BufferLoad) -> None:
        self.visit_children(load)
        self._note(load, load.dtype.lanes)

    def _note(self, access: BufferStore | BufferLoad, count: int) -> None:
        buffer, mask = access.buffer, access.predicate
        if buffer.scope() != "local":
            return
        lanes = self.found.setdefault(buffer.data, Lanes())
        index = access.indices[0]
        is_vector = len(access.indices) == 1 and buffer.dtype.lanes == 1
        is_vector = is_vector and (mask is not None or count > 1)
        is_chosen = mask is None or self.is_constant.get(buffer.data, False)
        bound = self._bound(index) if is_vector and is_chosen else None
        if bound is None:
            lanes.is_seen = True
            lanes.is_bounded &= mask is None
            return
        first, last = bound
        if mask is not None:
            lanes.reach = max(lanes.reach, last + count)
            lanes.is_seen |= self._changes(mask, buffer.data)
        lanes.is_seen |= first != last
        lanes.note(first, count, mask)

    def _bound(self, index: PrimExpr) -> tuple[int, int] | None:
        """The first and the last place of a vector of neighbours."""
        if type(index) is not Ramp or not is_const(index.stride, 1):
            return None
        if type(index.base) is IntImm:
            return index.base.value, index.base.value
        analyzer = Analyzer()
        for loop in self.loops:
            analyzer.bind(loop.loop_var, Range(loop.min, loop.min + loop.extent))
        bound = analyzer.const_int_bound(index.base)
        if bound.min_value < 0 or bound.max_value == bound.POS_INF:
            return None
        return int(bound.min_value), int(bound.max_value)

    def _changes(self, mask: PrimExpr, data: Var) -> bool:
        """Whether a mask may differ from one access of a buffer to the next."""
        inside = [loop.loop_var for loop in self.loops[self.outside.get(data, 0) :]]
        return any([var in inside for var in free_vars(mask)])


class LaneSelector(BufferRewriter):
    """Lengthens the buffers that masked vectors leave, and chooses where they masked."""

    def __init__(self, found: Mapping[Var, Lanes]) -> None:
        super().__init__()
        self.found = found

    def visit_allocate(self, allocate: Allocate) -> Stmt:
        allocate = self.rewrite_children(allocate)
        size = self._size(allocate.buffer_var, allocate.extents)
        return allocate if size is None else allocate.replace(extents=size)

    def map_buffer(self, buffer: Buffer) -> Buffer:
        size = self._size(buffer.data, buffer.shape)
        return super().map_buffer(buffer) if size is None else buffer.replace(shape=size)

    def _size(self, data: Var, shape: tuple[PrimExpr, ...]) -> tuple[PrimExpr] | None:
        """The longer shape of a buffer that ends too early."""
        lanes, old = self.found.get(data), shape[0] if len(shape) == 1 else None
        if lanes is None or not isinstance(old, IntImm) or old.value >= lanes.reach:
            return None
        return (const(lanes.reach, old.dtype),)

    def visit_buffer_store(self, node: BufferStore) -> Stmt:
        new = super().visit_buffer_store(node)
        assert isinstance(new, BufferStore)
        mask, lanes = new.predicate, self.found.get(new.buffer.data)
        if mask is None:
            return new
        value = chosen(new.value, mask)
        if lanes is None:
            return new if value is new.value else new.replace(value=value)
        if lanes.is_seen and not is_all(mask):
            value = Select(mask, value, BufferLoad(new.buffer, new.indices))
        return new.replace(value=value, predicate=None)

    def visit_buffer_load(self, load: BufferLoad) -> PrimExpr:
        new = super().visit_buffer_load(load)
        assert isinstance(new, BufferLoad)
        mask, lanes = new.predicate, self.found.get(new.buffer.data)
        if mask is None or lanes is None:
            return new
        whole = new.replace(predicate=None)
        if is_all(mask) or not lanes.is_seen:
            return whole
        return Select(mask, whole, Broadcast(const(0, new.dtype.element), new.dtype.lanes))


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
    if not has_mask(func.body):
        return func
    finder = LaneFinder()
    finder.visit(func.body)
    found = {
        data: lanes for data, lanes in finder.found.items() if lanes.is_bounded and lanes.reach
    }
    return func.with_body(LaneSelector(found).visit(func.body)) if found else func


def has_mask(body: Stmt) -> bool:
    """Whether anything is stored in a local buffer under a mask."""
    masks = MaskFinder()
    masks.visit(body)
    return masks.has_found


class MaskFinder(Visitor):
    """Looks for masked stores in local buffers, at statements alone."""

    def __init__(self) -> None:
        self.has_found = False

    def visit_buffer_store(self, store: BufferStore) -> None:
        self.has_found |= store.predicate is not None and store.buffer.scope() == "local"


SelectLocalLanes = select_local_lanes.factory
