"""Remove statements that do nothing.

for i in range(8):           ->    B[0] = 1
    if x:
        evaluate(0)
B[0] = 1
"""

from __future__ import annotations

from dataclasses import dataclass

from tvm.arith import Analyzer
from tvm.ir.expr import PrimExpr
from tvm.ir.structural import structural_equal
from tvm.ir.visitor import Rewriter
from tvm.tir.analysis.side_effect import is_pure
from tvm.tir.expr import BufferLoad, Not, Range
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
from tvm.tir.transform.common import constant_extent, contains, prim_func_pass, variables_of
from tvm.tir.transform.known_values import KnownStoreRemover, SelfCopyRemover, is_copy_within
from tvm.tir.transform.overwritten_stores import OverwrittenStoreRemover


@dataclass(frozen=True)
class RemoveNoOpConfig:
    """What is found to have no effect."""

    use_dataflow_analysis: bool = False  # also stores that are overwritten before they are read
    max_simplification_steps: int = 0  # accepted: the analysis asks a bounded number of questions


class NoOpRemover(Rewriter):
    """Drops what has become empty, from the inside out. Expressions are left as they are."""

    def __init__(self) -> None:
        self.loops: list[For] = []  # around what is visited

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
        if self._never_runs(loop):
            return NO_OP
        self.loops.append(loop)
        body = self.visit(loop.body)
        self.loops.pop()
        if is_no_op(body) and is_pure(loop.extent):
            return NO_OP
        return loop if body is loop.body else loop.replace(body=body)

    def _never_runs(self, loop: For) -> bool:
        """Whether the extent is at most 0 for all values of the loops around."""
        count = constant_extent(loop)
        if count is not None or not self.loops or not is_pure(loop.extent):
            return count == 0
        analyzer = Analyzer()
        for outer in self.loops:
            analyzer.bind(outer.loop_var, Range.from_min_extent(outer.min, outer.extent), True)
        return analyzer.const_int_bound(loop.extent).max_value <= 0

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
        body: Stmt = self.visit(let.body)
        if is_no_op(body):
            return evaluated(let.value)
        if is_pure(let.value) and let.var not in variables_of(body):
            return body
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


@prim_func_pass("tir.RemoveNoOp", RemoveNoOpConfig)
def remove_no_op(func: PrimFunc, config: RemoveNoOpConfig) -> PrimFunc:
    """Remove statements without effect."""
    body = func.body
    if config.use_dataflow_analysis:
        body = OverwrittenStoreRemover().visit(body)
        body = KnownStoreRemover().visit(body)
    elif contains(body, is_copy_within):
        body = SelfCopyRemover().visit(body)
    return func.with_body(NoOpRemover().visit(body))


RemoveNoOp = remove_no_op.factory
