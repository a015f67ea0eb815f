"""Evaluate only the chosen value of a select where the other one may be out of bounds.

select(i > 0, A[i - 1], 0)   ->    if_then_else(i > 0, A[i - 1], 0)
"""

from __future__ import annotations

from tvm.ir.expr import PrimExpr
from tvm.ir.visitor import Rewriter
from tvm.tir.analysis.safety import is_safe_anywhere
from tvm.tir.expr import Call, Select
from tvm.tir.function import PrimFunc
from tvm.tir.transform.common import IF_THEN_ELSE, prim_func_pass


class UnsafeSelectRewriter(Rewriter):
    """Rewrites scalar choices; a vector's lanes may need both values."""

    def visit_select(self, select: Select) -> PrimExpr:
        select = self.rewrite_children(select)
        if select.condition.dtype.lanes > 1:
            return select
        if is_safe_anywhere(select.true_value) and is_safe_anywhere(select.false_value):
            return select
        values = [select.condition, select.true_value, select.false_value]
        return Call(select.dtype, IF_THEN_ELSE, values)


@prim_func_pass("tir.RewriteUnsafeSelect")
def rewrite_unsafe_select(func: PrimFunc) -> PrimFunc:
    """Guard values of selects that may be unsafe."""
    return func.with_body(UnsafeSelectRewriter().visit(func.body))


RewriteUnsafeSelect = rewrite_unsafe_select.factory
