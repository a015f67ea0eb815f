"""Remove statements that do nothing.

for i in range(8):           ->    B[0] = 1
    if x:
        evaluate(0)
B[0] = 1
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tvm.ir.expr import PrimExpr
from tvm.ir.pass_context import unsupported_option
from tvm.ir.structural import structural_equal
from tvm.ir.visitor import Rewriter
from tvm.tir.analysis.side_effect import is_pure
from tvm.tir.expr import BufferLoad, Call, Not, Var, const
from tvm.tir.function import PrimFunc
from tvm.tir.stmt import (
    NO_OP,
    Allocate,
    AttrStmt,
    BufferRealize,
    BufferStore,
    DeclBuffer,
    Evaluate,
    For,
    IfThenElse,
    LetStmt,
    SeqStmt,
    Stmt,
    is_no_op,
    seq,
)
from tvm.tir.transform.common import constant_extent, contains, prim_func_pass


@dataclass(frozen=True)
class RemoveNoOpConfig:
    """What is found to have no effect."""

    use_dataflow_analysis: bool = False  # also stores that are overwritten before they are read
    max_simplification_steps: int = unsupported_option(0, "the analysis asks no such questions")


class NoOpRemover(Rewriter):
    """Drops what has become empty, from the inside out. Expressions are left as they are."""

    def visit_seq_stmt(self, block: SeqStmt) -> Stmt:
        stmts = [self.visit(stmt) for stmt in block.seq]
        if all([new is old for new, old in zip(stmts, block.seq, strict=True)]):
            return (
                block if len(stmts) > 1 and not any([is_nested(s) for s in stmts]) else seq(stmts)
            )
        return seq(stmts)

    def visit_evaluate(self, stmt: Evaluate) -> Stmt:
        return stmt if is_no_op(stmt) or not is_pure(stmt.value) else NO_OP

    def visit_buffer_store(self, store: BufferStore) -> Stmt:
        return NO_OP if stores_what_is_there(store) else store

    def visit_for(self, loop: For) -> Stmt:
        body = self.visit(loop.body)
        if constant_extent(loop) == 0 or (is_no_op(body) and is_pure(loop.extent)):
            return NO_OP
        return loop if body is loop.body else loop.replace(body=body)

    def visit_if_then_else(self, stmt: IfThenElse) -> Stmt:
        yes = self.visit(stmt.then_case)
        no = None if stmt.else_case is None else self.visit(stmt.else_case)
        if no is not None and is_no_op(no):
            no = None
        if is_no_op(yes):
            if no is None:
                return evaluated(stmt.condition)
            return IfThenElse(Not(stmt.condition), no)
        if yes is stmt.then_case and no is stmt.else_case:
            return stmt
        return IfThenElse(stmt.condition, yes, no)

    def visit_let_stmt(self, let: LetStmt) -> Stmt:
        body = self.visit(let.body)
        if is_no_op(body):
            return evaluated(let.value)
        return let if body is let.body else let.replace(body=body)

    def visit_attr_stmt(self, attr: AttrStmt) -> Stmt:
        body = self.visit(attr.body)
        if is_no_op(body):
            return evaluated(attr.value)
        return attr if body is attr.body else attr.replace(body=body)

    def visit_allocate(self, alloc: Allocate) -> Stmt:
        return self._around(alloc)

    def visit_decl_buffer(self, decl: DeclBuffer) -> Stmt:
        return self._around(decl)

    def visit_buffer_realize(self, realize: BufferRealize) -> Stmt:
        return self._around(realize)

    def _around(self, stmt: Allocate | DeclBuffer | BufferRealize) -> Stmt:
        body = self.visit(stmt.body)
        if is_no_op(body):
            return NO_OP
        return stmt if body is stmt.body else stmt.replace(body=body)


def is_nested(stmt: Stmt) -> bool:
    """Whether a statement of a sequence would disappear in it."""
    return type(stmt) is SeqStmt or is_no_op(stmt)


def evaluated(value: PrimExpr) -> Stmt:
    """What remains of a statement of which only the effect of ``value`` is left."""
    return NO_OP if is_pure(value) else Evaluate(value)


def stores_what_is_there(store: BufferStore) -> bool:
    """Whether a store writes the value that its cell has."""
    value = store.value
    if type(value) is not BufferLoad or value.buffer is not store.buffer:
        return False
    if value.predicate is not store.predicate:
        return False
    return all([structural_equal(i, j) for i, j in zip(value.indices, store.indices, strict=True)])


class OverwrittenStoreRemover(Rewriter):
    """Drops a store whose cells the next statements write again before anyone reads the buffer."""

    def visit_seq_stmt(self, block: SeqStmt) -> Stmt:
        block = self.rewrite_children(block)
        kept = [
            stmt
            for position, stmt in enumerate(block.seq)
            if not is_overwritten(stmt, block.seq[position + 1 :])
        ]
        return block if len(kept) == len(block.seq) else seq(kept)


def is_overwritten(stmt: Stmt, following: Sequence[Stmt]) -> bool:
    """Whether all that a statement stores is stored anew, at the same indices in the same loops, first."""
    store = stored(stmt)
    if store is None or not is_pure(store.value):
        return False
    for other in following:
        later = stored(other)
        if later is None or reads_pointer(other, store.buffer.data):
            return False
        if later.buffer is store.buffer and same_cells(stmt, other):
            return True
    return False


def stored(stmt: Stmt) -> BufferStore | None:
    """The store that a statement consists of, within loops."""
    while type(stmt) is For:
        stmt = stmt.body
    return stmt if isinstance(stmt, BufferStore) and stmt.predicate is None else None


def same_cells(stmt: Stmt, other: Stmt) -> bool:
    """Whether two stores in loops run over the same indices."""
    return structural_equal(without_value(stmt), without_value(other))


def without_value(stmt: Stmt) -> Stmt:
    """A store in loops, with 0 as its value."""
    if isinstance(stmt, For):
        return stmt.replace(body=without_value(stmt.body), annotations={})
    assert isinstance(stmt, BufferStore)
    return stmt.replace(value=const(0, stmt.value.dtype))


def reads_pointer(stmt: Stmt, pointer: Var) -> bool:
    """Whether a statement may read the memory at a pointer."""

    def reads(node: object) -> bool:
        if isinstance(node, BufferLoad):
            return node.buffer.data is pointer
        return node is pointer or (isinstance(node, Call) and not is_pure(node))

    return contains(stmt, reads)


@prim_func_pass("tir.RemoveNoOp", RemoveNoOpConfig)
def remove_no_op(func: PrimFunc, config: RemoveNoOpConfig) -> PrimFunc:
    """Remove statements without effect."""
    body = func.body
    if config.use_dataflow_analysis:
        body = OverwrittenStoreRemover().visit(body)
    return func.with_body(NoOpRemover().visit(body))


RemoveNoOp = remove_no_op.factory
