"""Remove what the program was told to hold, once nothing is concluded from it any more.

assume(n > 0)                ->    B[0] = A[0]
B[0] = A[0]
"""

from __future__ import annotations

from tvm.ir.visitor import Rewriter
from tvm.tir.function import PrimFunc
from tvm.tir.stmt import NO_OP, Evaluate, SeqStmt, Stmt
from tvm.tir.transform.common import assumption, prim_func_pass
from tvm.tir.transform.remove_no_op import NoOpRemover


class AssumptionRemover(Rewriter):
    """Replaces assumptions by nothing."""

    def __init__(self) -> None:
        self.found = False

    def visit_evaluate(self, stmt: Evaluate) -> Stmt:
        if assumption(stmt) is not None:
            self.found = True
            return NO_OP
        return stmt

    def visit_seq_stmt(self, block: SeqStmt) -> Stmt:
        return self.rewrite_children(block)


@prim_func_pass("tir.RemoveAssume")
def remove_assume(func: PrimFunc) -> PrimFunc:
    """Remove assumptions, and what is empty without them."""
    remover = AssumptionRemover()
    body = remover.visit(func.body)
    return func.with_body(NoOpRemover().visit(body)) if remover.found else func


RemoveAssume = remove_assume.factory
