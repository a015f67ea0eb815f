"""Let allocations that are not live at the same time share memory, outside of loops.

    for i in range(8):           ->    A = allocate([4096])
        A = allocate([4096])           for i in range(8):
        ... A ...                          ... A ...
        B = allocate([4096])               ... A ...
        ... B ...

An allocation also takes over the memory of one that is read for the last time in the loop or statement that fills it,
if each element is written where it was read (``in_place.py``). Memory that a thread uses is allocated in that thread,
apart from what threads fill together (``launch_memory.py``). Memory that nothing uses is not allocated.
Pointers that are accessed by whole vectors point to vectors then.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tvm.ir.expr import PrimExpr
from tvm.tir.buffer import Buffer
from tvm.tir.expr import Broadcast, BufferLoad, Var, const
from tvm.tir.function import PrimFunc
from tvm.tir.stmt import Allocate, AttrStmt, BufferStore, DeclBuffer, For, Stmt
from tvm.tir.stmt_functor import BufferRewriter
from tvm.tir.transform.common import prim_func_pass
from tvm.tir.transform.launch_memory import SharedMemoryHoister
from tvm.tir.transform.lifetimes import (
    Lifetime,
    LifetimeFinder,
    StorageRewriteConfig,
    Thread,
    storage_scope,
)
from tvm.tir.transform.pointer_value_type import with_vector_allocations
from tvm.tir.transform.storage_sharing import Block, SharingRules, join_tagged, share

# kinds of targets whose memory has one data type
EXACT_KINDS = ("vulkan", "webgpu")

__all__ = ["StorageRewrite", "storage_rewrite", "storage_scope"]


class StoragePlanner(BufferRewriter):
    """Moves allocations to the beginning of their threads."""

    def __init__(self, threads: list[Thread], rules: SharingRules) -> None:
        super().__init__()
        self.blocks: dict[int, list[Block]] = {}  # by the identity of a thread's body
        self.chosen: dict[Var, Block] = {}
        self.unused: dict[Var, None] = {}
        for thread in threads:
            self._plan(thread, rules)

    def _plan(self, thread: Thread, rules: SharingRules) -> None:
        used = [life for life in thread.lifetimes if life.first >= 0]
        self.unused |= {life.alloc.buffer_var: None for life in thread.lifetimes if life.first < 0}
        chosen = share(used, rules)
        blocks = list({id(block): block for block in chosen.values()}.values())
        joined = join_tagged(blocks)
        if len(joined) == len(used) and not any([_is_inside(life, thread) for life in used]):
            return
        self.chosen.update(chosen)
        self.blocks[id(thread.body)] = [
            block if bits is None else replace(block, bits=bits, allocs=block.allocs[:1])
            for block, bits in joined
        ]

    def is_needed(self) -> bool:
        """Whether anything changes."""
        return bool(self.blocks or self.unused)

    def plan(self, body: Stmt) -> Stmt:
        """A thread's body with its memory allocated in front."""
        planned: Stmt = self.visit(body)
        for block in reversed(self.blocks.get(id(body), ())):
            planned = block.allocate(planned)
        return planned

    def visit_allocate(self, alloc: Allocate) -> Stmt:
        if alloc.buffer_var in self.chosen or alloc.buffer_var in self.unused:
            body: Stmt = self.visit(alloc.body)
            return body
        return self.rewrite_children(alloc)

    def visit_decl_buffer(self, node: DeclBuffer) -> Stmt:
        if node.buffer.data in self.unused:
            body: Stmt = self.visit(node.body)
            return body
        return super().visit_decl_buffer(node)

    def visit_var(self, var: Var) -> PrimExpr:
        block = self.chosen.get(var)
        return var if block is None or block.var is None else block.var

    def visit_buffer_load(self, load: BufferLoad) -> PrimExpr:
        moved: PrimExpr = self._moved(super().visit_buffer_load(load), load.buffer)
        return moved

    def visit_buffer_store(self, node: BufferStore) -> Stmt:
        moved: Stmt = self._moved(super().visit_buffer_store(node), node.buffer)
        return moved

    def _moved(self, access: Any, buffer: Buffer) -> Any:
        """The access within its part of the memory."""
        block = self.chosen.get(buffer.data)
        if block is None or not block.offset:
            return access
        (index,) = access.indices
        start: PrimExpr = const(block.offset // buffer.dtype.bits, index.dtype.with_lanes(1))
        if index.dtype.lanes > 1:
            start = Broadcast(start, index.dtype.lanes)
        return access.replace(indices=(start + index,))

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


def _is_inside(life: Lifetime, thread: Thread) -> bool:
    """Whether the allocation is in a loop of its thread."""
    return life.loops > thread.loops


@prim_func_pass("tir.StorageRewrite", StorageRewriteConfig)
def storage_rewrite(func: PrimFunc, config: StorageRewriteConfig) -> PrimFunc:
    """Share memory between allocations, and allocate outside of loops."""
    body = SharedMemoryHoister().visit(func.body)
    finder = LifetimeFinder(body, config)
    finder.visit(body)
    target = func.get_attr("target")
    exact = target is not None and target.kind.name in EXACT_KINDS
    planner = StoragePlanner(finder.threads, SharingRules(config.for_kernels, exact))
    if planner.is_needed():
        body = planner.plan(body)
    if not config.for_kernels:
        body = with_vector_allocations(body)
    return func.with_body(body)


StorageRewrite = storage_rewrite.factory
