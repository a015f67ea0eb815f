"""The words of the arithmetic tables: TIR's operations, and the functions that Python has no operator for."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TypeAlias

from tvm.ir.rules import Operation, Pattern, Vocabulary, measured, operation
from tvm.tir import expr as tir
from tvm.tir.fold import truncated_quotient


def min_(x: object, y: object) -> Pattern:
    return operation("min", x, y)


def max_(x: object, y: object) -> Pattern:
    return operation("max", x, y)


def truncdiv(x: object, y: object) -> Pattern:
    return operation("truncdiv", x, y)


def truncmod(x: object, y: object) -> Pattern:
    return operation("truncmod", x, y)


def select(condition: object, true_value: object, false_value: object) -> Pattern:
    return operation("select", condition, true_value, false_value)


def ramp(base: object, stride: object, lanes: object) -> Pattern:
    return operation("ramp", base, stride, lanes)


def broadcast(value: object, lanes: object) -> Pattern:
    return operation("broadcast", value, lanes)


def lower(x: Pattern) -> Pattern:
    """The least value that the expression is known to have."""
    return measured("lower", x)


def upper(x: Pattern) -> Pattern:
    """The greatest value that the expression is known to have."""
    return measured("upper", x)


def modulus(x: Pattern) -> Pattern:
    """The m of x = m*k + r; 0 for a constant."""
    return measured("modulus", x)


def residue(x: Pattern) -> Pattern:
    """The r of x = m*k + r."""
    return measured("residue", x)


def ordered(x: Pattern, y: Pattern) -> Pattern:
    """Whether x <= y is known."""
    return measured("ordered", x, y)


def same(x: Pattern, y: Pattern) -> Pattern:
    """Whether x == y is known."""
    return measured("same", x, y)


def below(x: Pattern, y: Pattern) -> Pattern:
    """Whether x < y is known."""
    return measured("below", x, y)


def symbolic(x: Pattern) -> Pattern:
    """Whether the expression is no constant."""
    return measured("symbolic", x)


def nonzero(x: Pattern) -> Pattern:
    """Whether a divisor is not zero: it is known, or computed from no data, which alone may be zero."""
    return measured("nonzero", x)


def positive(x: Pattern) -> Pattern:
    """Whether a divisor is above zero."""
    return (lower(x) >= 0) & nonzero(x)


def of_one_sign(x: Pattern) -> Pattern:
    """Whether a divisor is above zero, or is below."""
    return ((lower(x) >= 0) | (upper(x) <= 0)) & nonzero(x)


def integral(x: Pattern) -> Pattern:
    """Whether the expression is an integer: there a comparison's negation is the opposite comparison."""
    return measured("integral", x)


def stays_inside(stride: Pattern, lanes: Pattern, first: Pattern, block: Pattern) -> Pattern:
    """Whether lanes that start at a multiple of `block` plus `first` end before the next multiple."""
    return first % block + stride * (lanes - 1) < block


INT32_LEAST = -(1 << 31)
Meaning: TypeAlias = Callable[..., int | float]


def evaluate_truncmod(a: int, b: int) -> int:
    return a - b * truncated_quotient(a, b)


def _evaluate_select(condition: int, true_value: int, false_value: int) -> int:
    return true_value if condition else false_value


def _binary(
    node: type[tir.PrimExprWithOp], meaning: Meaning, commutative: bool = False
) -> Operation:
    return Operation(node, ("a", "b"), "tt>t", meaning, commutative)


def _comparison(node: type[tir.CmpExpr], meaning: Meaning, commutative: bool = False) -> Operation:
    return Operation(node, ("a", "b"), "tt>b", meaning, commutative)


OPERATIONS: dict[str, Operation] = {
    "add": _binary(tir.Add, operator.add, commutative=True),
    "sub": _binary(tir.Sub, operator.sub),
    "mul": _binary(tir.Mul, operator.mul, commutative=True),
    "div": _binary(tir.Div, operator.truediv),
    "truncdiv": _binary(tir.Div, truncated_quotient),
    "truncmod": _binary(tir.Mod, evaluate_truncmod),
    "floordiv": _binary(tir.FloorDiv, operator.floordiv),
    "floormod": _binary(tir.FloorMod, operator.mod),
    "min": _binary(tir.Min, min, commutative=True),
    "max": _binary(tir.Max, max, commutative=True),
    "eq": _comparison(tir.EQ, operator.eq, commutative=True),
    "ne": _comparison(tir.NE, operator.ne, commutative=True),
    "lt": _comparison(tir.LT, operator.lt),
    "le": _comparison(tir.LE, operator.le),
    "logical_and": Operation(
        tir.And, ("a", "b"), "tt>t", lambda a, b: int(bool(a) and bool(b)), commutative=True
    ),
    "logical_or": Operation(
        tir.Or, ("a", "b"), "tt>t", lambda a, b: int(bool(a) or bool(b)), commutative=True
    ),
    "logical_not": Operation(tir.Not, ("a",), "t>t", lambda a: int(not a)),
    "select": Operation(
        tir.Select, ("condition", "true_value", "false_value"), "ctt>t", _evaluate_select
    ),
    # the value of lane 0: tests of vector rules put another lane's meaning here
    "ramp": Operation(
        tir.Ramp, ("base", "stride", "lanes"), "eel>v", lambda b, s, n: b, leaves=("lanes",)
    ),
    "broadcast": Operation(
        tir.Broadcast, ("value", "lanes"), "el>v", lambda x, n: x, leaves=("lanes",)
    ),
}

VOCABULARY = Vocabulary(OPERATIONS, tir.IntImm)
FLOAT_VOCABULARY = Vocabulary(OPERATIONS, tir.FloatImm)
