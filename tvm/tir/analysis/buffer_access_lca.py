"""The innermost loop or block around all accesses of each buffer."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from tvm.ir.expr import PrimExpr
from tvm.ir.visitor import Visitor
from tvm.tir.analysis.undefined_vars import undefined_vars
from tvm.tir.buffer import Buffer
from tvm.tir.expr import BufferLoad, IterVar, Var
from tvm.tir.function import PrimFunc
from tvm.tir.stmt import BlockRealize, BufferRegion, BufferStore, For, Stmt


def detect_buffer_access_lca(func: PrimFunc) -> dict[Buffer, Stmt | None]:
    """For each buffer that is accessed, the lowest common ancestor of its accesses among loops and blocks.

    The opaque uses of a pointer count for the buffers over it; None stands for the function itself. Buffers
    of global memory that a kernel accesses are accessed by all its thread blocks: nothing inside of the
    loops over blocks is their ancestor.
    """
    return ancestors(func, keeps_sums=False)


def ancestors(func: PrimFunc, keeps_sums: bool) -> dict[Buffer, Stmt | None]:
    """The ancestors; ``keeps_sums``: of what a block sums up, outside of the loops that it sums over."""
    finder = AncestorFinder(func, keeps_sums)
    finder.visit(func.body)
    finder.leave_kernels()
    return {buffer: (path[-1] if path else None) for buffer, path in finder.common.items()}


class AncestorFinder(Visitor):
    """Keeps the path of loops and blocks, and for each buffer the part common to its accesses.

    The order of opaque axes of a block is unknown: what is accessed at such an axis may be accessed in any
    iteration of the loops that it is bound to.
    """

    def __init__(self, func: PrimFunc, keeps_sums: bool) -> None:
        self.keeps_sums = keeps_sums
        self.path: list[Stmt] = []
        self.common: dict[Buffer, list[Stmt]] = {}
        self.of_pointer: dict[Var, list[Buffer]] = {}
        self.depth_of: dict[
            Var, int
        ] = {}  # of opaque axes, the depth around the loops they are bound to
        self.kernels: list[list[Stmt]] = []  # the paths to loops over thread blocks
        for buffer in func.buffer_map.values():
            self.of_pointer.setdefault(buffer.data, []).append(buffer)

    def leave_kernels(self) -> None:
        """Move global buffers out of the loops over thread blocks."""
        for buffer in self.common:
            if buffer.scope() == "global":
                for path in self.kernels:
                    self._restrict(buffer, path)

    def visit_for(self, loop: For) -> None:
        self.visit(loop.min)
        self.visit(loop.extent)
        binding = loop.thread_binding
        if binding is not None and binding.thread_tag.startswith("blockIdx"):
            self.kernels.append([*self.path, loop])
        self._inside(loop, loop.body)

    def visit_block_realize(self, realize: BlockRealize) -> None:
        for value in realize.iter_values:
            self.visit(value)
        self.visit(realize.predicate)
        block = realize.block
        for buffer in block.alloc_buffers:
            self.of_pointer.setdefault(buffer.data, []).append(buffer)
        for axis, value in zip(block.iter_vars, realize.iter_values, strict=True):
            if axis.iter_type not in (IterVar.DataPar, IterVar.CommReduce):
                self.depth_of[axis.var] = self._depth_around(value)
            elif axis.iter_type == IterVar.CommReduce and self.keeps_sums:
                # what is summed up stays from one iteration to the next
                for region in block.writes:
                    self._touch(region.buffer, self._depth_around(value))
        self.path.append(block)
        if block.init is not None:
            self.visit(block.init)
        self.visit(block.body)
        for match in block.match_buffers:
            self._touch(match.source.buffer, len(self.path))
        self.path.pop()

    def _depth_around(self, value: PrimExpr) -> int:
        """How many loops and blocks stand around the outermost loop that a value depends on."""
        used = undefined_vars(value)
        inner = [
            i
            for i, s in enumerate(self.path)
            if isinstance(s, For) and any(map(s.loop_var.same_as, used))
        ]
        return min([*inner, len(self.path)])

    def visit_buffer_region(self, region: BufferRegion) -> None:
        """Regions only repeat what the body does."""

    def visit_buffer_load(self, load: BufferLoad) -> None:
        self._access(load)

    def visit_buffer_store(self, store: BufferStore) -> None:
        self._access(store)

    def _access(self, node: BufferLoad | BufferStore) -> None:
        used = [var for index in node.indices for var in undefined_vars(index)]
        depths = [self.depth_of[var] for var in used if var in self.depth_of]
        self._touch(node.buffer, min([*depths, len(self.path)]))
        self.visit_children(node)

    def visit_var(self, var: Var) -> None:
        for buffer in self.of_pointer.get(var, ()):
            self._touch(buffer, len(self.path))

    def _inside(self, stmt: Stmt, body: Any) -> None:
        self.path.append(stmt)
        self.visit(body)
        self.path.pop()

    def _touch(self, buffer: Buffer, depth: int) -> None:
        path = self.path[:depth]
        if buffer in self.common:
            self._restrict(buffer, path)
        else:
            self.common[buffer] = path

    def _restrict(self, buffer: Buffer, path: Sequence[Stmt]) -> None:
        known = self.common[buffer]
        same = itertools.takewhile(lambda pair: pair[0] is pair[1], zip(known, path, strict=False))
        self.common[buffer] = [stmt for stmt, _ in same]
