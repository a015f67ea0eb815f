"""The functions that hybrid scripts may call in expressions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm.ir.expr import PrimExpr
from tvm.target import Target
from tvm.tir import math_op as m
from tvm.tir import op
from tvm.tir.expr import as_expr, const
from tvm.tir.op import maximum, minimum

from .runtime import DTYPES


def _cast(dtype: str) -> Callable[[Any], PrimExpr]:
    return lambda value: op.cast(as_expr(value), dtype)


def _fold(combine: Callable[[Any, Any], PrimExpr]) -> Callable[..., PrimExpr]:
    def call(first: Any, *rest: Any) -> PrimExpr:
        for value in rest:
            first = combine(first, value)
        return as_expr(first)

    return call


def ceil_div(a: Any, b: Any) -> PrimExpr:
    """The quotient, rounded up."""
    return op.floordiv(op.subtract(op.add(a, b), 1), b)


def max_num_threads(allow_none: Any = True) -> PrimExpr:
    """The most threads in a block of the current target."""
    target = Target.current(bool(allow_none))
    return const(1 if target is None else int(target.max_num_threads), "int32")


def _float(function: Callable[[Any], PrimExpr]) -> Callable[[Any], PrimExpr]:
    """Whole numbers become floats first, as in Python."""

    def call(value: Any) -> PrimExpr:
        expr = as_expr(value)
        return function(expr if expr.dtype.is_float else op.cast(expr, "float32"))

    return call


CALLS: dict[str, Callable[..., Any]] = {
    **{name: _cast(name) for name in DTYPES},
    **{
        name: _float(getattr(m, name))
        for name in ("sqrt", "rsqrt", "log", "tanh", "exp", "erf", "sigmoid")
    },
    "power": m.power,
    "popcount": m.popcount,
    "round": m.round,
    "likely": m.likely,
    "max": _fold(maximum),
    "min": _fold(minimum),
    "abs": m.abs,
    "ceil_div": ceil_div,
    "max_num_threads": max_num_threads,
    "inf": lambda dtype: m.max_value(dtype),
    "ninf": lambda dtype: m.min_value(dtype),
}
