"""Replacing functions of quantised numbers by tables, for operators that users add."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tvm.error import OpAttributeInvalid
from tvm.ir.expr import RelayExpr

from .common import scalar_value
from .lookup import hardswish_of_arrays, legalize_with
from .op import register_qnn_legalize


def register_qnn_unary_op_legalize(
    op_name: str, floating_point_func: Callable[[np.ndarray], np.ndarray]
) -> None:
    """Let an operator (x, scale, zero_point, output_scale, output_zero_point) become a table.

    Parameters
    ----------
    op_name : str
        The operator.
    floating_point_func : callable
        The function, from an array of float32 to one.
    """
    register_qnn_legalize(op_name, legalize_with(floating_point_func), level=11)


def hardswish_func(x: np.ndarray) -> np.ndarray:
    """x * clip(x + 3, 0, 6) / 6"""
    return hardswish_of_arrays(x)


def get_scalar_from_constant(expr: RelayExpr) -> float:
    """The value of a constant scalar."""
    value = scalar_value(expr)
    if value is None:
        raise OpAttributeInvalid(f"a constant scalar is required, got {type(expr).__name__}")
    return value


def helper_align_up(value: int, aligner: int) -> int:
    """The least multiple of `aligner` that is not below `value`."""
    return -(-value // aligner) * aligner
