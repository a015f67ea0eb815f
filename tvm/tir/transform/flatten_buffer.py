"""Give every buffer one dimension.

    A: Buffer((4, 8))            ->    A_1 = decl_buffer((32,), data=A.data)
    B = allocate([4, 8])               B = allocate([32])
    B[i, j] = A[i, j]                  B_1[i * 8 + j] = A_1[i * 8 + j]

A buffer that axis separators divide keeps one dimension for each of its parts. Truth values are kept as bytes in memory, so loads and stores of them gain a cast.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from tvm.error import LoweringError
from tvm.ir.expr import PrimExpr
from tvm.ir.visitor import Rewriter
from tvm.support.dtype import dtype as as_dtype
from tvm.tir.buffer import Buffer
from tvm.tir.expr import BufferLoad, Call, Cast, const
from tvm.tir.function import PrimFunc
from tvm.tir.stmt import Allocate, BufferStore, DeclBuffer, Stmt
from tvm.tir.transform.common import ADDRESS_OF, comes_from_te, is_const, prim_func_pass

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
        extent = buffer.shape[0] * strides[0] if buffer.shape else const(1, "int32")
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
    return buffer.replace(dtype=dtype, shape=(extent,), strides=(), elem_offset=zero)


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


class BufferFlattener(Rewriter):
    """Redirects accesses to flat views, made where a buffer is declared or first met."""

    def __init__(self) -> None:
        self.views: dict[Buffer, FlatView] = {}

    def view(self, buffer: Buffer) -> FlatView:
        """The flat view of a buffer."""
        found = self.views.get(buffer)
        if found is None:
            found = self.views[buffer] = flat_view(buffer)
        return found

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
        return BufferStore(view.buffer, value, view.indices(indices), predicate)

    def visit_call(self, call: Call) -> PrimExpr:
        if call.op is ADDRESS_OF and isinstance(load := call.args[0], BufferLoad):
            flat = self._load(load)
            return call if flat is load else call.replace(args=(flat,))
        return self.rewrite_children(call)

    def visit_allocate(self, alloc: Allocate) -> Stmt:
        body = self.visit(alloc.body)
        if len(alloc.extents) == 1 and not alloc.dtype.is_bool:
            return alloc if body is alloc.body else alloc.replace(body=body)
        dtype = INT8.with_lanes(alloc.dtype.lanes) if alloc.dtype.is_bool else alloc.dtype
        return alloc.replace(dtype=dtype, extents=(product(alloc.extents),), body=body)

    def visit_decl_buffer(self, decl: DeclBuffer) -> Stmt:
        view = self.view(decl.buffer)
        body = self.visit(decl.body)
        same = view.buffer is decl.buffer and body is decl.body
        return decl if same else DeclBuffer(view.buffer, body)

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
        return BufferLoad(view.buffer, view.indices(indices), predicate)

    @staticmethod
    def _same(old: Sequence[PrimExpr], new: Sequence[PrimExpr]) -> bool:
        return all([i is j for i, j in zip(old, new, strict=True)])


def flatten_body(func: PrimFunc, flattener: BufferFlattener) -> PrimFunc:
    """The function with its body flattened and its parameters' flat views declared."""
    body = flattener.visit(func.body)
    if body is func.body:
        return func
    for buffer in reversed(list(func.buffer_map.values())):
        view = flattener.views.get(buffer)
        if view is not None and view.buffer is not buffer:
            body = DeclBuffer(view.buffer, body)
    return func.with_body(body)


@prim_func_pass("tir.FlattenBuffer")
def flatten_buffer(func: PrimFunc) -> PrimFunc:
    """Make multi-dimensional buffers one-dimensional."""
    return func if comes_from_te(func) else flatten_body(func, BufferFlattener())


FlattenBuffer = flatten_buffer.factory
