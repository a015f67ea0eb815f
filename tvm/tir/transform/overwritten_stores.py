"""Drop stores whose cells are written again before anybody reads them.

for i in range(4, 12):       ->    for i in range(16):
    A[i] = 100                         A[i] = 42
for i in range(16):
    A[i] = 42
"""

from __future__ import annotations

from tvm.ir.expr import PrimExpr
from tvm.ir.visitor import Visitor
from tvm.tir.analysis.side_effect import is_pure
from tvm.tir.expr import BufferLoad, Var
from tvm.tir.op import logical_not
from tvm.tir.stmt import (
    NO_OP,
    BufferStore,
    Evaluate,
    For,
    IfThenElse,
    LetStmt,
    SeqStmt,
    Stmt,
    seq,
)
from tvm.tir.transform.common import assumption, without_likely
from tvm.tir.transform.memory_follower import MemoryFollower


class OverwrittenStoreRemover(MemoryFollower):
    """Walks a program backwards, with the cells that are written before they are read from there on."""

    backwards = True

    def visit_prim_expr(self, e: PrimExpr) -> PrimExpr:
        self._read(e)
        return e

    def _read(self, *exprs: PrimExpr) -> None:
        for e in exprs:
            reader = _Reads()
            reader.visit(e)
            if reader.uses_pointers or not is_pure(e):
                self.memory.forget()
            for load in reader.found:
                self.memory.remove(load.buffer, load.indices)

    def visit_seq_stmt(self, block: SeqStmt) -> Stmt:
        stmts = [self.visit(stmt) for stmt in reversed(block.seq)][::-1]
        same = all([new is old for new, old in zip(stmts, block.seq, strict=True)])
        return block if same else seq(stmts)

    def visit_buffer_store(self, store: BufferStore) -> Stmt:
        if store.predicate is None and self.memory.covers(store.buffer, store.indices):
            if is_pure(store.value):
                return NO_OP
            self._read(store.value)
            return Evaluate(store.value)
        if store.predicate is None:
            self.memory.add(store.buffer, store.indices, None)
        self._read(store.value, *store.indices)
        return store

    def visit_evaluate(self, stmt: Evaluate) -> Stmt:
        if assumption(stmt) is None:
            self._read(stmt.value)
        return stmt

    def visit_for(self, loop: For) -> Stmt:
        body = self.iterated(loop)
        self._read(loop.min, loop.extent)
        return loop if body is loop.body else loop.replace(body=body)

    def visit_let_stmt(self, let: LetStmt) -> Stmt:
        body = self.visit(let.body)
        self.memory.leave(let.var)
        self._read(let.value)
        return let if body is let.body else let.replace(body=body)

    def visit_if_then_else(self, stmt: IfThenElse) -> Stmt:
        condition = without_likely(stmt.condition)
        behind = self.memory.facts
        with self.analyzer.constraint_scope(condition):
            yes = self.visit(stmt.then_case)
        before, self.memory.facts = self.memory.facts, behind
        no = stmt.else_case
        if no is not None:
            with self.analyzer.constraint_scope(logical_not(condition)):
                no = self.visit(no)
        other, self.memory.facts = self.memory.facts, before
        self.memory.merge(condition, other)
        self._read(condition)
        if yes is stmt.then_case and no is stmt.else_case:
            return stmt
        return IfThenElse(stmt.condition, yes, no)


class _Reads(Visitor):
    """Collects loads, and notices pointers."""

    def __init__(self) -> None:
        self.found: list[BufferLoad] = []
        self.uses_pointers = False

    def visit_buffer_load(self, load: BufferLoad) -> None:
        self.found.append(load)
        self.visit_children(load)

    def visit_var(self, var: Var) -> None:
        self.uses_pointers |= var.dtype.is_handle
