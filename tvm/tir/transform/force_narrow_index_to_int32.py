"""Compute all indices in 32 bits, those that depend on 64-bit parameters and shapes among them.

    A: Buffer((int64(64),))      ->    A: Buffer((64,))
    for i in range(int64(8)):          for i in range(8):
        A[i * int64(4)] = ...              A[i * 4] = ...

The caller says that they fit. Values keep their types; a buffer of 64-bit integers is rejected.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tvm.error import LoweringError
from tvm.ir.expr import PrimExpr
from tvm.ir.visitor import Visitor
from tvm.tir import op
from tvm.tir.buffer import Buffer
from tvm.tir.expr import BufferLoad, Call, Cast, IntImm, IterVar, Range, Var, const
from tvm.tir.function import PrimFunc
from tvm.tir.intrinsics import INTRINSICS
from tvm.tir.stmt import (
    Allocate,
    AttrStmt,
    Block,
    BlockRealize,
    BufferRegion,
    BufferStore,
    For,
    LetStmt,
    Stmt,
)
from tvm.tir.transform.common import prim_func_pass, variables_of
from tvm.tir.transform.narrow_data_type import INT64, IndexNarrower

if TYPE_CHECKING:
    from collections.abc import Iterator

CLZ = INTRINSICS["clz"]


class IndexVariableFinder(Visitor):
    """Collects the 64-bit variables that are indices: of loops, threads and blocks, and all that indices use."""

    def __init__(self) -> None:
        self.found: dict[Var, None] = {}
        self.buffers: dict[Buffer, None] = {}

    def note(self, *indices: Any) -> None:
        """Collect what indices use."""
        for index in indices:
            self.found.update({v: None for v in variables_of(index) if v.dtype is INT64})

    def visit_for(self, loop: For) -> None:
        self.note(loop.loop_var, loop.min, loop.extent)
        self.visit_children(loop)

    def visit_iter_var(self, axis: IterVar) -> None:
        self.note(axis.var)

    def visit_range(self, bound: Range) -> None:
        self.note(bound.min, bound.extent)

    def visit_allocate(self, alloc: Allocate) -> None:
        self.note(*alloc.extents)
        self.visit_children(alloc)

    def visit_buffer_load(self, load: BufferLoad) -> None:
        self._note_access(load)

    def visit_buffer_store(self, store: BufferStore) -> None:
        self._note_access(store)

    def _note_access(self, node: BufferLoad | BufferStore) -> None:
        self.note_buffer(node.buffer)
        self.note(*node.indices)
        self.visit_children(node)

    def visit_block(self, block: Block) -> None:
        for buffer in block.alloc_buffers:
            self.note_buffer(buffer)
        self.visit_children(block)

    def note_buffer(self, buffer: Buffer) -> None:
        """Collect what the shape of a buffer uses."""
        self.buffers[buffer] = None
        self.note(*buffer.shape, *buffer.strides, buffer.elem_offset)


class ForcedIndexNarrower(IndexNarrower):
    """Narrows variables, and within indices all else."""

    def __init__(self, narrow: dict[Var, None]) -> None:
        super().__init__(narrow, 32)
        self.names = {var: Var(var.name, self.dtype) for var in narrow}
        self.is_index = False

    @contextmanager
    def _indices(self) -> Iterator[None]:
        outer, self.is_index = self.is_index, True
        yield
        self.is_index = outer

    def index(self, e: Any) -> Any:
        """An index, or a range of some, in 32 bits."""
        with self._indices():
            return self.visit(e)

    def map_buffer(self, buffer: Buffer) -> Buffer:
        with self._indices():
            return super().map_buffer(buffer)

    def visit_int_imm(self, e: IntImm) -> PrimExpr:
        return const(e.value, self.dtype) if self.is_index and e.dtype is INT64 else e

    def visit_cast(self, e: Cast) -> PrimExpr:
        if self.is_index and e.dtype is INT64:
            return op.cast(self.visit(e.value), self.dtype)
        return super().visit_cast(e)

    def visit_call(self, call: Call) -> PrimExpr:
        new = super().visit_call(call)
        if call.op is CLZ and isinstance(new, Call):
            value = self.visit(call.args[0])
            if value.dtype is not call.args[0].dtype:
                # the wider number has as many zeros more as it has bits more
                counted: PrimExpr = Call(call.dtype, CLZ, (value,)) - value.dtype.bits + INT64.bits
                return counted
        return new

    def visit_range(self, bound: Range) -> Range:
        with self._indices():
            return self.rewrite_children(bound)

    def visit_iter_var(self, axis: IterVar) -> IterVar:
        domain = None if axis.dom is None else self.visit(axis.dom)
        return axis.replace(var=self.visit(axis.var), dom=domain)

    def visit_block_realize(self, realize: BlockRealize) -> Stmt:
        values = tuple([self.index(value) for value in realize.iter_values])
        predicate, block = self.visit(realize.predicate), self.visit(realize.block)
        return realize.replace(iter_values=values, predicate=predicate, block=block)

    def visit_let_stmt(self, let: LetStmt) -> Stmt:
        if let.var not in self.names:
            return self.rewrite_children(let)
        return LetStmt(self.names[let.var], self.index(let.value), self.visit(let.body))

    def visit_allocate(self, alloc: Allocate) -> Stmt:
        extents = tuple([self.index(extent) for extent in alloc.extents])
        return self.rewrite_children(alloc).replace(extents=extents)

    def visit_for(self, loop: For) -> Stmt:
        var = self.names.get(loop.loop_var, loop.loop_var)
        binding = None if loop.thread_binding is None else self.visit(loop.thread_binding)
        start, extent = self.index(loop.min), self.index(loop.extent)
        body = self.visit(loop.body)
        return loop.replace(
            loop_var=var, min=start, extent=extent, thread_binding=binding, body=body
        )

    def visit_attr_stmt(self, attr: AttrStmt) -> Stmt:
        if not isinstance(attr.node, IterVar):
            return self.rewrite_children(attr)
        node, value = self.visit(attr.node), self.index(attr.value)
        return attr.replace(node=node, value=value, body=self.visit(attr.body))

    def visit_buffer_load(self, load: BufferLoad) -> PrimExpr:
        indices = tuple([self.index(index) for index in load.indices])
        return load.replace(buffer=self.buffer(load.buffer), indices=indices)

    def visit_buffer_store(self, node: BufferStore) -> Stmt:
        indices = tuple([self.index(index) for index in node.indices])
        value = op.cast(self.visit(node.value), node.value.dtype)
        return node.replace(buffer=self.buffer(node.buffer), indices=indices, value=value)

    def visit_buffer_region(self, node: BufferRegion) -> BufferRegion:
        ranges = tuple([self.visit(bound) for bound in node.region])
        return node.replace(buffer=self.buffer(node.buffer), region=ranges)


@prim_func_pass("tir.ForceNarrowIndexToInt32")
def force_narrow_index_to_int32(func: PrimFunc) -> PrimFunc:
    """Narrow every index, and the parameters and shapes that indices depend on."""
    finder = IndexVariableFinder()
    for buffer in func.buffer_map.values():
        finder.note_buffer(buffer)
    finder.visit(func.body)
    for buffer in finder.buffers:
        if buffer.dtype.is_int and buffer.dtype.bits > 32:
            raise LoweringError(
                f"ForceNarrowIndexToInt32 needs buffers of at most 32-bit integers, got {buffer.name} "
                f"of {buffer.dtype}"
            )
    shapes = [extent for buffer in finder.buffers for extent in buffer.shape]
    if not finder.found and all([extent.dtype is not INT64 for extent in shapes]):
        return func
    narrower = ForcedIndexNarrower(finder.found)
    params = tuple([narrower.visit(param) for param in func.params])
    buffers = {var: narrower.buffer(buffer) for var, buffer in func.buffer_map.items()}
    return func.replace(params=params, buffer_map=buffers, body=narrower.visit(func.body))


ForceNarrowIndexToInt32 = force_narrow_index_to_int32.factory
