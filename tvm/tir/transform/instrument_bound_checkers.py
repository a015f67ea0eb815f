"""Check every access of memory while the program runs.

    B[i] = A[i + 1]              ->    assert 0 <= i + 1 and i + 1 < 16, "A needs an index below 16, got ..."
                                       assert 0 <= i and i < 16, ...
                                       B[i] = A[i + 1]

An access that a condition guards is checked under that condition.
"""

from __future__ import annotations

from dataclasses import dataclass

from tvm.ir.expr import PrimExpr
from tvm.ir.visitor import Rewriter, Visitor
from tvm.tir import op
from tvm.tir.buffer import Buffer
from tvm.tir.builtin import tvm_tuple
from tvm.tir.expr import Broadcast, BufferLoad, Call, Let, Ramp, Select, StringImm
from tvm.tir.function import PrimFunc
from tvm.tir.stmt import AssertStmt, BufferStore, Evaluate, IfThenElse, LetStmt, Stmt
from tvm.tir.transform.common import ADDRESS_OF, IF_THEN_ELSE, TRUE, is_const, prim_func_pass


@dataclass(frozen=True)
class Access:
    """One element that is accessed, where the guard holds."""

    buffer: Buffer
    index: PrimExpr
    guard: PrimExpr


class AccessCollector(Visitor):
    """Collects the loads of an expression. What depends on a variable bound inside it is left out."""

    def __init__(self) -> None:
        self.accesses: list[Access] = []
        self.guard: PrimExpr = TRUE

    def visit_buffer_load(self, load: BufferLoad) -> None:
        self.visit_children(load)
        if load.predicate is None and len(load.indices) == 1:
            self.note(load.buffer, load.indices[0])

    def visit_call(self, call: Call) -> None:
        if call.op is ADDRESS_OF:
            return
        if call.op is IF_THEN_ELSE:
            self._choice(*call.args)
        else:
            self.visit_children(call)

    def visit_select(self, select: Select) -> None:
        self._choice(select.condition, select.true_value, select.false_value)

    def visit_let(self, let: Let) -> None:
        self.visit(let.value)

    def _choice(self, condition: PrimExpr, yes: PrimExpr, no: PrimExpr) -> None:
        self.visit(condition)
        if condition.dtype.lanes > 1:
            return
        outer = self.guard
        self.guard = op.logical_and(outer, condition)
        self.visit(yes)
        self.guard = op.logical_and(outer, op.logical_not(condition))
        self.visit(no)
        self.guard = outer

    def note(self, buffer: Buffer, index: PrimExpr) -> None:
        """Add the first and the last element of an access."""
        if isinstance(index, Broadcast):
            index = index.value
        if isinstance(index, Ramp):
            last = index.base + index.stride * (index.lanes - 1)
            self.accesses.append(Access(buffer, index.base, self.guard))
            self.accesses.append(Access(buffer, last, self.guard))
        elif index.dtype.lanes == 1:
            self.accesses.append(Access(buffer, index, self.guard))


class BoundInstrumenter(Rewriter):
    """Puts assertions before the statements that access memory."""

    def visit_buffer_store(self, store: BufferStore) -> Stmt:
        collector = AccessCollector()
        collector.visit(store.value)
        for index in store.indices:
            collector.visit(index)
        if store.predicate is None and len(store.indices) == 1:
            collector.note(store.buffer, store.indices[0])
        return checked(store, collector.accesses)

    def visit_evaluate(self, stmt: Evaluate) -> Stmt:
        return checked(stmt, accesses_in(stmt.value))

    def visit_let_stmt(self, let: LetStmt) -> Stmt:
        return checked(let.replace(body=self.visit(let.body)), accesses_in(let.value))

    def visit_if_then_else(self, stmt: IfThenElse) -> Stmt:
        return checked(self.rewrite_children(stmt), accesses_in(stmt.condition))


def accesses_in(e: PrimExpr) -> list[Access]:
    """The accesses of one expression."""
    collector = AccessCollector()
    collector.visit(e)
    return collector.accesses


def checked(stmt: Stmt, accesses: list[Access]) -> Stmt:
    """The statement behind the checks of its accesses."""
    for access in reversed(accesses):
        extent = access.buffer.shape[0]
        inside = op.logical_and(access.index >= 0, access.index < extent)
        if not is_const(access.guard, 1):
            inside = op.logical_or(op.logical_not(access.guard), inside)
        if is_const(inside, 1):
            continue
        text = f"IndexError: buffer {access.buffer.name} needs an index from 0 to below "
        message = tvm_tuple(StringImm(text), extent, StringImm(", got "), access.index)
        stmt = AssertStmt(inside, message, stmt)
    return stmt


@prim_func_pass("tir.InstrumentBoundCheckers")
def instrument_bound_checkers(func: PrimFunc) -> PrimFunc:
    """Add a check before every access of a flat buffer."""
    return func.with_body(BoundInstrumenter().visit(func.body))


InstrumentBoundCheckers = instrument_bound_checkers.factory
