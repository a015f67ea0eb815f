"""Put the shared memory of a kernel into one allocation.

S = allocate([64], float32, shared.dyn)   ->    memory = allocate([384], uint8, shared.dyn)
T = allocate([32], float32, shared.dyn)         memory[0 : 64] as float32, memory[64 : 96] as float32

Each buffer begins at a multiple of 16 bytes.
"""

from __future__ import annotations

from tvm.ir.expr import PrimExpr
from tvm.ir.pass_context import PassContext, register_pass_config
from tvm.ir.visitor import Rewriter, Visitor
from tvm.support.dtype import dtype as as_dtype
from tvm.tir import op
from tvm.tir.buffer import Buffer
from tvm.tir.expr import BufferLoad, Var, const, pointer_type
from tvm.tir.function import PrimFunc
from tvm.tir.stmt import Allocate, AttrStmt, BufferStore, DeclBuffer, Stmt
from tvm.tir.transform.common import TRUE, prim_func_pass

register_pass_config("tir.merge_static_smem", bool)  # merge memory of fixed size as well
ALIGNMENT = 16
UINT8 = as_dtype("uint8")


class SharedFinder(Visitor):
    """Collects the allocations of a scope."""

    def __init__(self, scope: str) -> None:
        self.scope = scope
        self.found: list[Allocate] = []

    def visit_allocate(self, alloc: Allocate) -> None:
        if scope_of(alloc.buffer_var) == self.scope:
            self.found.append(alloc)
        self.visit(alloc.body)


class SharedMerger(Rewriter):
    """Moves accesses into the common memory, kernel by kernel."""

    def __init__(self, scope: str) -> None:
        self.scope = scope
        self.starts: dict[Var, PrimExpr] = {}  # in bytes
        self.views: dict[Buffer, Buffer] = {}
        self.memory: Var | None = None

    def visit_attr_stmt(self, attr: AttrStmt) -> Stmt:
        if attr.attr_key != "thread_extent" or self.memory is not None:
            return self.rewrite_children(attr)
        finder = SharedFinder(self.scope)
        finder.visit(attr.body)
        if len(finder.found) < 2:
            return self.rewrite_children(attr)
        total: PrimExpr = const(0, "int32")
        for alloc in finder.found:
            self.starts[alloc.buffer_var] = total
            size = op.product([*alloc.extents, const(alloc.dtype.itemsize, "int32")])
            total = total + op.floordiv(size + (ALIGNMENT - 1), ALIGNMENT) * ALIGNMENT
        name = "buf_dyn_shmem" if self.scope == "shared.dyn" else "buf_shmem"
        self.memory = Var(name, pointer_type("uint8", self.scope))
        body = Allocate(self.memory, UINT8, (total,), TRUE, self.visit(attr.body))
        self.memory = None
        self.starts.clear()
        return attr.replace(body=body)

    def visit_allocate(self, alloc: Allocate) -> Stmt:
        new = self.rewrite_children(alloc)
        return new.body if alloc.buffer_var in self.starts else new

    def visit_decl_buffer(self, decl: DeclBuffer) -> Stmt:
        new = self.rewrite_children(decl)
        if decl.buffer.data not in self.starts:
            return new
        return DeclBuffer(self._view(decl.buffer), new.body)

    def visit_buffer_load(self, load: BufferLoad) -> PrimExpr:
        load = self.rewrite_children(load)
        if load.buffer.data not in self.starts:
            return load
        return BufferLoad(self._view(load.buffer), self._shifted(load), load.predicate)

    def visit_buffer_store(self, store: BufferStore) -> Stmt:
        store = self.rewrite_children(store)
        if store.buffer.data not in self.starts:
            return store
        return BufferStore(
            self._view(store.buffer), store.value, self._shifted(store), store.predicate
        )

    def _view(self, buffer: Buffer) -> Buffer:
        if buffer not in self.views:
            extent = buffer.shape[0] + self._start(buffer)
            self.views[buffer] = buffer.replace(data=self.memory, shape=(extent,))
        return self.views[buffer]

    def _start(self, buffer: Buffer) -> PrimExpr:
        return op.floordiv(self.starts[buffer.data], buffer.dtype.itemsize)

    def _shifted(self, access: BufferLoad | BufferStore) -> tuple[PrimExpr, ...]:
        (index,) = access.indices
        return (op.add(index, self._start(access.buffer)),)


def scope_of(var: Var) -> str:
    """Where the memory of a pointer lies."""
    return getattr(var.type_annotation, "storage_scope", "") or "global"


@prim_func_pass("tir.MergeSharedMemoryAllocations")
def merge_shared_memory(func: PrimFunc) -> PrimFunc:
    """Merge the dynamic shared memory of each kernel, and the static if asked to."""
    body = SharedMerger("shared.dyn").visit(func.body)
    if PassContext.current().get("tir.merge_static_smem", False):
        body = SharedMerger("shared").visit(body)
    return func.with_body(body)


MergeSharedMemoryAllocations = merge_shared_memory.factory
