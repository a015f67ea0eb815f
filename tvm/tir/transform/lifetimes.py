"""When allocations are in use, in steps of the program's text.

A use inside a loop counts for the whole of the loop, unless the memory is allocated in there too. Each thread has the
allocations within it: the function, the body of a parallel loop, the statements of a device's thread.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tvm.ir.visitor import Visitor
from tvm.tir.expr import BufferLoad, Call, Let, Var
from tvm.tir.stmt import (
    Allocate,
    AttrStmt,
    BufferStore,
    For,
    ForKind,
    IfThenElse,
    LetStmt,
    Stmt,
    While,
)
from tvm.tir.transform.common import contains, variables_of
from tvm.tir.transform.launch_memory import LAUNCH_POINT

REGISTER_BYTES = 4


@dataclass(frozen=True)
class StorageRewriteConfig:
    """What is planned."""

    # allocations up to this size share no memory; by default those that are registers
    small_bytes: int = REGISTER_BYTES
    # for kernels of processors: what is small stays where it is, on the stack; memory is shared within one
    # data type; memory of variable size leaves no loop or branch; pointers keep their types
    for_kernels: bool = False


@dataclass
class Lifetime:
    """When an allocation is in use."""

    alloc: Allocate
    size: int | None  # if it is constant
    thread: Thread
    loops: int  # loops around the allocation
    is_small: bool = False
    is_flat: bool = True  # one dimension of memory
    first: int = -1
    last: int = -1
    first_user: Stmt | None = None  # the loop or store that all of the first uses are in
    last_user: Stmt | None = None

    @property
    def bits(self) -> int | None:
        """The size in bits."""
        dtype = self.alloc.dtype
        return None if self.size is None else self.size * dtype.bits * dtype.lanes

    @property
    def scope(self) -> str:
        """Where the memory lies."""
        return storage_scope(self.alloc.buffer_var)


@dataclass
class Thread:
    """A part of the program run by one thread: the function, or the body of a parallel loop."""

    body: Stmt
    loops: int = 0  # loops around the body, a parallel one included
    lifetimes: list[Lifetime] = field(default_factory=list)
    bound: dict[Var, None] = field(default_factory=dict)  # variables that get values within


def storage_scope(var: Var) -> str:
    """Where the memory of a pointer lies."""
    return getattr(var.type_annotation, "storage_scope", "") or "global"


def is_on_host(scope: str) -> bool:
    """Whether memory of this scope is a processor's own."""
    return scope in ("global", "local")


def is_tagged(scope: str) -> bool:
    """Whether the scope names memory of a special unit, all of which is one piece."""
    for rank in ("global", "shared", "local"):
        if scope.startswith(rank):
            tag = scope.removeprefix(rank)
            return tag not in (
                "",
                ".dyn",
                ".barrier",
                ".workspace",
                ".vtcm",
            ) and not tag.startswith(".texture")
    return False


def is_register(scope: str) -> bool:
    """Whether memory of this scope is in registers of threads."""
    return scope == "local" or scope.startswith(("warp", "wmma.", "m16n8k8.", "metal."))


class LifetimeFinder(Visitor):
    """Walks the program in order."""

    def __init__(self, body: Stmt, config: StorageRewriteConfig) -> None:
        self.config = config
        self.step = 0
        self.loop_starts: list[int] = []
        self.open: list[list[Lifetime]] = []  # by loop: what was used in it
        self.thread = Thread(body)
        self.branches = 0  # conditions around what is visited
        self.threads = [self.thread]
        self.lifetimes: dict[Var, Lifetime] = {}
        self.store: Stmt | None = None  # the store that is visited

    def visit_allocate(self, alloc: Allocate) -> None:
        size = alloc.constant_size()
        life = Lifetime(alloc, size, self.thread, len(self.loop_starts))
        life.is_small = self._is_small(life)
        stays = life.is_small and self.config.for_kernels and is_on_host(life.scope)
        if not stays and (size is not None or self._can_move(alloc, life.scope)):
            self.lifetimes[alloc.buffer_var] = life
            self.thread.lifetimes.append(life)
        self.visit_children(alloc)

    def _is_small(self, life: Lifetime) -> bool:
        limit = self.config.small_bytes if is_on_host(life.scope) else REGISTER_BYTES
        if life.size is not None and life.size * life.alloc.dtype.itemsize <= limit:
            return not is_tagged(life.scope)
        return not self.config.for_kernels and is_register(life.scope)

    def _can_move(self, alloc: Allocate, scope: str) -> bool:
        """Whether memory of variable size can be made at the beginning of the thread."""
        if any([contains(e, _reads_or_calls) for e in alloc.extents]):
            return False
        if self.config.for_kernels and is_on_host(scope):
            return len(self.loop_starts) == self.thread.loops and not self.branches
        used = [var for extent in alloc.extents for var in variables_of(extent)]
        return not any([var in self.thread.bound for var in used])

    def visit_if_then_else(self, stmt: IfThenElse) -> None:
        self.branches += 1
        self.visit_children(stmt)
        self.branches -= 1

    def visit_let_stmt(self, let: LetStmt) -> None:
        self.visit(let.value)
        self.branches += 1
        self.thread.bound[let.var] = None
        self.visit(let.body)
        self.branches -= 1

    def visit_let(self, let: Let) -> None:
        self.visit(let.value)
        self.visit(let.body)

    def visit_for(self, loop: For) -> None:
        self.visit(loop.min)
        self.visit(loop.extent)
        if loop.kind in (ForKind.PARALLEL, ForKind.THREAD_BINDING):
            self._in_thread(loop, loop.body)
        else:
            self.thread.bound[loop.loop_var] = None
            self._in_loop(loop, loop.body)

    def visit_while(self, loop: While) -> None:
        self._in_loop(loop, loop)

    def visit_attr_stmt(self, attr: AttrStmt) -> None:
        if attr.attr_key in ("thread_extent", LAUNCH_POINT, "device_scope"):
            self._in_thread(attr, attr.body)
        else:
            self.visit_children(attr)

    def _in_thread(self, node: Stmt, body: Stmt) -> None:
        outer, self.thread = self.thread, Thread(body, len(self.loop_starts) + 1)
        self.threads.append(self.thread)
        self._in_loop(node, body)
        outer.bound |= self.thread.bound
        self.thread = outer

    def _in_loop(self, node: Stmt, body: Stmt) -> None:
        self.loop_starts.append(self.step)
        self.open.append([])
        if isinstance(body, While):
            self.visit_children(body)
        else:
            self.visit(body)
        start, used = self.loop_starts.pop(), self.open.pop()
        for life in used:
            if life.loops <= len(self.loop_starts):
                if life.first >= start:
                    life.first, life.first_user = start, node
                life.last, life.last_user = self.step, node
                if self.open:
                    self.open[-1].append(life)
        self.step += 1

    def visit_buffer_store(self, store: BufferStore) -> None:
        # kernels keep what is made within a loop apart from what is read there
        self.store = None if self.config.for_kernels else store
        self.visit_children(store)
        self._use(store.buffer.data, bool(store.buffer.axis_separators))
        self.store = None
        self.step += 1

    def visit_buffer_load(self, load: BufferLoad) -> None:
        self._use(load.buffer.data, bool(load.buffer.axis_separators))
        self.visit_children(load)

    def visit_var(self, var: Var) -> None:
        if var.dtype.is_handle:
            self._use(var)

    def visit_evaluate(self, stmt: Stmt) -> None:
        self.visit_children(stmt)
        self.step += 1

    def _use(self, var: Var, has_parts: bool = False) -> None:
        life = self.lifetimes.get(var)
        if life is None:
            return
        life.is_flat &= not has_parts
        if life.first < 0:
            life.first, life.first_user = self.step, self.store
        life.last, life.last_user = self.step, self.store
        if self.open:
            self.open[-1].append(life)


def _reads_or_calls(node: object) -> bool:
    return isinstance(node, (BufferLoad, Call))
