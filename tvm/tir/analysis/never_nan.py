"""Whether an expression is a number whatever its variables are."""

from __future__ import annotations

from typing import Any

from tvm.ir.expr import PrimExpr
from tvm.tir.expr import Broadcast, Cast, FloatImm, Max, Min, Select


def never_nan(expr: PrimExpr) -> bool:
    """Whether the value cannot be NaN, as far as the expression alone tells.

    Parameters
    ----------
    expr : PrimExpr
        An expression of any dtype.
    """
    pending: list[Any] = [expr]
    while pending:
        node = pending.pop()
        kind = type(node)
        if kind is FloatImm:
            if node.value != node.value:
                return False
        elif kind is Broadcast:
            pending.append(node.value)
        elif kind is Max or kind is Min:
            pending += (node.a, node.b)
        elif kind is Select:
            pending += (node.true_value, node.false_value)
        elif node.dtype.is_float and not (kind is Cast and not node.value.dtype.is_float):
            return False
    return True
