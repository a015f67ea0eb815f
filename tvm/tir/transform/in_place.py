"""Whether a loop may write its results over what it reads.

for i in range(n):
    T[i] = exp(S[i])          T may lie where S is
"""

from __future__ import annotations

from collections.abc import Sequence

from tvm.arith import IterMapLevel, detect_iter_map
from tvm.ir.expr import PrimExpr
from tvm.ir.structural import structural_equal
from tvm.ir.visitor import Visitor
from tvm.tir.buffer import Buffer
from tvm.tir.expr import BufferLoad, IterVar, Ramp, Range, Var
from tvm.tir.stmt import AttrStmt, BufferStore, For, Stmt, While
from tvm.tir.transform.common import is_const


def is_in_place(loop: Stmt, target: Var, source: Var) -> bool:
    """Whether each element of ``source`` is read only for the element of ``target`` in its place.

    There is one store to the target, to another element in each iteration, and its value is all that
    reads the source; nothing reads the target.
    """
    finder = _AccessFinder(target, source)
    finder.visit(loop)
    store = finder.store
    if finder.is_mixed or store is None:
        return False
    return _is_injective(store.indices, finder.store_domains)


class _AccessFinder(Visitor):
    def __init__(self, target: Var, source: Var) -> None:
        self.target, self.source = target, source
        self.store: BufferStore | None = None
        self.domains: dict[Var, Range] = {}
        self.store_domains: dict[Var, Range] = {}
        self.is_mixed = False  # accesses of another form were found
        self.storing: BufferStore | None = None  # the store whose value is visited

    def visit_for(self, loop: For) -> None:
        self.visit(loop.min)
        self.visit(loop.extent)
        self._over(loop.loop_var, Range.from_min_extent(loop.min, loop.extent), loop.body)

    def visit_while(self, loop: While) -> None:
        self.is_mixed = True

    def visit_attr_stmt(self, attr: AttrStmt) -> None:
        if attr.attr_key in ("thread_extent", "virtual_thread") and isinstance(attr.node, IterVar):
            self._over(attr.node.var, Range(0, attr.value), attr.body)
        else:
            self.visit_children(attr)

    def _over(self, var: Var, domain: Range, body: Stmt) -> None:
        self.domains[var] = domain
        self.visit(body)
        del self.domains[var]

    def visit_buffer_store(self, store: BufferStore) -> None:
        for index in store.indices:
            self.visit(index)
        if store.buffer.data is self.source:
            self.is_mixed = True
        if store.buffer.data is not self.target:
            self.visit(store.value)
            return
        if self.store is not None or not _is_plain(store.buffer) or store.predicate is not None:
            self.is_mixed = True
        self.store, self.store_domains = store, dict(self.domains)
        self.storing = store
        self.visit(store.value)
        self.storing = None

    def visit_buffer_load(self, load: BufferLoad) -> None:
        if load.buffer.data is self.source:
            self.is_mixed |= not self._is_in_its_place(load)
        elif load.buffer.data is self.target:
            self.is_mixed = True
        for index in load.indices:
            self.visit(index)

    def _is_in_its_place(self, load: BufferLoad) -> bool:
        store = self.storing
        if store is None or not structural_equal(load.indices, store.indices):
            return False
        if len(load.indices) > 1 and not structural_equal(load.buffer.shape, store.buffer.shape):
            return False
        return _is_plain(load.buffer) and load.predicate is None

    def visit_var(self, var: Var) -> None:
        if var is self.source or var is self.target:
            self.is_mixed = True


def _is_plain(buffer: Buffer) -> bool:
    """Whether the indices say where an element lies."""
    return not buffer.strides and is_const(buffer.elem_offset, 0)


def _is_injective(indices: Sequence[PrimExpr], domains: dict[Var, Range]) -> bool:
    """Whether no two iterations have an element in common."""
    if not domains:
        return True
    *outer, index = indices
    if isinstance(index, Ramp):
        lane = Var("lane", index.base.dtype)
        domains = {**domains, lane: Range(0, index.lanes)}
        index = index.base + index.stride * lane
    if any([each.dtype.lanes != 1 for each in (*outer, index)]):
        return False
    found = detect_iter_map([*outer, index], domains, True, IterMapLevel.Bijective)
    return bool(found.indices)
