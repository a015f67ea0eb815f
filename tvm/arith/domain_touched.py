"""The box of a buffer's elements that a statement reads or writes.

for i, j in grid(100, m):
    A[i, j] = A[i - 1, j - 1]       A: [-1, 100) x [-1, m), read alone: [-1, 99) x [-1, m - 1)
"""

from __future__ import annotations

from typing import Any

from tvm._ffi import register_func
from tvm.ir.expr import PrimExpr
from tvm.ir.visitor import Visitor
from tvm.support.scope import deep
from tvm.tir import expr as tir
from tvm.tir import op
from tvm.tir.buffer import Buffer
from tvm.tir.stmt import AttrStmt, BufferStore, For, LetStmt, Stmt

from .analyzer import Analyzer
from .interval import IntervalSet, evaluate_set, union


@register_func("arith.DomainTouched", override=True)
@deep
def domain_touched(
    stmt: Stmt, buffer: Buffer, consider_loads: bool, consider_stores: bool
) -> list[tir.Range]:
    """What a statement touches of a buffer.

    Parameters
    ----------
    stmt : tir.Stmt
    buffer : tir.Buffer
    consider_loads, consider_stores : bool
        Which accesses count.

    Returns
    -------
    list of Range
        For each axis the smallest range that holds all indices; nothing if there is no access.
    """
    visitor = _TouchedIndices(buffer, consider_loads, consider_stores)
    visitor.visit(stmt)
    return [visitor.cover(sets) for sets in visitor.touched]


class _TouchedIndices(Visitor):
    """Collects the sets of indices, axis by axis."""

    def __init__(self, buffer: Buffer, loads: bool, stores: bool) -> None:
        self.buffer, self.loads, self.stores = buffer, loads, stores
        self.analyzer = Analyzer()
        self.domains: dict[Any, Any] = {}
        self.touched: list[list[IntervalSet]] = []

    def visit_for(self, loop: For) -> None:
        self.domains[loop.loop_var] = tir.Range.from_min_extent(loop.min, loop.extent)
        self.visit_children(loop)

    def visit_let_stmt(self, let: LetStmt) -> None:
        self.domains[let.var] = evaluate_set(self.analyzer, let.value, self.domains)
        self.visit_children(let)

    def visit_attr_stmt(self, attr: AttrStmt) -> None:
        if attr.attr_key == "thread_extent" and isinstance(attr.node, tir.IterVar):
            self.domains[attr.node.var] = tir.Range.from_min_extent(0, attr.value)
        self.visit_children(attr)

    def visit_buffer_load(self, load: tir.BufferLoad) -> None:
        if self.loads and load.buffer.same_as(self.buffer):
            self._note(load.indices)
        self.visit_children(load)

    def visit_buffer_store(self, store: BufferStore) -> None:
        if self.stores and store.buffer.same_as(self.buffer):
            self._note(store.indices)
        self.visit_children(store)

    def _note(self, indices: tuple[PrimExpr, ...]) -> None:
        self.touched = self.touched or [[] for _ in indices]
        for sets, index in zip(self.touched, indices, strict=True):
            sets.append(evaluate_set(self.analyzer, index, self.domains))

    def cover(self, sets: list[IntervalSet]) -> tir.Range:
        """The smallest range that holds all sets."""
        total, *rest = sets
        for part in rest:
            total = union(self.analyzer, total, part)
        extent = op.add(op.subtract(total.max_value, total.min_value), 1)
        return tir.Range.from_min_extent(total.min_value, self.analyzer.simplify(extent))
