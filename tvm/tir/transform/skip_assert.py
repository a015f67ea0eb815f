"""Leave out assertions.

assert n == 16, "..."        ->    B[0] = A[0]
B[0] = A[0]
"""

from __future__ import annotations

from tvm.ir.visitor import Rewriter
from tvm.tir.function import PrimFunc
from tvm.tir.stmt import AssertStmt, Stmt
from tvm.tir.transform.common import prim_func_pass


class AssertSkipper(Rewriter):
    """Leaves the body in place of an assertion."""

    def visit_assert_stmt(self, stmt: AssertStmt) -> Stmt:
        body: Stmt = self.visit(stmt.body)
        return body


@prim_func_pass("tir.SkipAssert")
def skip_assert(func: PrimFunc) -> PrimFunc:
    """Remove all assertions."""
    return func.with_body(AssertSkipper().visit(func.body))


SkipAssert = skip_assert.factory
