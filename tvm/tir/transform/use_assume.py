"""Drop branches that the program's assumptions decide.

assume(n > 4)                ->    assume(n > 4)
if n > 2:                          B[0] = 1
    B[0] = 1
"""

from __future__ import annotations

from tvm.tir.function import PrimFunc
from tvm.tir.stmt import Evaluate, SeqStmt, Stmt
from tvm.tir.transform.common import (
    assumption,
    contains,
    prim_func_pass,
    rewrite_under_assumptions,
)
from tvm.tir.transform.simplify import StmtSimplifier


class AssumptionUser(StmtSimplifier):
    """Holds each assumption against the statements behind it."""

    def visit_seq_stmt(self, block: SeqStmt) -> Stmt:
        return rewrite_under_assumptions(block, self.visit, self.analyzer)

    def visit_evaluate(self, stmt: Evaluate) -> Stmt:
        return stmt if assumption(stmt) is not None else self.rewrite_children(stmt)


@prim_func_pass("tir.UseAssumeToReduceBranches")
def use_assume(func: PrimFunc) -> PrimFunc:
    """Simplify the function by what it assumes."""
    if not contains(func.body, lambda node: assumption(node) is not None):
        return func
    return func.with_body(AssumptionUser().visit(func.body))


UseAssumeToReduceBranches = use_assume.factory
