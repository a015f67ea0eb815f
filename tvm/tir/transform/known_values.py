"""Use what earlier statements have put into memory.

A[0] = 0                     ->    A[0] = 0
if A[0] == 0:                      A[0] = 42
    A[0] = 42
"""

from __future__ import annotations

from tvm.ir.expr import PrimExpr
from tvm.ir.structural import structural_equal
from tvm.ir.visitor import Rewriter
from tvm.tir.analysis.safety import is_safe_anywhere
from tvm.tir.analysis.side_effect import is_pure
from tvm.tir.expr import BufferLoad, Call
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
)
from tvm.tir.transform.common import (
    IF_THEN_ELSE,
    assumption,
    rewrite_under_assumptions,
    without_likely,
)
from tvm.tir.transform.memory_follower import MemoryFollower


class FactFollower(MemoryFollower):
    """Walks a program in order, with the facts about memory that hold where it is."""

    backwards = False

    def visit_prim_expr(self, e: PrimExpr) -> PrimExpr:
        return e

    def visit_seq_stmt(self, block: SeqStmt) -> Stmt:
        return rewrite_under_assumptions(block, self.visit, self.analyzer)

    def visit_for(self, loop: For) -> Stmt:
        start, extent = self.visit(loop.min), self.visit(loop.extent)
        body = self.iterated(loop)
        if start is loop.min and extent is loop.extent and body is loop.body:
            return loop
        return loop.replace(min=start, extent=extent, body=body)

    def visit_let_stmt(self, let: LetStmt) -> Stmt:
        if let.var.dtype.is_int and is_safe_anywhere(let.value):
            self.analyzer.bind(let.var, let.value, True)
        let = self.rewrite_children(let)
        self.memory.leave(let.var)
        return let

    def visit_if_then_else(self, stmt: IfThenElse) -> Stmt:
        condition = without_likely(stmt.condition)
        before = self.memory.facts
        with self.analyzer.constraint_scope(condition):
            self.memory.assume(condition)
            yes = self.visit(stmt.then_case)
        after, self.memory.facts = self.memory.facts, before
        no = stmt.else_case
        if no is not None:
            with self.analyzer.constraint_scope(logical_not(condition)):
                no = self.visit(no)
        other, self.memory.facts = self.memory.facts, after
        self.memory.merge(condition, other)
        if yes is stmt.then_case and no is stmt.else_case:
            return stmt
        return IfThenElse(stmt.condition, yes, no)

    def visit_buffer_store(self, store: BufferStore) -> Stmt:
        new = self.rewrite_children(store)
        value = self.memory.with_values(store.value)
        if not is_pure(store.value):
            self.memory.forget()
        self.memory.store(store, value)
        return new

    def visit_evaluate(self, stmt: Evaluate) -> Stmt:
        fact = assumption(stmt)
        if fact is not None:
            self.memory.assume(fact)
            return stmt
        stmt = self.rewrite_children(stmt)
        if not is_pure(stmt.value):
            self.memory.forget()
        return stmt


class KnownValuePropagator(FactFollower):
    """Decides conditions by known values, and reads known values rather than memory if that is asked for."""

    def __init__(self, in_conditions: bool, in_expressions: bool) -> None:
        super().__init__()
        self.in_conditions = in_conditions
        self.in_expressions = in_expressions

    def visit_prim_expr(self, e: PrimExpr) -> PrimExpr:
        if self.in_expressions:
            return self.memory.with_values(e) if _loads(e) else e
        return _ChoiceDecider(self).visit(e) if self.in_conditions else e

    def decided(self, condition: PrimExpr) -> bool | None:
        """Whether a condition holds, if that is known."""
        condition = without_likely(condition)
        if not self.in_conditions or not is_pure(condition):
            return None
        known = self.memory.with_values(condition)
        if self.analyzer.can_prove(known):
            return True
        return False if self.analyzer.can_prove(logical_not(known)) else None

    def visit_if_then_else(self, stmt: IfThenElse) -> Stmt:
        known = self.decided(stmt.condition)
        if known is None:
            return super().visit_if_then_else(stmt)
        chosen = stmt.then_case if known else stmt.else_case
        return NO_OP if chosen is None else self.visit(chosen)


class _ChoiceDecider(Rewriter):
    """Takes the value that is chosen where the condition is known."""

    def __init__(self, propagator: KnownValuePropagator) -> None:
        self.propagator = propagator

    def visit_call(self, call: Call) -> PrimExpr:
        if call.op is IF_THEN_ELSE and _loads(call.args[0]):
            known = self.propagator.decided(call.args[0])
            if known is not None:
                chosen: PrimExpr = self.visit(call.args[1 if known else 2])
                return chosen
        return self.rewrite_children(call)


class KnownStoreRemover(FactFollower):
    """Drops stores of the value that is there already."""

    def visit_buffer_store(self, store: BufferStore) -> Stmt:
        return NO_OP if self.is_there(store) else super().visit_buffer_store(store)

    def is_there(self, store: BufferStore) -> bool:
        """Whether a store writes what its cell has."""
        load = BufferLoad(store.buffer, store.indices, store.predicate)
        if load.dtype is not store.value.dtype or not is_pure(store.value):
            return False
        known = self.memory.value_of(load)
        value = self.memory.with_values(store.value)
        return self._is_equal(self.analyzer.simplify(load) if known is None else known, value)

    def _is_equal(self, a: PrimExpr, b: PrimExpr) -> bool:
        if isinstance(a, BufferLoad) and isinstance(b, BufferLoad) and a.buffer is b.buffer:
            pairs = zip(a.indices, b.indices, strict=True)
            return all([self._is_equal(i, j) for i, j in pairs])
        if a.dtype.is_int and a.dtype.lanes == 1:
            return self.analyzer.can_prove_equal(a, b)
        return structural_equal(a, b)


class SelfCopyRemover(KnownStoreRemover):
    """Drops copies of a cell to itself, without a look at other stores."""

    def visit_buffer_store(self, store: BufferStore) -> Stmt:
        return NO_OP if is_copy_within(store) and self.is_there(store) else store


def is_copy_within(node: object) -> bool:
    """Whether a statement copies from a buffer to the same one."""
    if not isinstance(node, BufferStore) or type(node.value) is not BufferLoad:
        return False
    return node.value.buffer is node.buffer


def _loads(e: PrimExpr) -> bool:
    return not is_safe_anywhere(e)
