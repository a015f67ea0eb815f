"""What is said of a variable without a value."""

from __future__ import annotations

from tvm.error import LoweringError
from tvm.tir.expr import Var


def undefined_variable(var: Var) -> LoweringError:
    """The error of all back ends."""
    return LoweringError(
        f"each variable requires a value, got {var.name}, which is used but not defined",
        hint="an axis of te.reduce_axis has one within a reduction over it: te.sum(..., axis=k); "
        "a scalar is an argument of the function: tvm.build(schedule, [n, A, B])",
    )
