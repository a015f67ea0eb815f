"""Run virtual threads one after the other, statement by statement.

    virtual_thread vx = 2:               ->    L = allocate([16], "float32")
        L = allocate([8], "float32")           S[tx] = A[tx]
        S[tx] = A[tx]                          for k in range(8):
        for k in range(8):                         for vx in unrolled(2):
            L[k] = S[k] * vx                           L[vx * 8 + k] = S[k] * vx

Virtual threads are a way to tile. Only statements that depend on the thread are repeated; memory that is allocated
inside and written by such statements has a part for each thread, the rest is common to them. Where the size of the
memory depends on the thread, or its pointer is passed on as it is, all that uses the memory is repeated as a whole.
"""

from __future__ import annotations

from typing import Any

from tvm.ir.expr import PrimExpr
from tvm.ir.visitor import Rewriter, Visitor
from tvm.support.dtype import DType
from tvm.tir import op
from tvm.tir.buffer import Buffer
from tvm.tir.expr import Broadcast, BufferLoad, Call, IterVar, Ramp, Var, const
from tvm.tir.function import PrimFunc
from tvm.tir.intrinsics import INTRINSICS
from tvm.tir.stmt import (
    Allocate,
    AssertStmt,
    AttrStmt,
    BufferStore,
    DeclBuffer,
    Evaluate,
    For,
    ForKind,
    IfThenElse,
    LetStmt,
    Stmt,
    While,
)
from tvm.tir.stmt_functor import substitute
from tvm.tir.transform.common import as_int, prim_func_pass

# more threads than this stay a loop
MAX_UNROLLED = 16
ACCESS_PTR = INTRINSICS["tvm_access_ptr"]
ADDRESS_OF = INTRINSICS["address_of"]
WRITES = 2  # of the access mask of tvm_access_ptr


class Mentions(Visitor):
    """Whether an expression depends on the thread: a variable, or memory that has a part for each."""

    def __init__(self, dependent: dict[Var, None]) -> None:
        self.dependent = dependent
        self.is_found = False

    def visit_var(self, var: Var) -> None:
        self.is_found = self.is_found or var in self.dependent

    def visit_buffer_load(self, load: BufferLoad) -> None:
        self.is_found = self.is_found or load.buffer.data in self.dependent
        self.visit_children(load)


class DependenceFinder(Visitor):
    """Collects variables and allocations that depend on the thread; to be repeated until nothing is added."""

    def __init__(self, thread: Var) -> None:
        self.dependent: dict[Var, None] = {thread: None}
        self.allocated: dict[Var, None] = {}
        self.passed: dict[Var, None] = {}  # pointers that calls take without an offset
        self.is_everything = False  # inside of a statement that is repeated as a whole

    def depends(self, *parts: PrimExpr) -> bool:
        """Whether any of the expressions does."""
        mentions = Mentions(self.dependent)
        for part in parts:
            mentions.visit(part)
        return mentions.is_found

    def is_whole(self, alloc: Allocate) -> bool:
        """Whether each thread allocates memory of its own, as there is no part of common memory to give it."""
        is_passed = alloc.buffer_var in self.dependent and alloc.buffer_var in self.passed
        return is_passed or self.depends(*alloc.extents, alloc.condition)

    def visit_allocate(self, alloc: Allocate) -> None:
        self.allocated[alloc.buffer_var] = None
        self._inside(self.is_whole(alloc), alloc)

    def visit_attr_stmt(self, attr: AttrStmt) -> None:
        self._inside(self.depends(attr.value), attr)

    def visit_assert_stmt(self, stmt: AssertStmt) -> None:
        self._inside(self.depends(stmt.condition), stmt)

    def visit_let_stmt(self, let: LetStmt) -> None:
        if self.depends(let.value):
            self.dependent[let.var] = None
        self._inside(self.depends(let.value), let)

    def visit_decl_buffer(self, decl: DeclBuffer) -> None:
        self._inside(self.depends(*_layout(decl.buffer)), decl)

    def visit_for(self, loop: For) -> None:
        self._inside(self.depends(loop.min, loop.extent), loop)

    def visit_while(self, loop: While) -> None:
        self._inside(self.depends(loop.condition), loop)

    def visit_if_then_else(self, stmt: IfThenElse) -> None:
        self._inside(self.depends(stmt.condition), stmt)

    def _inside(self, depends: bool, stmt: Stmt) -> None:
        outer = self.is_everything
        self.is_everything = outer or depends
        self.visit_children(stmt)
        self.is_everything = outer

    def visit_buffer_store(self, store: BufferStore) -> None:
        parts = [
            store.value,
            *store.indices,
            *([store.predicate] if store.predicate is not None else []),
        ]
        if self.is_everything or self.depends(*parts):
            self._write(store.buffer.data)
        self.visit_children(store)

    def visit_call(self, call: Call) -> None:
        for arg in call.args if call.op is not ACCESS_PTR else ():
            if isinstance(arg, Var) and arg.dtype.is_handle:
                self.passed[arg] = None
        if self.is_everything or self.depends(*call.args):
            for pointer in _written_by(call):
                self._write(pointer)
        self.visit_children(call)

    def _write(self, pointer: Var) -> None:
        if pointer in self.allocated:
            self.dependent[pointer] = None


def _layout(buffer: Buffer) -> list[PrimExpr]:
    return [*buffer.shape, *buffer.strides, buffer.elem_offset]


def _written_by(call: Call) -> list[Var]:
    """The pointers through which a call may write."""
    found = []
    for arg in call.args:
        if isinstance(arg, Var) and arg.dtype.is_handle:
            found.append(arg)
        elif isinstance(arg, Call) and arg.op is ACCESS_PTR and as_int(arg.args[4]) & WRITES:
            found += [pointer for pointer in arg.args[1:2] if isinstance(pointer, Var)]
        elif isinstance(arg, Call) and arg.op is ADDRESS_OF and isinstance(arg.args[0], BufferLoad):
            found.append(arg.args[0].buffer.data)
    return found


class OneThread(Rewriter):
    """Repeats the statements that depend on one virtual thread."""

    def __init__(self, thread: Var, count: int, finder: DependenceFinder) -> None:
        self.thread = thread
        self.count = count
        self.finder = finder
        self.allocations: dict[Var, Allocate] = {}  # those that have a part for each thread
        self.views: dict[Buffer, Buffer] = {}
        self.is_repeated = False

    def _repeat(self, stmt: Stmt) -> Stmt:
        """A loop over the threads, of which each copy has a variable of its own."""
        outer, self.is_repeated = self.is_repeated, True
        body: Stmt = self.rewrite_children(stmt)
        self.is_repeated = outer
        if outer:
            return body
        kind = ForKind.UNROLLED if self.count <= MAX_UNROLLED else ForKind.SERIAL
        var = Var(self.thread.name, self.thread.dtype)
        return For(var, 0, self.count, kind, substitute(body, {self.thread: var}))

    def _visit(self, stmt: Stmt, *parts: PrimExpr) -> Stmt:
        if self.finder.depends(*parts):
            return self._repeat(stmt)
        rewritten: Stmt = self.rewrite_children(stmt)
        return rewritten

    def visit_let_stmt(self, let: LetStmt) -> Stmt:
        return self._visit(let, let.value)

    def visit_attr_stmt(self, attr: AttrStmt) -> Stmt:
        return self._visit(attr, attr.value)

    def visit_assert_stmt(self, stmt: AssertStmt) -> Stmt:
        return self._visit(stmt, stmt.condition)

    def visit_for(self, loop: For) -> Stmt:
        return self._visit(loop, loop.min, loop.extent)

    def visit_while(self, loop: While) -> Stmt:
        return self._visit(loop, loop.condition)

    def visit_if_then_else(self, stmt: IfThenElse) -> Stmt:
        return self._visit(stmt, stmt.condition)

    def visit_evaluate(self, stmt: Evaluate) -> Stmt:
        return self._visit(stmt, stmt.value)

    def visit_buffer_store(self, store: BufferStore) -> Stmt:
        parts = [
            store.value,
            *store.indices,
            *([store.predicate] if store.predicate is not None else []),
        ]
        if store.buffer.data in self.finder.dependent or self.finder.depends(*parts):
            return self._repeat(store) if not self.is_repeated else self._store(store)
        return self._store(store)

    def rewrite_children(self, node: Any) -> Any:
        if isinstance(node, BufferStore):
            return self._store(node)
        if isinstance(node, DeclBuffer):
            return DeclBuffer(self._view(node.buffer), self.visit(node.body))
        return super().rewrite_children(node)

    def _store(self, store: BufferStore) -> Stmt:
        value = self.visit(store.value)
        indices = [self.visit(index) for index in store.indices]
        predicate = None if store.predicate is None else self.visit(store.predicate)
        buffer, indices = self._own_part(store.buffer, indices)
        return BufferStore(buffer, value, indices, predicate)

    def visit_buffer_load(self, load: BufferLoad) -> PrimExpr:
        indices = [self.visit(index) for index in load.indices]
        predicate = None if load.predicate is None else self.visit(load.predicate)
        buffer, indices = self._own_part(load.buffer, indices)
        return BufferLoad(buffer, indices, predicate)

    def visit_call(self, call: Call) -> PrimExpr:
        call = super().rewrite_children(call)
        if call.op is not ACCESS_PTR:
            return call
        kind, data, offset, extent, mask = call.args
        if not isinstance(data, Var) or data not in self.allocations:
            return call
        start = self._start(data, kind.dtype)
        return call.replace(args=(kind, data, op.add(start, offset), extent, mask))

    # ---- memory

    def visit_allocate(self, alloc: Allocate) -> Stmt:
        if self.finder.is_whole(alloc):
            return self._repeat(alloc)
        if self.is_repeated or alloc.buffer_var not in self.finder.dependent:
            return super().rewrite_children(alloc)
        self.allocations[alloc.buffer_var] = alloc
        first, *rest = alloc.extents or (const(1, "int32"),)
        extents = (op.multiply(first, self.count), *rest)
        return alloc.replace(extents=extents, body=self.visit(alloc.body))

    def visit_decl_buffer(self, decl: DeclBuffer) -> Stmt:
        return self._visit(decl, *_layout(decl.buffer))

    def _own_part(self, buffer: Buffer, indices: Any) -> tuple[Buffer, Any]:
        if buffer.data not in self.allocations:
            return buffer, indices
        if len(indices) == 1:
            start = self._start(buffer.data, buffer.dtype)
        else:  # memory of several dimensions, which a device gives out in whole rows
            start = op.multiply(self.thread, self.allocations[buffer.data].extents[0])
        return self._view(buffer), [_moved(indices[0], start), *indices[1:]]

    def _start(self, data: Var, dtype: DType) -> PrimExpr:
        """Where the part of the thread begins, in elements of the type."""
        alloc = self.allocations[data]
        size = op.multiply(_size(alloc), alloc.dtype.lanes)
        return op.multiply(self.thread, op.floordiv(size, dtype.lanes))

    def _view(self, buffer: Buffer) -> Buffer:
        if buffer.data not in self.allocations:
            return buffer
        if buffer not in self.views:
            first, *rest = buffer.shape
            shape = (op.multiply(first, self.count), *rest)
            self.views[buffer] = buffer.replace(shape=shape, strides=())
        return self.views[buffer]


def _size(alloc: Allocate) -> PrimExpr:
    """The number of elements of an allocation."""
    size: PrimExpr = const(1, "int32")
    for extent in alloc.extents:
        size = op.multiply(size, extent)
    return size


def _moved(index: PrimExpr, start: PrimExpr) -> PrimExpr:
    """The index, further by a thread's part."""
    if isinstance(index, Ramp):
        return Ramp(_moved(index.base, start), index.stride, index.lanes)
    lanes = index.dtype.lanes
    start = op.cast(start, index.dtype.element)
    return op.add(index, start if lanes == 1 else Broadcast(start, lanes))


class VirtualThreadInjector(Rewriter):
    """Lowers all virtual threads, the innermost first."""

    def visit_attr_stmt(self, attr: AttrStmt) -> Stmt:
        attr = self.rewrite_children(attr)
        if attr.attr_key != "virtual_thread" or not isinstance(attr.node, IterVar):
            return attr
        thread, count = attr.node.var, as_int(attr.value)
        finder = DependenceFinder(thread)
        known = 0
        while known < len(finder.dependent):
            known = len(finder.dependent)
            finder.visit(attr.body)
        lowered: Stmt = OneThread(thread, count, finder).visit(attr.body)
        return lowered


@prim_func_pass("tir.InjectVirtualThread")
def inject_virtual_thread(func: PrimFunc) -> PrimFunc:
    """Lower virtual threads."""
    return func.with_body(VirtualThreadInjector().visit(func.body))


InjectVirtualThread = inject_virtual_thread.factory
