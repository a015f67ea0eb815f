"""The innermost loop or block around all accesses of each buffer."""

from __future__ import annotations

from typing import Any

from tvm.ir.visitor import Visitor
from tvm.tir.buffer import Buffer
from tvm.tir.expr import BufferLoad, IterVar, Var
from tvm.tir.function import PrimFunc
from tvm.tir.stmt import BlockRealize, BufferRegion, BufferStore, For, Stmt


def detect_buffer_access_lca(func: PrimFunc) -> dict[Buffer, Stmt | None]:
    """For each buffer that is accessed, the lowest common ancestor of its accesses among loops and blocks.

    The opaque uses of a pointer count for the buffers over it; None stands for the function itself.
    """
    finder = AncestorFinder(func)
    finder.visit(func.body)
    return {buffer: (path[-1] if path else None) for buffer, path in finder.common.items()}


class AncestorFinder(Visitor):
    """Keeps the path of loops and blocks, and for each buffer the part common to its accesses.

    What a reduction block accesses is accessed by all iterations of the reduction: its loops are left out.
    """

    def __init__(self, func: PrimFunc) -> None:
        self.path: list[Stmt] = []
        self.common: dict[Buffer, list[Stmt]] = {}
        self.of_pointer: dict[Var, list[Buffer]] = {}
        for buffer in func.buffer_map.values():
            self.of_pointer.setdefault(buffer.data, []).append(buffer)

    def visit_for(self, loop: For) -> None:
        self.visit(loop.min)
        self.visit(loop.extent)
        self._inside(loop, loop.body)

    def visit_block_realize(self, realize: BlockRealize) -> None:
        for value in realize.iter_values:
            self.visit(value)
        self.visit(realize.predicate)
        block = realize.block
        for buffer in block.alloc_buffers:
            self.of_pointer.setdefault(buffer.data, []).append(buffer)
        reduced: dict[Var, None] = {}
        for axis, value in zip(block.iter_vars, realize.iter_values, strict=True):
            if axis.iter_type != IterVar.DataPar:
                collect_variables(value, reduced)
        shared = [s for s in self.path if isinstance(s, For) and s.loop_var in reduced]
        limit = self.path.index(shared[0]) if shared else len(self.path)
        for region in block.writes if shared else ():
            self._touch(region.buffer, limit)
        self.path.append(block)
        if block.init is not None:
            self.visit(block.init)
        self.visit(block.body)
        for match in block.match_buffers:
            self._touch(match.source.buffer, len(self.path))
        self.path.pop()

    def visit_buffer_region(self, region: BufferRegion) -> None:
        """Regions only repeat what the body does."""

    def visit_buffer_load(self, load: BufferLoad) -> None:
        self._touch(load.buffer, len(self.path))
        self.visit_children(load)

    def visit_buffer_store(self, store: BufferStore) -> None:
        self._touch(store.buffer, len(self.path))
        self.visit_children(store)

    def visit_var(self, var: Var) -> None:
        for buffer in self.of_pointer.get(var, ()):
            self._touch(buffer, len(self.path))

    def _inside(self, stmt: Stmt, body: Any) -> None:
        self.path.append(stmt)
        self.visit(body)
        self.path.pop()

    def _touch(self, buffer: Buffer, depth: int) -> None:
        known = self.common.get(buffer)
        path = self.path[:depth]
        if known is None:
            self.common[buffer] = path
            return
        length = 0
        for a, b in zip(known, path, strict=False):
            if a is not b:
                break
            length += 1
        self.common[buffer] = known[:length]


def collect_variables(node: Any, found: dict[Var, None]) -> None:
    """Add the variables of an expression."""
    if isinstance(node, Var):
        found[node] = None
    for below in node.children():
        collect_variables(below, found)
