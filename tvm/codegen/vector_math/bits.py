"""Building blocks: fused multiply-add, bit patterns, rounding to an integer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from tvm.support.dtype import dtype as as_dtype
from tvm.tir import builtin, math_op
from tvm.tir.expr import Broadcast, Cast, FloatImm, IntImm, Select

INT32 = as_dtype("int32")
FLOAT32 = as_dtype("float32")
FLOAT64 = as_dtype("float64")

# an expression of any number of lanes; its operators are not typed
Lanes: TypeAlias = Any

# Adding 1.5 * 2**23 pushes the fraction out of a float: the sum's low bits are the nearest integer.
ROUNDER = 12582912.0
ROUNDER_BITS = 0x4B400000


def number(x: Lanes, value: float) -> Lanes:
    """A float constant of the type of ``x``."""
    constant = FloatImm(x.dtype.element, value)
    return constant if x.dtype.lanes == 1 else Broadcast(constant, x.dtype.lanes)


def integer(x: Lanes, value: int) -> Lanes:
    """An int32 constant with as many lanes as ``x``."""
    constant = IntImm(INT32, value)
    return constant if x.dtype.lanes == 1 else Broadcast(constant, x.dtype.lanes)


def fma(a: Lanes, b: Lanes | float, c: Lanes | float) -> Lanes:
    """``a * b + c``, rounded once."""
    b = number(a, b) if isinstance(b, float) else b
    c = number(a, c) if isinstance(c, float) else c
    return builtin.intrinsic_call(a.dtype, "fma", (a, b, c))


def polynomial(x: Lanes, coefficients: Sequence[float]) -> Lanes:
    """``c0 + c1*x + c2*x**2 + ...`` by Horner's rule."""
    *rest, last = coefficients
    result = number(x, last)
    for coefficient in reversed(rest):
        result = fma(result, x, number(x, coefficient))
    return result


def select(condition: Lanes, yes: Lanes | float, no: Lanes | float) -> Lanes:
    """One of two values, lane by lane."""
    like = yes if not isinstance(yes, float) else no
    return Select(
        condition,
        yes if not isinstance(yes, float) else number(like, yes),
        no if not isinstance(no, float) else number(like, no),
    )


def bits(x: Lanes) -> Lanes:
    """The bit pattern of a float32 as int32."""
    return math_op.reinterpret(INT32.with_lanes(x.dtype.lanes), x)


def from_bits(x: Lanes) -> Lanes:
    """The float32 of a bit pattern."""
    return math_op.reinterpret(FLOAT32.with_lanes(x.dtype.lanes), x)


def fabs(x: Lanes) -> Lanes:
    """``x`` without its sign."""
    return builtin.intrinsic_call(x.dtype, "fabs", (x,))


def sqrt(x: Lanes) -> Lanes:
    """The square root."""
    return builtin.intrinsic_call(x.dtype, "sqrt", (x,))


def copysign(x: Lanes, y: Lanes) -> Lanes:
    """``x`` with the sign of ``y``."""
    return builtin.intrinsic_call(x.dtype, "copysign", (x, y))


def clamp(x: Lanes, low: float, high: float) -> Lanes:
    """``x`` within bounds; NaN stays NaN."""
    raised = select(x < number(x, low), low, x)
    return select(raised > number(x, high), high, raised)


def power_of_two(exponent: Lanes) -> Lanes:
    """``2.0**exponent`` for an int32 exponent from -126 to 127."""
    return from_bits((exponent + integer(exponent, 127)) << integer(exponent, 23))


def scaled(x: Lanes, exponent: Lanes) -> Lanes:
    """``x * 2.0**exponent``, rounded once."""
    return builtin.intrinsic_call(x.dtype, "ldexp", (x, exponent))


def scaled_in_halves(x: Lanes, exponent: Lanes) -> Lanes:
    """:func:`scaled` by products, for processors without an instruction.

    The first half cannot overflow or vanish, so that results among the denormals are rounded once.
    """
    half = exponent >> integer(x, 1)
    return x * power_of_two(half) * power_of_two(exponent - half)


def widen(x: Lanes) -> Lanes:
    """The same value in float64."""
    return Cast(FLOAT64.with_lanes(x.dtype.lanes), x)


def narrow(x: Lanes) -> Lanes:
    """The value rounded to float32."""
    return Cast(FLOAT32.with_lanes(x.dtype.lanes), x)
