"""Put the shared memory of a kernel into one allocation, and use it for one thing after another.

S = allocate([64], float32, shared.dyn)   ->    memory = allocate([384], uint8, shared.dyn)
T = allocate([32], float32, shared.dyn)         memory[0 : 64] as float32, memory[64 : 96] as float32

Each buffer begins at a multiple of 16 bytes. Buffers that are not in use at the same time share their bytes; a large
one may lie over several small ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tvm.error import LoweringError
from tvm.ir.expr import PrimExpr
from tvm.ir.pass_context import PassContext, register_pass_config
from tvm.ir.visitor import Rewriter, Visitor
from tvm.support.dtype import DType
from tvm.support.dtype import dtype as as_dtype
from tvm.tir import op
from tvm.tir.buffer import Buffer
from tvm.tir.expr import BufferLoad, Call, Var, const, pointer_type
from tvm.tir.function import PrimFunc
from tvm.tir.stmt import Allocate, AttrStmt, BufferStore, DeclBuffer, Stmt
from tvm.tir.transform.common import TRUE, as_int, prim_func_pass
from tvm.tir.transform.lifetimes import (
    Lifetime,
    LifetimeFinder,
    StorageRewriteConfig,
    storage_scope,
)
from tvm.tir.transform.storage_sharing import MATCH_RANGE

register_pass_config("tir.merge_static_smem", bool)  # merge memory of fixed size as well
ALIGNMENT = 16
UINT8 = as_dtype("uint8")


class KernelLifetimes(LifetimeFinder):
    """When the memory of a scope is in use within a kernel, all of whose threads are one."""

    def __init__(self, kernel: AttrStmt, scope: str, outside: Sequence[Allocate]) -> None:
        super().__init__(kernel.body, StorageRewriteConfig())
        self.scope = scope
        for alloc in outside:
            self._add(alloc)
        self.loop_starts.append(0)
        self.open.append([])
        self.visit(kernel.body)
        for life in self.lifetimes.values():
            if life.first >= 0 and life.loops == 0:
                life.first, life.last = 0, self.step

    def _add(self, alloc: Allocate) -> None:
        size = alloc.constant_size()
        life = Lifetime(alloc, size, self.thread, len(self.loop_starts))
        self.lifetimes[alloc.buffer_var] = life

    def visit_allocate(self, alloc: Allocate) -> None:
        if storage_scope(alloc.buffer_var) == self.scope:
            self._add(alloc)
        self.visit_children(alloc)

    def visit_attr_stmt(self, attr: AttrStmt) -> None:
        self.visit_children(attr)

    def used(self) -> list[Lifetime]:
        """What is used, in the order of its first use."""
        return sorted(
            [life for life in self.lifetimes.values() if life.first >= 0],
            key=lambda life: life.first,
        )


@dataclass
class Piece:
    """Bytes that buffers use one after another, or pieces side by side that later ones use together."""

    users: list[Lifetime]
    parts: list[Piece] = field(default_factory=list)
    last: int = -1

    def size(self) -> PrimExpr:
        """How many bytes there are."""
        sizes = [_bytes(user) for user in self.users]
        if self.parts:
            together: PrimExpr = const(0, "int32")
            for part in self.parts:
                together = together + part.size()
            sizes.append(together)
        total = sizes[0]
        for size in sizes[1:]:
            total = op.maximum(total, size)
        return total

    def place(self, start: PrimExpr, starts: dict[Var, PrimExpr]) -> None:
        """Note where buffers begin, in bytes."""
        for user in self.users:
            starts[user.alloc.buffer_var] = start
        for part in self.parts:
            part.place(start, starts)
            start = start + part.size()


def _bytes(life: Lifetime) -> PrimExpr:
    alloc = life.alloc
    size = op.product([*alloc.extents, const(alloc.dtype.itemsize, "int32")])
    return op.floordiv(size + (ALIGNMENT - 1), ALIGNMENT) * ALIGNMENT


def arrange(lifetimes: Sequence[Lifetime]) -> list[Piece]:
    """Give each buffer bytes that nothing else uses at the time."""
    pieces: list[Piece] = []
    for life in lifetimes:
        free = [piece for piece in pieces if piece.last < life.first and _known(piece)]
        chosen = _chosen(life, free) if life.size is not None else []
        if len(chosen) == 1:
            piece = chosen[0]
            piece.users.append(life)
        else:
            piece = Piece([life], chosen)
            at = min([pieces.index(part) for part in chosen], default=len(pieces))
            pieces[at:at] = [piece]
            pieces = [other for other in pieces if other not in chosen]
        piece.last = life.last
    return pieces


def _chosen(life: Lifetime, free: list[Piece]) -> list[Piece]:
    """A free piece that is large enough, or smaller ones that are used together."""
    need = _constant(_bytes(life))
    by_size = sorted(free, key=lambda piece: (_constant(piece.size()), piece.last))
    large = [p for p in by_size if need <= _constant(p.size()) <= need * MATCH_RANGE]
    if large:
        return large[:1]
    chosen: list[Piece] = []
    total = 0
    for piece in reversed(by_size):
        size = _constant(piece.size())
        if total >= need or not need <= size * MATCH_RANGE < need * MATCH_RANGE:
            continue
        chosen.append(piece)
        total += size
    return chosen


def _known(piece: Piece) -> bool:
    return all([user.size is not None for user in piece.users])


def _constant(size: PrimExpr) -> int:
    return as_int(size)


class OutsideFinder(Visitor):
    """Collects the allocations of a scope that are around kernels."""

    def __init__(self, scope: str) -> None:
        self.scope = scope
        self.found: list[Allocate] = []

    def visit_allocate(self, alloc: Allocate) -> None:
        if storage_scope(alloc.buffer_var) == self.scope:
            self.found.append(alloc)
        self.visit(alloc.body)

    def visit_attr_stmt(self, attr: AttrStmt) -> None:
        if attr.attr_key != "thread_extent":
            self.visit(attr.body)


class SharedMerger(Rewriter):
    """Moves accesses into the common memory, kernel by kernel."""

    def __init__(self, scope: str, outside: Sequence[Allocate]) -> None:
        self.scope = scope
        self.outside = outside
        self.starts: dict[Var, PrimExpr] = {}  # in bytes
        self.views: dict[Buffer, Buffer] = {}
        self.memory: Var | None = None
        self.moved: dict[
            Var, None
        ] = {}  # allocations around kernels that these have themselves now

    def visit_attr_stmt(self, attr: AttrStmt) -> Stmt:
        if attr.attr_key != "thread_extent" or self.memory is not None:
            return self.rewrite_children(attr)
        used = KernelLifetimes(attr, self.scope, self.outside).used()
        if len(used) < 2:
            return self.rewrite_children(attr)
        total: PrimExpr = const(0, "int32")
        for piece in arrange(used):
            piece.place(total, self.starts)
            total = total + piece.size()
        name = "buf_dyn_shmem" if self.scope == "shared.dyn" else "buf_shmem"
        self.memory = Var(name, pointer_type("uint8", self.scope))
        body = Allocate(self.memory, UINT8, (total,), TRUE, self.visit(attr.body))
        self.memory = None
        self.moved |= dict.fromkeys(self.starts)
        self.starts.clear()
        self.views.clear()
        return attr.replace(body=body)

    def visit_allocate(self, alloc: Allocate) -> Stmt:
        new = self.rewrite_children(alloc)
        is_merged = alloc.buffer_var in self.starts or alloc.buffer_var in self.moved
        return new.body if is_merged else new

    def visit_decl_buffer(self, decl: DeclBuffer) -> Stmt:
        new = self.rewrite_children(decl)
        if decl.buffer.data not in self.starts:
            return new.body if decl.buffer.data in self.moved else new
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

    def visit_call(self, call: Call) -> PrimExpr:
        name = getattr(call.op, "name", "")
        place = _POINTERS.get(name)
        known = place is not None and place < len(call.args) and call.args[place] in self.starts
        if place is None or not known:
            return self.rewrite_children(call)
        pointer, index = call.args[place], self.visit(call.args[place + 1])
        assert isinstance(pointer, Var)
        if name == "tir.tvm_access_ptr":
            offset = op.add(self._start(pointer, call.args[0].dtype), index)
        else:
            # the common memory is one of bytes
            offset = op.add(self._start(pointer, call.dtype), index) * call.dtype.itemsize
        args = [self.visit(arg) if arg is not pointer else self.memory for arg in call.args]
        args[place + 1] = offset
        return call.replace(args=tuple(args))

    def visit_var(self, var: Var) -> PrimExpr:
        if var in self.starts:
            raise LoweringError(
                f"MergeSharedMemoryAllocations requires accesses at known places, got {var.name}"
            )
        return var

    def _view(self, buffer: Buffer) -> Buffer:
        if buffer not in self.views:
            self.views[buffer] = buffer.replace(data=self.memory)
        return self.views[buffer]

    def _start(self, pointer: Var, dtype: DType) -> PrimExpr:
        return op.floordiv(self.starts[pointer], dtype.itemsize)

    def _shifted(self, access: BufferLoad | BufferStore) -> tuple[PrimExpr, ...]:
        (index,) = access.indices
        return (op.add(index, self._start(access.buffer.data, access.buffer.dtype)),)


# where intrinsics have a pointer, behind which an index stands
_POINTERS = {"tir.ptx_cp_async": 0, "tir.tvm_access_ptr": 1, "tir.ptx_ldmatrix": 5}


def merged(body: Stmt, scope: str) -> Stmt:
    """A function's body with the memory of a scope in one piece a kernel."""
    outside = OutsideFinder(scope)
    outside.visit(body)
    result: Stmt = SharedMerger(scope, outside.found).visit(body)
    return result


@prim_func_pass("tir.MergeSharedMemoryAllocations")
def merge_shared_memory(func: PrimFunc) -> PrimFunc:
    """Merge the dynamic shared memory of each kernel, and the static if asked to."""
    body = merged(func.body, "shared.dyn")
    if PassContext.current().get("tir.merge_static_smem", False):
        body = merged(body, "shared")
    return func.with_body(body)


MergeSharedMemoryAllocations = merge_shared_memory.factory
