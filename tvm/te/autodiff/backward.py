"""Derivatives of one scalar expression with respect to all elements that it loads.

    value    A[i] * tanh(B[j])        adjoint    g

    A[i] :  g * tanh(B[j])
    B[j] :  g * A[i] * (1 - tanh(B[j])**2)

The sweep goes from the value down to the loads and carries the adjoint along. Conditions, indices
and integers get none.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from tvm.error import OpNotImplemented
from tvm.ir import structural_equal
from tvm.ir.expr import PrimExpr
from tvm.ir.visitor import Rewriter, Visitor
from tvm.tir import math_op as m
from tvm.tir import op
from tvm.tir.expr import (
    Add,
    Call,
    Cast,
    Div,
    FloatImm,
    IntImm,
    Let,
    Max,
    Min,
    Mul,
    ProducerLoad,
    Select,
    Sub,
    Var,
    const,
)

from ..tensor import Tensor

Rule = Callable[..., PrimExpr]
PairRule = Callable[[PrimExpr, PrimExpr, PrimExpr], tuple[PrimExpr, PrimExpr]]


def adjoints_of_loads(
    value: PrimExpr, adjoint: PrimExpr, wanted: Mapping[Tensor, Any]
) -> list[tuple[ProducerLoad, PrimExpr]]:
    """The adjoint of each load of a wanted tensor; equal loads are one."""
    sweep = _Sweep(wanted)
    sweep.push(value, adjoint)
    return sweep.found


class _Sweep(Visitor):
    def __init__(self, wanted: Mapping[Tensor, Any]) -> None:
        self.wanted = wanted
        self.found: list[tuple[ProducerLoad, PrimExpr]] = []
        self.adjoint: PrimExpr = const(0.0, "float32")

    def push(self, expr: PrimExpr, adjoint: PrimExpr) -> None:
        """Go on below ``expr``; there is nothing to do where the adjoint is 0."""
        if expr.dtype.is_float and not _is_number(adjoint, 0):
            self.adjoint = adjoint
            self.visit(expr)

    def visit_producer_load(self, load: ProducerLoad) -> None:
        tensor: Any = load.producer
        if tensor not in self.wanted:
            return
        for position, (other, before) in enumerate(self.found):
            if other.producer is load.producer and structural_equal(other.indices, load.indices):
                self.found[position] = (other, op.add(before, self.adjoint))
                return
        self.found.append((load, self.adjoint))

    def visit_var(self, var: Var) -> None:
        """A scalar is given."""

    def visit_float_imm(self, value: FloatImm) -> None:
        """A constant is given."""

    def visit_add(self, expr: Add) -> None:
        adjoint = self.adjoint
        self.push(expr.a, adjoint)
        self.push(expr.b, adjoint)

    def visit_sub(self, expr: Sub) -> None:
        adjoint = self.adjoint
        self.push(expr.a, adjoint)
        self.push(expr.b, op.negative(adjoint))

    def visit_mul(self, expr: Mul) -> None:
        adjoint = self.adjoint
        self.push(expr.a, _times(adjoint, expr.b))
        self.push(expr.b, _times(adjoint, expr.a))

    def visit_div(self, expr: Div) -> None:
        adjoint = self.adjoint
        self.push(expr.a, op.div(adjoint, expr.b))
        self.push(expr.b, op.negative(op.div(_times(adjoint, expr.a), op.multiply(expr.b, expr.b))))

    def visit_max(self, expr: Max) -> None:
        self._choose(op.greater_equal(expr.a, expr.b), expr.a, expr.b)

    def visit_min(self, expr: Min) -> None:
        self._choose(op.less_equal(expr.a, expr.b), expr.a, expr.b)

    def _choose(self, condition: PrimExpr, a: PrimExpr, b: PrimExpr) -> None:
        adjoint = self.adjoint
        zero = const(0, adjoint.dtype)
        self.push(a, op.select(condition, adjoint, zero))
        self.push(b, op.select(condition, zero, adjoint))

    def visit_select(self, expr: Select) -> None:
        self._choose(expr.condition, expr.true_value, expr.false_value)

    def visit_cast(self, expr: Cast) -> None:
        if expr.value.dtype.is_float:
            self.push(expr.value, op.cast(self.adjoint, expr.value.dtype))

    def visit_let(self, expr: Let) -> None:
        self.push(_LetInliner({expr.var: expr.value}).visit(expr.body), self.adjoint)

    def visit_call(self, call: Call) -> None:
        name = getattr(call.op, "name", str(call.op)).removeprefix("tir.")
        adjoint, args = self.adjoint, call.args
        if name == "if_then_else":
            zero = const(0, adjoint.dtype)
            self.push(args[1], m.if_then_else(args[0], adjoint, zero))
            self.push(args[2], m.if_then_else(args[0], zero, adjoint))
        elif name == "pow":
            base, exponent = args
            self.push(base, _times(adjoint, _power_by_base(call, base, exponent)))
            self.push(exponent, _times(adjoint, op.multiply(call, m.log(base))))
        elif name in ("fabs", "abs"):
            self._choose(op.greater_equal(args[0], 0), args[0], op.negative(args[0]))
        elif (pair := PARTIAL_DERIVATIVES.get(name)) is not None:
            for arg, partial in zip(args, pair(args[0], args[1], call), strict=True):
                self.push(arg, _times(adjoint, partial))
        elif (rule := DERIVATIVES.get(name)) is not None:
            self.push(args[0], _times(adjoint, rule(args[0], call)))
        elif name not in CONSTANT and _reads(call, self.wanted):
            self._reject(f"call of {name}")

    def visit_prim_expr(self, expr: PrimExpr) -> None:
        if _reads(expr, self.wanted):
            self._reject(f"{type(expr).__name__} {expr}")

    def _reject(self, what: str) -> None:
        raise OpNotImplemented(
            f"gradient requires expressions with a known derivative, got {what}",
            hint="write it with arithmetic, select, exp, log, tanh and the like",
        )


class _LetInliner(Rewriter):
    def __init__(self, values: Mapping[Var, PrimExpr]) -> None:
        self.values = values

    def visit_var(self, var: Var) -> PrimExpr:
        return self.values.get(var, var)


class _Reader(Visitor):
    def __init__(self, wanted: Mapping[Tensor, Any]) -> None:
        self.wanted, self.found = wanted, False

    def visit_producer_load(self, load: ProducerLoad) -> None:
        self.found = self.found or load.producer in self.wanted


def _reads(expr: PrimExpr, wanted: Mapping[Tensor, Any]) -> bool:
    reader = _Reader(wanted)
    reader.visit(expr)
    return reader.found


def _is_number(expr: PrimExpr, value: float) -> bool:
    return isinstance(expr, (FloatImm, IntImm)) and expr.value == value


def _times(a: PrimExpr, b: PrimExpr) -> PrimExpr:
    """The product; by 1, the other factor itself."""
    if _is_number(a, 1):
        return b
    return a if _is_number(b, 1) else op.multiply(a, b)


def _power_by_base(power: PrimExpr, base: PrimExpr, exponent: PrimExpr) -> PrimExpr:
    if _is_number(exponent, 2):
        return op.multiply(exponent, base)
    return op.multiply(exponent, m.power(base, op.subtract(exponent, const(1, exponent.dtype))))


def _one_minus_square(y: PrimExpr) -> PrimExpr:
    return op.subtract(const(1, y.dtype), op.multiply(y, y))


def _scaled(value: float, x: PrimExpr) -> PrimExpr:
    return op.multiply(const(value, x.dtype), x)


# the derivative of f at x, given x and y = f(x)
DERIVATIVES: dict[str, Rule] = {
    "exp": lambda x, y: y,
    "exp2": lambda x, y: _scaled(math.log(2), y),
    "exp10": lambda x, y: _scaled(math.log(10), y),
    "log": lambda x, y: op.div(const(1, x.dtype), x),
    "log2": lambda x, y: op.div(const(1 / math.log(2), x.dtype), x),
    "log10": lambda x, y: op.div(const(1 / math.log(10), x.dtype), x),
    "log1p": lambda x, y: op.div(const(1, x.dtype), op.add(const(1, x.dtype), x)),
    "sqrt": lambda x, y: op.div(const(0.5, x.dtype), y),
    "rsqrt": lambda x, y: op.div(_scaled(-0.5, y), x),
    "sigmoid": lambda x, y: op.multiply(y, op.subtract(const(1, y.dtype), y)),
    "tanh": lambda x, y: _one_minus_square(y),
    "sinh": lambda x, y: m.cosh(x),
    "cosh": lambda x, y: m.sinh(x),
    "sin": lambda x, y: m.cos(x),
    "cos": lambda x, y: op.negative(m.sin(x)),
    "tan": lambda x, y: op.add(const(1, x.dtype), op.multiply(y, y)),
    "asin": lambda x, y: m.rsqrt(_one_minus_square(x)),
    "acos": lambda x, y: op.negative(m.rsqrt(_one_minus_square(x))),
    "atan": lambda x, y: op.div(
        const(1, x.dtype), op.add(const(1, x.dtype), op.multiply(x, x))
    ),
    "asinh": lambda x, y: m.rsqrt(op.add(op.multiply(x, x), const(1, x.dtype))),
    "acosh": lambda x, y: m.rsqrt(op.subtract(op.multiply(x, x), const(1, x.dtype))),
    "atanh": lambda x, y: op.div(const(1, x.dtype), _one_minus_square(x)),
    "erf": lambda x, y: _scaled(2 / math.sqrt(math.pi), m.exp(op.negative(op.multiply(x, x)))),
}  # fmt: skip

# the derivatives of f at x, y by either one, given x, y and z = f(x, y)
PARTIAL_DERIVATIVES: dict[str, PairRule] = {
    "atan2": lambda x, y, z: _turn(x, y),
    "hypot": lambda x, y, z: (op.div(x, z), op.div(y, z)),
    # x - y * trunc(x / y)
    "fmod": lambda x, y, z: (const(1, x.dtype), op.negative(m.trunc(op.div(x, y)))),
    # x, or -x, where the signs differ
    "copysign": lambda x, y, z: (m.copysign(const(1, x.dtype), op.multiply(x, z)), const(0, y.dtype)),
    # x * 2**n of an integer n
    "ldexp": lambda x, n, z: (m.ldexp(const(1, x.dtype), n), const(0, x.dtype)),
}  # fmt: skip


def _turn(y: PrimExpr, x: PrimExpr) -> tuple[PrimExpr, PrimExpr]:
    square = op.add(op.multiply(x, x), op.multiply(y, y))
    return op.div(x, square), op.negative(op.div(y, square))


# of derivative 0 wherever there is one
CONSTANT = {"floor", "ceil", "round", "trunc", "nearbyint", "isnan", "isinf", "isfinite", "likely"}
