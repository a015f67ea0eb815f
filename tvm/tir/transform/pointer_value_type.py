"""Let pointers that are only accessed by whole vectors point to vectors.

A: pointer to float32        ->    A: pointer to float32x4
A[ramp(i * 4, 1, 4)]               A[i]
"""

from __future__ import annotations

from collections.abc import Sequence

from tvm.arith import Analyzer
from tvm.ir.expr import PrimExpr
from tvm.ir.visitor import Visitor
from tvm.support.dtype import DType
from tvm.tir import op
from tvm.tir.buffer import Buffer
from tvm.tir.expr import BufferLoad, IntImm, Ramp, Var, pointer_type
from tvm.tir.function import PrimFunc
from tvm.tir.stmt import Allocate, BufferStore, Stmt
from tvm.tir.stmt_functor import BufferRewriter
from tvm.tir.transform.common import is_const, prim_func_pass


class VectorAccessFinder(Visitor):
    """Finds how many lanes all accesses of a pointer have; 0 where they differ."""

    def __init__(self) -> None:
        self.lanes: dict[Var, int] = {}
        self.analyzer = Analyzer()

    def visit_buffer_load(self, load: BufferLoad) -> None:
        self._access(load.buffer, load.indices)
        self.visit_children(load)

    def visit_buffer_store(self, store: BufferStore) -> None:
        self._access(store.buffer, store.indices)
        self.visit_children(store)

    def visit_var(self, var: Var) -> None:
        if var.dtype.is_handle:
            self.lanes[var] = 0

    def _access(self, buffer: Buffer, indices: Sequence[PrimExpr]) -> None:
        found = self._lanes(buffer, indices)
        if self.lanes.setdefault(buffer.data, found) != found:
            self.lanes[buffer.data] = 0

    def _lanes(self, buffer: Buffer, indices: Sequence[PrimExpr]) -> int:
        if len(indices) != 1 or not isinstance(indices[0], Ramp) or buffer.dtype.lanes != 1:
            return 0
        ramp = indices[0]
        whole = is_const(ramp.stride, 1) and self.analyzer.can_prove_equal(
            op.floormod(ramp.base, ramp.lanes), 0
        )
        extent = buffer.shape[0]
        fits = isinstance(extent, IntImm) and extent.value % ramp.lanes == 0
        return ramp.lanes if whole and fits else 0


class PointerTypeRewriter(BufferRewriter):
    """Changes the allocated pointers, and the accesses through them."""

    def __init__(self, lanes: dict[Var, int]) -> None:
        super().__init__()
        self.lanes = lanes
        self.pointers: dict[Var, Var] = {}
        self.analyzer = Analyzer()

    def visit_allocate(self, alloc: Allocate) -> Stmt:
        lanes = self.lanes.get(alloc.buffer_var, 0)
        (extent,) = alloc.extents if len(alloc.extents) == 1 else (None,)
        if lanes < 2 or not isinstance(extent, IntImm) or extent.value % lanes:
            return self.rewrite_children(alloc)
        dtype = alloc.dtype.with_lanes(lanes)
        self.pointers[alloc.buffer_var] = pointer = self._pointer(alloc.buffer_var, dtype)
        extents = (IntImm(extent.dtype, extent.value // lanes),)
        body = self.visit(alloc.body)
        return alloc.replace(buffer_var=pointer, dtype=dtype, extents=extents, body=body)

    def visit_var(self, var: Var) -> PrimExpr:
        return self.pointers.get(var, var)

    def map_buffer(self, buffer: Buffer) -> Buffer:
        pointer = self.pointers.get(buffer.data)
        if pointer is None:
            return super().map_buffer(buffer)
        lanes = self.lanes[buffer.data]
        shape = (self.analyzer.simplify(op.floordiv(buffer.shape[0], lanes)),)
        dtype = buffer.dtype.with_lanes(lanes)
        return buffer.replace(data=pointer, dtype=dtype, shape=shape)

    def visit_buffer_load(self, load: BufferLoad) -> PrimExpr:
        if load.buffer.data not in self.pointers:
            return super().visit_buffer_load(load)
        return BufferLoad(self.buffer(load.buffer), self._index(load.indices))

    def visit_buffer_store(self, node: BufferStore) -> Stmt:
        if node.buffer.data not in self.pointers:
            return super().visit_buffer_store(node)
        value = self.visit(node.value)
        return BufferStore(self.buffer(node.buffer), value, self._index(node.indices))

    def _index(self, indices: Sequence[PrimExpr]) -> tuple[PrimExpr, ...]:
        (ramp,) = indices
        assert isinstance(ramp, Ramp)
        return (self.analyzer.simplify(op.floordiv(self.visit(ramp.base), ramp.lanes)),)

    def _pointer(self, var: Var, dtype: DType) -> Var:
        scope = getattr(var.type_annotation, "storage_scope", "")
        return Var(var.name, pointer_type(dtype, scope))


@prim_func_pass("tir.PointerValueTypeRewrite")
def pointer_value_type(func: PrimFunc) -> PrimFunc:
    """Type the pointers of allocations by what they are accessed as."""
    finder = VectorAccessFinder()
    finder.visit(func.body)
    return func.with_body(PointerTypeRewriter(finder.lanes).visit(func.body))


PointerValueTypeRewrite = pointer_value_type.factory
