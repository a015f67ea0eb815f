"""Let threads wait for each other between accesses of the memory they share.

S[tx] = A[tx]                ->    S[tx] = A[tx]
B[tx] = S[63 - tx]                 tvm_storage_sync("shared")
                                   B[tx] = S[63 - tx]

Two accesses of a buffer, one of them a write, have a barrier between them; also those of two iterations
of a loop.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tvm.error import LoweringError
from tvm.ir.expr import PrimExpr
from tvm.ir.transform import Pass
from tvm.ir.visitor import Rewriter, Visitor
from tvm.tir.builtin import tvm_storage_sync
from tvm.tir.expr import BufferLoad, Call, IterVar, Var
from tvm.tir.function import PrimFunc
from tvm.tir.intrinsics import INTRINSICS
from tvm.tir.stmt import (
    AttrStmt,
    BufferStore,
    Evaluate,
    For,
    IfThenElse,
    LetStmt,
    SeqStmt,
    Stmt,
    seq,
)
from tvm.tir.transform.common import prim_func_pass, variables_of

SYNC = INTRINSICS["tvm_storage_sync"]


@dataclass
class Pending:
    """The pointers accessed since the last barrier."""

    reads: dict[Var, None] = field(default_factory=dict)
    writes: dict[Var, None] = field(default_factory=dict)

    def conflicts(self, later: Pending) -> bool:
        """Whether later accesses have to wait for these."""
        return bool(
            self.writes.keys() & (later.reads.keys() | later.writes.keys())
            or self.reads.keys() & later.writes.keys()
        )

    def add(self, later: Pending) -> None:
        """Remember more accesses."""
        self.reads |= later.reads
        self.writes |= later.writes

    def clear(self) -> None:
        """Begin anew, behind a barrier."""
        self.reads, self.writes = {}, {}


class SharedAccesses(Visitor):
    """Collects accesses of one storage scope; a pointer that is passed on counts as both."""

    def __init__(self, scope: str) -> None:
        self.scope = scope
        self.found = Pending()

    def visit_buffer_load(self, load: BufferLoad) -> None:
        if self._is_shared(load.buffer.data):
            self.found.reads[load.buffer.data] = None
        self.visit_children(load)

    def visit_buffer_store(self, store: BufferStore) -> None:
        if self._is_shared(store.buffer.data):
            self.found.writes[store.buffer.data] = None
        self.visit_children(store)

    def visit_var(self, var: Var) -> None:
        if self._is_shared(var):
            self.found.reads[var] = None
            self.found.writes[var] = None

    def _is_shared(self, pointer: Var) -> bool:
        kind = getattr(pointer.type_annotation, "storage_scope", "")
        return bool(kind == self.scope)


class BarrierInserter(Rewriter):
    """Walks the statements in the order of their execution."""

    def __init__(self, scope: str) -> None:
        self.scope = scope
        self.pending = Pending()
        self.threads: dict[Var, None] = {}

    def visit_attr_stmt(self, attr: AttrStmt) -> Stmt:
        if attr.attr_key == "thread_extent" and isinstance(attr.node, IterVar):
            if attr.node.thread_tag.startswith("threadIdx"):
                self.threads[attr.node.var] = None
        body = self.visit(attr.body)
        return attr if body is attr.body else attr.replace(body=body)

    def visit_for(self, loop: For) -> Stmt:
        # what one iteration leaves behind is met by the next
        body = self.visit(self.visit(loop.body))
        return loop if body is loop.body else loop.replace(body=body)

    def visit_if_then_else(self, stmt: IfThenElse) -> Stmt:
        if not any([var in self.threads for var in variables_of(stmt.condition)]):
            before = self._condition(stmt)
            start = Pending(dict(self.pending.reads), dict(self.pending.writes))
            yes = self.visit(stmt.then_case)
            after_yes, self.pending = self.pending, start
            no = None if stmt.else_case is None else self.visit(stmt.else_case)
            self.pending.add(after_yes)
            same = yes is stmt.then_case and no is stmt.else_case
            return seq([*before, stmt if same else IfThenElse(stmt.condition, yes, no)])
        inner = BarrierInserter(self.scope)
        if inner.visit(stmt.then_case) is not stmt.then_case:
            raise LoweringError("threads cannot wait for each other in a branch of some", at=stmt)
        return self._leaf(stmt)

    def _condition(self, stmt: IfThenElse) -> list[Stmt]:
        found = self._accesses(stmt.condition)
        return self._barrier(found)

    def visit_let_stmt(self, let: LetStmt) -> Stmt:
        before = self._barrier(self._accesses(let.value))
        body = self.visit(let.body)
        return seq([*before, let if body is let.body else let.replace(body=body)])

    def visit_buffer_store(self, store: BufferStore) -> Stmt:
        return self._leaf(store)

    def visit_evaluate(self, stmt: Evaluate) -> Stmt:
        if isinstance(stmt.value, Call) and stmt.value.op is SYNC:
            self.pending.clear()
            return stmt
        return self._leaf(stmt)

    def visit_seq_stmt(self, block: SeqStmt) -> Stmt:
        stmts = [self.visit(stmt) for stmt in block.seq]
        same = all([new is old for new, old in zip(stmts, block.seq, strict=True)])
        return block if same else seq(stmts)

    def visit_prim_expr(self, e: PrimExpr) -> PrimExpr:
        return e

    def _leaf(self, stmt: Stmt) -> Stmt:
        barrier = self._barrier(self._accesses(stmt))
        return seq([*barrier, stmt]) if barrier else stmt

    def _accesses(self, node: Stmt | PrimExpr) -> Pending:
        accesses = SharedAccesses(self.scope)
        accesses.visit(node)
        return accesses.found

    def _barrier(self, found: Pending) -> list[Stmt]:
        """A barrier if the accesses have to wait, which they are then the first behind."""
        waits = self.pending.conflicts(found)
        if waits:
            self.pending.clear()
        self.pending.add(found)
        return [Evaluate(tvm_storage_sync(self.scope))] if waits else []


def ThreadSync(storage_scope: str) -> Pass:
    """The pass for one kind of memory, such as ``"shared"``."""

    @prim_func_pass("tir.ThreadSync")
    def thread_sync(func: PrimFunc) -> PrimFunc:
        return func.with_body(BarrierInserter(storage_scope).visit(func.body))

    return thread_sync.factory()
