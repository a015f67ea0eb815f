"""Give every buffer one dimension.

    A: Buffer((4, 8))            ->    A_1 = Buffer((32,), data=A.data)
    B = allocate([4, 8])               B = allocate([32])
    B[i, j] = A[i, j]                  B_1[i * 8 + j] = A_1[i * 8 + j]

The flat views have the pointers of the buffers and need no declaration. A buffer that axis separators divide
keeps one dimension for each of its parts. Truth values are kept as bytes in memory, so loads and stores of
them gain a cast.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from tvm.arith import Analyzer, iter_map_simplify
from tvm.error import LoweringError
from tvm.ir.expr import PrimExpr
from tvm.ir.visitor import Rewriter
from tvm.support.dtype import dtype as as_dtype
from tvm.tir.buffer import Buffer, BufferType
from tvm.tir.expr import (
    And,
    Broadcast,
    BufferLoad,
    Call,
    Cast,
    IterVar,
    Not,
    Ramp,
    Range,
    Var,
    const,
)
from tvm.tir.function import PrimFunc
from tvm.tir.stmt import (
    Allocate,
    AttrStmt,
    Block,
    BufferRegion,
    BufferStore,
    DeclBuffer,
    For,
    IfThenElse,
    Stmt,
)
from tvm.tir.transform.block_form import require_no_match
from tvm.tir.transform.common import ADDRESS_OF, TRUE, comes_from_te, is_const, prim_func_pass

INT8 = as_dtype("int8")


@dataclass(frozen=True)
class FlatView:
    """Where the elements of a buffer lie in one with a dimension for each group of axes."""

    buffer: Buffer
    shape: tuple[PrimExpr, ...]
    strides: tuple[PrimExpr, ...]
    mins: tuple[PrimExpr, ...] | None = None  # the indices of the first element kept
    offset: PrimExpr | None = None
    separators: tuple[int, ...] = ()  # between the groups

    def indices(self, indices: Sequence[PrimExpr]) -> tuple[PrimExpr, ...]:
        """The position of the element at ``indices``."""
        borders = pairwise((0, *self.separators, len(indices)))
        return tuple([self._position(indices, first, last) for first, last in borders])

    def _position(self, indices: Sequence[PrimExpr], first: int, last: int) -> PrimExpr:
        position = self.offset
        for axis in range(first, last):
            index = indices[axis]
            if is_const(self.shape[axis], 1):
                continue  # an axis of one element: the index is its start
            if self.mins is not None and not is_const(self.mins[axis], 0):
                index = index - self.mins[axis]
            if is_const(index, 0):
                continue
            term = index if is_const(self.strides[axis], 1) else index * self.strides[axis]
            position = term if position is None else position + term
        if position is not None:
            return position
        return const(0, indices[0].dtype.element) if indices else const(0, "int32")


def flat_view(buffer: Buffer) -> FlatView:
    """The view of a whole buffer."""
    if buffer.axis_separators:
        return divided_view(buffer, buffer.shape)
    strides = tuple(buffer.strides) or compact_strides(buffer.shape)
    offset = None if is_const(buffer.elem_offset, 0) else buffer.elem_offset
    if buffer.strides:
        extent = strides[0] * buffer.shape[0] if buffer.shape else const(1, "int32")
        # a unit axis with a stride still only has its first element
        return FlatView(_flat(buffer, extent), buffer.shape, strides, None, offset)
    return FlatView(_flat(buffer, product(buffer.shape)), buffer.shape, strides, None, offset)


def divided_view(
    buffer: Buffer, shape: tuple[PrimExpr, ...], mins: tuple[PrimExpr, ...] | None = None
) -> FlatView:
    """The view of a buffer with axis separators, or of the part of it that is allocated."""
    if buffer.strides or not is_const(buffer.elem_offset, 0):
        raise LoweringError(
            f"buffer {buffer.name} needs to be compact, as axis separators divide it, "
            "got strides or an offset"
        )
    separators = tuple([int(separator) for separator in buffer.axis_separators])
    parts = [shape[first:last] for first, last in pairwise((0, *separators, len(shape)))]
    strides = tuple([stride for part in parts for stride in compact_strides(part)])
    flat = buffer
    if buffer.dtype.is_bool or len(parts) < len(shape) or shape is not buffer.shape:
        dtype = INT8.with_lanes(buffer.dtype.lanes) if buffer.dtype.is_bool else buffer.dtype
        borders = tuple([const(k, "int32") for k in range(1, len(parts))])
        extents = tuple([product(part) for part in parts])
        flat = buffer.replace(dtype=dtype, shape=extents, axis_separators=borders)
    return FlatView(flat, shape, strides, mins, None, separators)


def _flat(buffer: Buffer, extent: PrimExpr) -> Buffer:
    dtype = INT8.with_lanes(buffer.dtype.lanes) if buffer.dtype.is_bool else buffer.dtype
    same_shape = len(buffer.shape) == 1 and not buffer.strides
    if same_shape and dtype is buffer.dtype and is_const(buffer.elem_offset, 0):
        return buffer
    zero = const(0, buffer.elem_offset.dtype)
    return buffer.replace(
        dtype=dtype, shape=(extent,), strides=(), elem_offset=zero, buffer_type=BufferType.DEFAULT
    )


def compact_strides(shape: Sequence[PrimExpr]) -> tuple[PrimExpr, ...]:
    """The distances between neighbours along each axis of a compact array."""
    strides: list[PrimExpr] = []
    step: PrimExpr | None = None
    for extent in reversed(shape):
        strides.append(const(1, extent.dtype) if step is None else step)
        step = extent if step is None else step * extent
    return tuple(reversed(strides))


def product(shape: Sequence[PrimExpr]) -> PrimExpr:
    """The number of elements."""
    count: PrimExpr = const(1, shape[0].dtype if shape else "int32")
    for extent in shape:
        count = extent if is_const(count, 1) else count * extent
    return count


def _parts_of(alloc: Allocate) -> list[tuple[PrimExpr, ...]]:
    """The extents of what is allocated, as axis separators of the buffer declared over it divide them."""
    separators: list[int] = []
    if isinstance(decl := alloc.body, DeclBuffer) and decl.buffer.data is alloc.buffer_var:
        separators = [int(separator) for separator in decl.buffer.axis_separators]
    return [alloc.extents[a:b] for a, b in pairwise((0, *separators, len(alloc.extents)))]


class BufferFlattener(Rewriter):
    """Redirects accesses to flat views, made where a buffer is first met."""

    def __init__(self) -> None:
        self.views: dict[Buffer, FlatView] = {}

    def view(self, buffer: Buffer) -> FlatView:
        """The flat view of a buffer."""
        found = self.views.get(buffer)
        if found is None:
            found = self.views[buffer] = flat_view(buffer)
        return found

    def position(self, view: FlatView, indices: Sequence[PrimExpr]) -> tuple[PrimExpr, ...]:
        """Where an element is in a flat view."""
        return view.indices(indices)

    def visit_buffer_load(self, load: BufferLoad) -> PrimExpr:
        flat = self._load(load)
        return Cast(load.dtype, flat) if load.buffer.dtype.is_bool else flat

    def visit_buffer_store(self, store: BufferStore) -> Stmt:
        buffer = store.buffer
        view = self.view(buffer)
        value = self.visit(store.value)
        indices = [self.visit(index) for index in store.indices]
        predicate = None if store.predicate is None else self.visit(store.predicate)
        if view.buffer is buffer and self._same(store.indices, indices):
            if value is store.value and predicate is store.predicate:
                return store
            return BufferStore(buffer, value, indices, predicate)
        if buffer.dtype.is_bool:
            value = Cast(INT8.with_lanes(value.dtype.lanes), value)
        return BufferStore(view.buffer, value, self.position(view, indices), predicate)

    def visit_call(self, call: Call) -> PrimExpr:
        if call.op is ADDRESS_OF and isinstance(load := call.args[0], BufferLoad):
            flat = self._load(load)
            return call if flat is load else call.replace(args=(flat,))
        return self.rewrite_children(call)

    def visit_allocate(self, alloc: Allocate) -> Stmt:
        body = self.visit(alloc.body)
        extents = tuple([product(part) for part in _parts_of(alloc)])
        if len(extents) == len(alloc.extents) and not alloc.dtype.is_bool:
            return alloc if body is alloc.body else alloc.replace(body=body)
        dtype = INT8.with_lanes(alloc.dtype.lanes) if alloc.dtype.is_bool else alloc.dtype
        return alloc.replace(dtype=dtype, extents=extents, body=body)

    def visit_decl_buffer(self, decl: DeclBuffer) -> Stmt:
        body: Stmt = self.visit(decl.body)
        return body

    def visit_block(self, block: Block) -> Stmt:
        require_no_match(block, "FlattenBuffer")
        new = self.rewrite_children(block)
        buffers = tuple([self.view(buffer).buffer for buffer in block.alloc_buffers])
        if all([a is b for a, b in zip(buffers, block.alloc_buffers, strict=True)]):
            return new
        return new.replace(alloc_buffers=buffers)

    def visit_buffer_region(self, region: BufferRegion) -> BufferRegion:
        buffer = region.buffer
        view = self.view(buffer)
        ranges = [self.visit(bound) for bound in region.region]
        if view.buffer is buffer:
            same = all([a is b for a, b in zip(ranges, region.region, strict=True)])
            return region if same else BufferRegion(buffer, tuple(ranges))
        first = self.position(view, [bound.min for bound in ranges])
        last = self.position(view, [bound.min + bound.extent - 1 for bound in ranges])
        flat = [Range.from_min_extent(a, b + 1 - a) for a, b in zip(first, last, strict=True)]
        return BufferRegion(view.buffer, tuple(flat))

    def _load(self, load: BufferLoad) -> BufferLoad:
        buffer = load.buffer
        view = self.view(buffer)
        indices = [self.visit(index) for index in load.indices]
        predicate = None if load.predicate is None else self.visit(load.predicate)
        if view.buffer is buffer and self._same(load.indices, indices):
            return (
                load
                if predicate is load.predicate
                else BufferLoad(buffer, tuple(indices), predicate)
            )
        return BufferLoad(view.buffer, self.position(view, indices), predicate)

    @staticmethod
    def _same(old: Sequence[PrimExpr], new: Sequence[PrimExpr]) -> bool:
        return all([i is j for i, j in zip(old, new, strict=True)])


class LoopAwareFlattener(BufferFlattener):
    """Flattens within loops over ranges that it knows: fused and split indices join again."""

    def __init__(self) -> None:
        super().__init__()
        self.domains: dict[Var, Range] = {}
        self.conditions: list[PrimExpr] = []

    def view(self, buffer: Buffer) -> FlatView:
        found = self.views.get(buffer)
        if found is None:
            found = flat_view(buffer)
            if found.buffer is not buffer:
                analyzer = Analyzer()
                shape = tuple([analyzer.simplify(extent) for extent in found.buffer.shape])
                found = replace(found, buffer=found.buffer.replace(shape=shape))
            self.views[buffer] = found
        return found

    def position(self, view: FlatView, indices: Sequence[PrimExpr]) -> tuple[PrimExpr, ...]:
        flat = view.indices(indices)
        if any([isinstance(index, (Ramp, Broadcast)) for index in flat]):
            return flat
        condition: PrimExpr = TRUE
        for known in self.conditions:
            condition = And(condition, known)
        return iter_map_simplify(flat, self.domains, condition, simplify_trivial_iterators=False)

    def visit_for(self, loop: For) -> Stmt:
        self.domains[loop.loop_var] = Range.from_min_extent(loop.min, loop.extent)
        new: Stmt = self.rewrite_children(loop)
        del self.domains[loop.loop_var]
        return new

    def visit_attr_stmt(self, attr: AttrStmt) -> Stmt:
        axis = attr.node
        if attr.attr_key not in ("thread_extent", "virtual_thread") or not isinstance(
            axis, IterVar
        ):
            return self.rewrite_children(attr)
        self.domains[axis.var] = Range(attr.value)
        return self.rewrite_children(attr)

    def visit_if_then_else(self, stmt: IfThenElse) -> Stmt:
        condition = self.visit(stmt.condition)
        self.conditions.append(condition)
        yes = self.visit(stmt.then_case)
        self.conditions[-1] = Not(condition)
        no = None if stmt.else_case is None else self.visit(stmt.else_case)
        self.conditions.pop()
        if condition is stmt.condition and yes is stmt.then_case and no is stmt.else_case:
            return stmt
        return IfThenElse(condition, yes, no)


@prim_func_pass("tir.FlattenBuffer")
def flatten_buffer(func: PrimFunc) -> PrimFunc:
    """Make multi-dimensional buffers one-dimensional."""
    return func if comes_from_te(func) else func.with_body(LoopAwareFlattener().visit(func.body))


FlattenBuffer = flatten_buffer.factory
