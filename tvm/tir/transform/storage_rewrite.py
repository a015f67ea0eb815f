"""Let allocations that are not live at the same time share memory, outside of loops.

    for i in range(8):           ->    A = allocate([4096])
        A = allocate([4096])           for i in range(8):
        ... A ...                          ... A ...
        B = allocate([4096])               ... A ...
        ... B ...

An allocation also takes over the memory of one that is read for the last time in the loop that fills it,
if each element is written where it was read (``in_place.py``). Small allocations stay: they are registers or lie
on the stack. Those of variable size share memory with others of the same size, if no loop or branch is around them.
Memory that a thread uses is allocated in that thread, apart from what threads fill together (``launch_memory.py``).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tvm.ir.expr import PrimExpr
from tvm.ir.structural import structural_equal
from tvm.ir.visitor import Visitor
from tvm.support.dtype import DType
from tvm.tir.expr import BufferLoad, Call, Var, const
from tvm.tir.function import PrimFunc
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
from tvm.tir.stmt_functor import BufferRewriter
from tvm.tir.transform.common import TRUE, contains, prim_func_pass
from tvm.tir.transform.in_place import is_in_place
from tvm.tir.transform.launch_memory import LAUNCH_POINT, SharedMemoryHoister

# memory may be shared by allocations whose sizes differ by this factor
MATCH_RANGE = 16


@dataclass(frozen=True)
class StorageRewriteConfig:
    """What is planned."""

    small_bytes: int = (
        4  # allocations up to this size stay where they are, for registers or the stack
    )


@dataclass
class Lifetime:
    """When an allocation is in use, in steps of the program's text."""

    alloc: Allocate
    size: int | None  # if it is constant
    thread: Thread
    loops: int  # loops around the allocation
    first: int = -1
    last: int = -1
    first_loop: Stmt | None = None  # the loop that all of the first uses are in
    last_loop: Stmt | None = None


@dataclass
class Thread:
    """A part of the program run by one thread: the function, or the body of a parallel loop."""

    body: Stmt
    loops: int = 0  # loops around the body, a parallel one included
    lifetimes: list[Lifetime] = field(default_factory=list)


@dataclass
class Block:
    """Memory that allocations share."""

    var: Var
    dtype: DType
    scope: str
    size: int | None
    extents: tuple[PrimExpr, ...]  # of variable size
    owner: Lifetime  # of what lies there now

    def all_extents(self) -> tuple[PrimExpr, ...]:
        """The size of the memory."""
        return self.extents if self.size is None else (const(self.size, "int32"),)


class LifetimeFinder(Visitor):
    """Walks the program in order. A use inside a loop counts for the whole of the loop, unless the
    memory is allocated in there too."""

    def __init__(self, body: Stmt, config: StorageRewriteConfig) -> None:
        self.config = config
        self.step = 0
        self.loop_starts: list[int] = []
        self.open: list[list[Lifetime]] = []  # by loop: what was used in it
        self.thread = Thread(body)
        self.branches = 0  # conditions around what is visited
        self.threads = [self.thread]
        self.lifetimes: dict[Var, Lifetime] = {}

    def visit_allocate(self, alloc: Allocate) -> None:
        size = alloc.constant_size()
        is_large = size is not None and size * alloc.dtype.itemsize > self.config.small_bytes
        is_known = not any([contains(e, _reads_or_calls) for e in alloc.extents])
        if is_large or (size is None and is_known and self._is_always_made()):
            life = Lifetime(alloc, size, self.thread, len(self.loop_starts))
            self.lifetimes[alloc.buffer_var] = life
            self.thread.lifetimes.append(life)
        self.visit_children(alloc)

    def _is_always_made(self) -> bool:
        """Whether every run of the thread comes past here once, with what it knew at its start."""
        return len(self.loop_starts) == self.thread.loops and not self.branches

    def visit_if_then_else(self, stmt: IfThenElse) -> None:
        self.branches += 1
        self.visit_children(stmt)
        self.branches -= 1

    def visit_let_stmt(self, let: LetStmt) -> None:
        self.visit(let.value)
        self.branches += 1
        self.visit(let.body)
        self.branches -= 1

    def visit_for(self, loop: For) -> None:
        self.visit(loop.min)
        self.visit(loop.extent)
        if loop.kind in (ForKind.PARALLEL, ForKind.THREAD_BINDING):
            self._in_thread(loop, loop.body)
        else:
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
                    life.first, life.first_loop = start, node
                life.last, life.last_loop = self.step, node
                if self.open:
                    self.open[-1].append(life)
        self.step += 1

    def visit_buffer_store(self, store: BufferStore) -> None:
        self.visit_children(store)
        self._use(store.buffer.data)
        self.step += 1

    def visit_buffer_load(self, load: BufferLoad) -> None:
        self._use(load.buffer.data)
        self.visit_children(load)

    def visit_var(self, var: Var) -> None:
        if var.dtype.is_handle:
            self._use(var)

    def visit_evaluate(self, stmt: Stmt) -> None:
        self.visit_children(stmt)
        self.step += 1

    def _use(self, var: Var) -> None:
        life = self.lifetimes.get(var)
        if life is None:
            return
        if life.first < 0:
            life.first = self.step
        life.last, life.last_loop = self.step, None
        if self.open:
            self.open[-1].append(life)


def _reads_or_calls(node: object) -> bool:
    return isinstance(node, (BufferLoad, Call))


def share(lifetimes: list[Lifetime]) -> tuple[dict[Var, Block], list[Block]]:
    """Give each allocation a block; a block is free again after its last use."""
    blocks: list[Block] = []
    chosen: dict[Var, Block] = {}
    for life in sorted(lifetimes, key=lambda life: life.first):
        alloc = life.alloc
        scope = storage_scope(alloc.buffer_var)
        fitting = [
            block
            for block in blocks
            if (block.owner.last < life.first or takes_over(life, block.owner))
            and block.dtype is alloc.dtype
            and block.scope == scope
            and difference(life, block) is not None
        ]
        if fitting and not alloc.annotations:
            block = min(fitting, key=lambda block: difference(life, block) or 0)
            if life.size is not None and block.size is not None:
                block.size = max(block.size, life.size)
            block.owner = life
        else:
            block = Block(alloc.buffer_var, alloc.dtype, scope, life.size, alloc.extents, life)
            blocks.append(block)
        chosen[alloc.buffer_var] = block
    return chosen, blocks


def difference(life: Lifetime, block: Block) -> int | None:
    """How far apart the sizes are; None if memory of the one is no good for the other."""
    if life.size is None or block.size is None:
        both = life.size is None and block.size is None
        return 0 if both and structural_equal(life.alloc.extents, block.extents) else None
    small, large = sorted([life.size, block.size])
    return large - small if large <= small * MATCH_RANGE else None


def takes_over(life: Lifetime, old: Lifetime) -> bool:
    """Whether the loop that begins one lifetime ends the other, element by element."""
    loop = life.first_loop
    if loop is None or loop is not old.last_loop or life.alloc.dtype is not old.alloc.dtype:
        return False
    return is_in_place(loop, life.alloc.buffer_var, old.alloc.buffer_var)


def storage_scope(var: Var) -> str:
    """Where the memory of a pointer lies."""
    return getattr(var.type_annotation, "storage_scope", "") or "global"


class StoragePlanner(BufferRewriter):
    """Moves allocations to the beginning of their threads."""

    def __init__(self, threads: list[Thread]) -> None:
        super().__init__()
        self.blocks: dict[int, list[Block]] = {}  # by the identity of a thread's body
        self.chosen: dict[Var, Block] = {}
        for thread in threads:
            chosen, blocks = share(thread.lifetimes)
            in_loops = any([life.loops > thread.loops for life in thread.lifetimes])
            if in_loops or len(blocks) < len(chosen):
                self.chosen.update(chosen)
                self.blocks[id(thread.body)] = blocks

    def plan(self, body: Stmt) -> Stmt:
        """A thread's body with its memory allocated in front."""
        planned: Stmt = self.visit(body)
        for block in reversed(self.blocks.get(id(body), ())):
            planned = Allocate(block.var, block.dtype, block.all_extents(), TRUE, planned)
        return planned

    def visit_allocate(self, alloc: Allocate) -> Stmt:
        if alloc.buffer_var in self.chosen:
            body: Stmt = self.visit(alloc.body)
            return body
        return self.rewrite_children(alloc)

    def visit_var(self, var: Var) -> PrimExpr:
        block = self.chosen.get(var)
        return var if block is None else block.var

    def visit_for(self, loop: For) -> Stmt:
        if id(loop.body) not in self.blocks:
            return self.rewrite_children(loop)
        start, extent = self.visit(loop.min), self.visit(loop.extent)
        return loop.replace(min=start, extent=extent, body=self.plan(loop.body))

    def visit_attr_stmt(self, attr: AttrStmt) -> Stmt:
        node = self.visit(attr.node) if isinstance(attr.node, Var) else attr.node
        if id(attr.body) not in self.blocks:
            attr = self.rewrite_children(attr)
            return attr if node is attr.node else attr.replace(node=node)
        return attr.replace(node=node, value=self.visit(attr.value), body=self.plan(attr.body))


@prim_func_pass("tir.StorageRewrite", StorageRewriteConfig)
def storage_rewrite(func: PrimFunc, config: StorageRewriteConfig) -> PrimFunc:
    """Share memory between allocations, and allocate outside of loops."""
    body = SharedMemoryHoister().visit(func.body)
    finder = LifetimeFinder(body, config)
    finder.visit(body)
    planner = StoragePlanner(finder.threads)
    return func.with_body(planner.plan(body) if planner.blocks else body)


StorageRewrite = storage_rewrite.factory
