"""Drop branches that the program's assumptions decide.

assume(n > 4)                ->    assume(n > 4)
if n > 2:                          B[0] = 1
    B[0] = 1
"""

from __future__ import annotations

from contextlib import ExitStack

from tvm.tir.analysis.safety import is_safe_anywhere
from tvm.tir.function import PrimFunc
from tvm.tir.stmt import Evaluate, SeqStmt, Stmt, seq
from tvm.tir.transform.common import assumption, contains, prim_func_pass
from tvm.tir.transform.simplify import StmtSimplifier


class AssumptionUser(StmtSimplifier):
    """Holds each assumption against the statements behind it."""

    def visit_seq_stmt(self, block: SeqStmt) -> Stmt:
        stmts: list[Stmt] = []
        with ExitStack() as assumed:
            for stmt in block.seq:
                stmts.append(self.visit(stmt))
                fact = assumption(stmt)
                # memory may change: only what is said of variables is kept
                if fact is not None and is_safe_anywhere(fact):
                    assumed.enter_context(self.analyzer.constraint_scope(fact))
        same = all([new is old for new, old in zip(stmts, block.seq, strict=True)])
        return block if same else seq(stmts)

    def visit_evaluate(self, stmt: Evaluate) -> Stmt:
        return stmt if assumption(stmt) is not None else self.rewrite_children(stmt)


@prim_func_pass("tir.UseAssumeToReduceBranches")
def use_assume(func: PrimFunc) -> PrimFunc:
    """Simplify the function by what it assumes."""
    if not contains(func.body, lambda node: assumption(node) is not None):
        return func
    return func.with_body(AssumptionUser().visit(func.body))


UseAssumeToReduceBranches = use_assume.factory
