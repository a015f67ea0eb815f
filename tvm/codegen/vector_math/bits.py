"""Building blocks: fused multiply-add, bit patterns, rounding to an integer."""

from __future__ import annotations

from collections.abc import Sequence

from tvm.ir.expr import PrimExpr
from tvm.support.dtype import dtype as as_dtype
from tvm.tir import builtin, math_op
from tvm.tir.expr import Broadcast, Cast, FloatImm, IntImm, Select

INT32 = as_dtype("int32")
FLOAT32 = as_dtype("float32")
FLOAT64 = as_dtype("float64")

# Adding 1.5 * 2**23 pushes the fraction out of a float: the sum's low bits are the nearest integer.
ROUNDER = 12582912.0
ROUNDER_BITS = 0x4B400000


def number(x: PrimExpr, value: float) -> PrimExpr:
    """A float constant of the type of ``x``."""
    constant = FloatImm(x.dtype.element, value)
    return constant if x.dtype.lanes == 1 else Broadcast(constant, x.dtype.lanes)


def integer(x: PrimExpr, value: int) -> PrimExpr:
    """An int32 constant with as many lanes as ``x``."""
    constant = IntImm(INT32, value)
    return constant if x.dtype.lanes == 1 else Broadcast(constant, x.dtype.lanes)


def fma(a: PrimExpr, b: PrimExpr | float, c: PrimExpr | float) -> PrimExpr:
    """``a * b + c``, rounded once."""
    b = number(a, b) if isinstance(b, float) else b
    c = number(a, c) if isinstance(c, float) else c
    return builtin.intrinsic_call(a.dtype, "fma", (a, b, c))


def polynomial(x: PrimExpr, coefficients: Sequence[float]) -> PrimExpr:
    """``c0 + c1*x + c2*x**2 + ...`` by Horner's rule."""
    *rest, last = coefficients
    result = number(x, last)
    for coefficient in reversed(rest):
        result = fma(result, x, number(x, coefficient))
    return result


def select(condition: PrimExpr, yes: PrimExpr | float, no: PrimExpr | float) -> PrimExpr:
    """One of two values, lane by lane."""
    like = yes if isinstance(yes, PrimExpr) else no
    assert isinstance(like, PrimExpr)
    return Select(
        condition,
        yes if isinstance(yes, PrimExpr) else number(like, yes),
        no if isinstance(no, PrimExpr) else number(like, no),
    )


def bits(x: PrimExpr) -> PrimExpr:
    """The bit pattern of a float32 as int32."""
    return math_op.reinterpret(INT32.with_lanes(x.dtype.lanes), x)


def from_bits(x: PrimExpr) -> PrimExpr:
    """The float32 of a bit pattern."""
    return math_op.reinterpret(FLOAT32.with_lanes(x.dtype.lanes), x)


def fabs(x: PrimExpr) -> PrimExpr:
    """``x`` without its sign."""
    return builtin.intrinsic_call(x.dtype, "fabs", (x,))


def sqrt(x: PrimExpr) -> PrimExpr:
    """The square root."""
    return builtin.intrinsic_call(x.dtype, "sqrt", (x,))


def copysign(x: PrimExpr, y: PrimExpr) -> PrimExpr:
    """``x`` with the sign of ``y``."""
    return builtin.intrinsic_call(x.dtype, "copysign", (x, y))


def clamp(x: PrimExpr, low: float, high: float) -> PrimExpr:
    """``x`` within bounds; NaN stays NaN."""
    raised = select(x < number(x, low), low, x)
    return select(raised > number(x, high), high, raised)


def power_of_two(exponent: PrimExpr) -> PrimExpr:
    """``2.0**exponent`` for an int32 exponent from -126 to 127."""
    return from_bits((exponent + integer(exponent, 127)) << integer(exponent, 23))


def widen(x: PrimExpr) -> PrimExpr:
    """The same value in float64."""
    return Cast(FLOAT64.with_lanes(x.dtype.lanes), x)


def narrow(x: PrimExpr) -> PrimExpr:
    """The value rounded to float32."""
    return Cast(FLOAT32.with_lanes(x.dtype.lanes), x)
