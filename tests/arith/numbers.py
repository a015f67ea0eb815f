"""The value of an integer expression for given values of its variables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tvm import tir
from tvm.arith.rules.notation import OPERATIONS

_MEANING = {op.node: op.evaluate for name, op in OPERATIONS.items() if name != "div"}


def value_of(expr: Any, values: Mapping[tir.Var, int]) -> int:
    """Evaluate; raises ZeroDivisionError as the expression would."""
    if isinstance(expr, tir.Var):
        return values[expr]
    if isinstance(expr, tir.IntImm):
        return expr.value
    if isinstance(expr, tir.Cast):
        return value_of(expr.value, values)
    if isinstance(expr, tir.Call):
        if expr.op.name == "tir.if_then_else":
            chosen = 1 if value_of(expr.args[0], values) else 2
            return value_of(expr.args[chosen], values)
        assert expr.op.name == "tir.likely"
        return value_of(expr.args[0], values)
    if isinstance(expr, (tir.GT, tir.GE)):
        a, b = value_of(expr.a, values), value_of(expr.b, values)
        return int(a > b if isinstance(expr, tir.GT) else a >= b)
    if isinstance(expr, tir.And):
        return int(bool(value_of(expr.a, values)) and bool(value_of(expr.b, values)))
    if isinstance(expr, tir.Or):
        return int(bool(value_of(expr.a, values)) or bool(value_of(expr.b, values)))
    operands = [value_of(child, values) for child in expr.children()]
    return int(_MEANING[type(expr)](*operands))
