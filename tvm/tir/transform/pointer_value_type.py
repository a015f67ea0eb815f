"""Let pointers that are written and read by whole vectors point to vectors.

A: pointer to float32        ->    A: pointer to float32x4
A[ramp(i * 4, 1, 4)]               A[i * 4 / 4]
A[i * 4 + 1]                       shuffle([A[(i * 4 + 1) / 4]], [1])

Single elements may be read, if their places within vectors are known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tvm.arith import Analyzer, ModularSet
from tvm.ir.expr import PrimExpr
from tvm.ir.visitor import Visitor
from tvm.support.dtype import DType
from tvm.tir import op
from tvm.tir.buffer import Buffer
from tvm.tir.expr import BufferLoad, Call, IntImm, Ramp, Shuffle, Var, const, pointer_type
from tvm.tir.function import PrimFunc
from tvm.tir.stmt import Allocate, BufferStore, LetStmt, Stmt
from tvm.tir.stmt_functor import BufferRewriter
from tvm.tir.transform.common import as_int, is_const, prim_func_pass


@dataclass
class Accesses:
    """How the memory of a pointer is accessed."""

    dtypes: dict[DType, None] = field(default_factory=dict)  # of elements
    lanes: dict[int, None] = field(default_factory=dict)  # of whole vectors, 1 for other accesses
    elements: list[ModularSet] = field(default_factory=list)  # indices of elements that are read
    extents: list[PrimExpr] = field(default_factory=list)  # last ones of the buffers
    is_opaque: bool = False

    def vector_lanes(self) -> int:
        """How many lanes the memory's type may have; 1 if it is to stay."""
        if self.is_opaque or len(self.dtypes) != 1 or len(self.lanes) != 1:
            return 1
        (lanes,) = self.lanes
        if any([not isinstance(e, IntImm) or e.value % lanes for e in self.extents]):
            return 1
        return lanes if all([each.coeff % lanes == 0 for each in self.elements]) else 1


class AccessFinder(Visitor):
    """Collects the accesses by pointer."""

    def __init__(self) -> None:
        self.found: dict[Var, Accesses] = {}
        self.analyzer = Analyzer()

    def visit_buffer_load(self, load: BufferLoad) -> None:
        index = load.indices[-1] if load.indices else None
        if index is not None and index.dtype.lanes == 1 and load.buffer.dtype.lanes == 1:
            place = self.analyzer.modular_set(index)
            self._of(load.buffer).elements.append(place)
        else:
            self._access(load.buffer, load.indices)
        self.visit_children(load)

    def visit_buffer_store(self, store: BufferStore) -> None:
        self._access(store.buffer, store.indices)
        self.visit_children(store)

    def visit_call(self, call: Call) -> None:
        if getattr(call.op, "name", "") == "tir.address_of" and isinstance(
            call.args[0], BufferLoad
        ):
            # a pointer to one element
            self._access(call.args[0].buffer, call.args[0].indices)
            for index in call.args[0].indices:
                self.visit(index)
            return
        self.visit_children(call)

    def visit_var(self, var: Var) -> None:
        if var.dtype.is_handle:
            self.found.setdefault(var, Accesses()).is_opaque = True

    def _of(self, buffer: Buffer) -> Accesses:
        found = self.found.setdefault(buffer.data, Accesses())
        found.dtypes[buffer.dtype] = None
        found.extents.extend(buffer.shape[-1:])
        found.is_opaque |= bool(buffer.strides) or not is_const(buffer.elem_offset, 0)
        return found

    def _access(self, buffer: Buffer, indices: Sequence[PrimExpr]) -> None:
        found = self._of(buffer)
        found.lanes[self._lanes(indices[-1]) if indices else 1] = None
        found.is_opaque |= buffer.dtype.lanes != 1

    def _lanes(self, index: PrimExpr) -> int:
        if not isinstance(index, Ramp) or not is_const(index.stride, 1):
            return 1
        if index.dtype.is_scalable:
            return 1
        place = self.analyzer.modular_set(index.base)
        return 1 if place.coeff % index.lanes or place.base % index.lanes else index.lanes


class PointerTypeRewriter(BufferRewriter):
    """Changes the pointers, and the accesses through them."""

    def __init__(self, lanes: dict[Var, int]) -> None:
        super().__init__()
        self.lanes = lanes
        self.pointers: dict[Var, Var] = {}
        self.analyzer = Analyzer()

    def retype(self, var: Var, dtype: DType) -> Var:
        """The pointer to vectors of as many lanes as its accesses have."""
        scope = getattr(var.type_annotation, "storage_scope", "")
        new = Var(var.name, pointer_type(dtype.with_lanes(self.lanes[var]), scope))
        self.pointers[var] = new
        return new

    def visit_allocate(self, alloc: Allocate) -> Stmt:
        lanes = self.lanes.get(alloc.buffer_var, 1)
        last = alloc.extents[-1] if alloc.extents else None
        if (
            lanes == 1
            or alloc.dtype.lanes != 1
            or not isinstance(last, IntImm)
            or last.value % lanes
        ):
            return self.rewrite_children(alloc)
        pointer = self.retype(alloc.buffer_var, alloc.dtype)
        extents = (*alloc.extents[:-1], IntImm(last.dtype, last.value // lanes))
        return alloc.replace(
            buffer_var=pointer, dtype=alloc.dtype.with_lanes(lanes), extents=extents,
            body=self.visit(alloc.body),
        )  # fmt: skip

    def visit_let_stmt(self, let: LetStmt) -> Stmt:
        element = getattr(let.var.type_annotation, "element_type", None)
        dtype = getattr(element, "dtype", None)
        if self.lanes.get(let.var, 1) == 1 or dtype is None or dtype.lanes != 1:
            return self.rewrite_children(let)
        value = self.visit(let.value)
        return let.replace(var=self.retype(let.var, dtype), value=value, body=self.visit(let.body))

    def visit_var(self, var: Var) -> PrimExpr:
        return self.pointers.get(var, var)

    def map_buffer(self, buffer: Buffer) -> Buffer:
        pointer = self.pointers.get(buffer.data)
        if pointer is None:
            return super().map_buffer(buffer)
        lanes = self.lanes[buffer.data]
        last = buffer.shape[-1]
        shape = (*buffer.shape[:-1], const(as_int(last) // lanes, last.dtype))
        return buffer.replace(data=pointer, dtype=buffer.dtype.with_lanes(lanes), shape=shape)

    def visit_buffer_load(self, load: BufferLoad) -> PrimExpr:
        if load.buffer.data not in self.pointers:
            return super().visit_buffer_load(load)
        lanes = self.lanes[load.buffer.data]
        index = load.indices[-1]
        new = BufferLoad(self.buffer(load.buffer), self._indices(load.indices, lanes))
        if isinstance(index, Ramp):
            return new
        place = self.analyzer.modular_set(index).base % lanes
        return Shuffle((new,), (const(place, "int32"),))

    def visit_buffer_store(self, node: BufferStore) -> Stmt:
        if node.buffer.data not in self.pointers:
            return super().visit_buffer_store(node)
        lanes = self.lanes[node.buffer.data]
        value = self.visit(node.value)
        return BufferStore(self.buffer(node.buffer), value, self._indices(node.indices, lanes))

    def _indices(self, indices: Sequence[PrimExpr], lanes: int) -> tuple[PrimExpr, ...]:
        *outer, last = [self.visit(index) for index in indices]
        first = last.base if isinstance(last, Ramp) else last
        return (*outer, op.truncdiv(first, const(lanes, first.dtype)))


def with_vector_allocations(body: Stmt) -> Stmt:
    """A function's body with the pointers that it defines typed by what they are accessed as."""
    rewriter = _rewriter(body)
    return body if rewriter is None else rewriter.visit(body)


def _rewriter(body: Stmt) -> PointerTypeRewriter | None:
    finder = AccessFinder()
    finder.visit(body)
    lanes = {var: found.vector_lanes() for var, found in finder.found.items()}
    lanes = {var: count for var, count in lanes.items() if count > 1}
    return PointerTypeRewriter(lanes) if lanes else None


@prim_func_pass("tir.PointerValueTypeRewrite")
def pointer_value_type(func: PrimFunc) -> PrimFunc:
    """Type the pointers of arguments and allocations by what they are accessed as."""
    rewriter = _rewriter(func.body)
    if rewriter is None:
        return func
    for buffer in func.buffer_map.values():
        if _is_whole(buffer, rewriter.lanes.get(buffer.data, 1)):
            rewriter.retype(buffer.data, buffer.dtype)
    buffers: dict[Var, Any] = {
        param: rewriter.buffer(buffer) for param, buffer in func.buffer_map.items()
    }
    return func.replace(buffer_map=buffers, body=rewriter.visit(func.body))


def _is_whole(buffer: Buffer, lanes: int) -> bool:
    """Whether a buffer can be one of vectors."""
    if lanes == 1 or buffer.dtype.lanes != 1 or not buffer.shape:
        return False
    last = buffer.shape[-1]
    return isinstance(last, IntImm) and last.value % lanes == 0


PointerValueTypeRewrite = pointer_value_type.factory
