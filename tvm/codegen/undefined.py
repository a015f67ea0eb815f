"""What is said of a variable without a value."""

from __future__ import annotations

from tvm.error import LoweringError
from tvm.tir.expr import Var


def undefined_variable(var: Var) -> LoweringError:
    """The error of all back ends."""
    if var.dtype.is_handle:
        hint = (
            "memory is allocated or an argument; a private function has pointers as arguments, and "
            "buffers of them: T.decl_buffer(shape, dtype, data=pointer)"
        )
    else:
        hint = (
            "an axis of te.reduce_axis has one within a reduction over it: te.sum(..., axis=k); "
            "a scalar is an argument of the function: tvm.build(schedule, [n, A, B])"
        )
    message = f"each variable requires a value, got {var.name}, which is used but not defined"
    return LoweringError(message, hint=hint)
