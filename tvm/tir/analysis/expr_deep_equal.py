"""Whether two expressions are the same expression of the same variables."""

from __future__ import annotations

from tvm.ir.expr import PrimExpr
from tvm.ir.structural import structural_equal


def expr_deep_equal(lhs: PrimExpr, rhs: PrimExpr) -> bool:
    """Compare two expressions; variables are equal only to themselves."""
    return structural_equal(lhs, rhs)
