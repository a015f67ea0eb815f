"""Building blocks: fused multiply-add, bit patterns, rounding to an integer."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, TypeAlias

from tvm.ir.structural import structural_equal
from tvm.support.dtype import DType
from tvm.support.dtype import dtype as as_dtype
from tvm.support.scope import Scoped
from tvm.tir import builtin, math_op
from tvm.tir.expr import Broadcast, Call, Cast, FloatImm, IntImm, Select, Sub
from tvm.tir.intrinsics import INTRINSICS

INT32 = as_dtype("int32")
INT64 = as_dtype("int64")
FLOAT32 = as_dtype("float32")
FLOAT64 = as_dtype("float64")

REINTERPRET = INTRINSICS["reinterpret"]

# an expression of any number of lanes; its operators are not typed
Lanes: TypeAlias = Any

# Adding 1.5 * 2**23 pushes the fraction out of a float: the sum's low bits are the nearest integer.
ROUNDER = 12582912.0
ROUNDER_BITS = 0x4B400000


def number(x: Lanes, value: float) -> Lanes:
    """A float constant of the type of ``x``."""
    constant = FloatImm(x.dtype.element, value)
    return constant if x.dtype.lanes == 1 else Broadcast(constant, x.dtype.lanes)


def integer(x: Lanes, value: int, dtype: DType = INT32) -> Lanes:
    """An integer constant with as many lanes as ``x``."""
    constant = IntImm(dtype, value)
    return constant if x.dtype.lanes == 1 else Broadcast(constant, x.dtype.lanes)


def long_integer(x: Lanes, value: int) -> Lanes:
    """An int64 constant with as many lanes as ``x``."""
    return integer(x, value, INT64)


_MISSING: Scoped[frozenset[str]] = Scoped("instructions that the processor lacks")


def processor_without(*instructions: str) -> AbstractContextManager[frozenset[str]]:
    """Inside, functions are built for a processor that lacks ``"fma"`` or ``"ldexp"``."""
    return _MISSING.scope(frozenset(instructions))


def _has(instruction: str) -> bool:
    return instruction not in (_MISSING.current() or ())


def fma(a: Lanes, b: Lanes | float, c: Lanes | float) -> Lanes:
    """``a * b + c``, rounded once where the processor can."""
    b = number(a, b) if isinstance(b, float) else b
    c = number(a, c) if isinstance(c, float) else c
    if not _has("fma"):
        return a * b + c
    return builtin.intrinsic_call(a.dtype, "fma", (a, b, c))


def exact_fma(a: Lanes, b: Lanes | float, c: Lanes | float) -> Lanes:
    """``a * b + c`` of floats where a rounded product would lose the result: a range reduction."""
    if _has("fma"):
        return fma(a, b, c)
    b = number(a, b) if isinstance(b, float) else b
    if a.dtype.bits == 64:
        product, lost = _exact_product(a, b)
        total, missing = exact_sum(product, c)
        return total + (missing + lost)
    return narrow(widen(a) * widen(b) + widen(c))


def _exact_product(a: Lanes, b: Lanes) -> tuple[Lanes, Lanes]:
    """The rounded product of float64 and what the rounding lost, by halves of 26 bits."""
    product = a * b
    (ah, al), (bh, bl) = _halves(a), _halves(b)
    return product, ((ah * bh - product) + ah * bl + al * bh) + al * bl


def _halves(x: Lanes) -> tuple[Lanes, Lanes]:
    wide = x * number(x, 2.0**27 + 1.0)
    high = wide - (wide - x)
    return high, x - high


def exact_sum(a: Lanes, b: Lanes) -> tuple[Lanes, Lanes]:
    """The rounded sum and what the rounding lost."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def sum_by_size(large: Lanes, small: Lanes) -> tuple[Lanes, Lanes]:
    """:func:`exact_sum` where the first is zero or not the smaller one."""
    total = large + small
    return total, (large - total) + small


def exact_product(a: Lanes, b: Lanes) -> tuple[Lanes, Lanes]:
    """The rounded product and what the rounding lost."""
    product = a * b
    return product, exact_fma(a, b, -product)


def is_negative(x: Lanes) -> Lanes:
    """Whether the sign is set, that of a zero too."""
    if x.dtype.bits == 32:
        return bits(x) < integer(x, 0)
    return copysign(number(x, 1.0), x) < number(x, 0.0)


def polynomial(x: Lanes, coefficients: Sequence[float]) -> Lanes:
    """``c0 + c1*x + c2*x**2 + ...`` by Horner's rule."""
    *rest, last = coefficients
    result = number(x, last)
    for coefficient in reversed(rest):
        result = fma(result, x, number(x, coefficient))
    return result


def float_of(exponent: Lanes) -> Lanes | None:
    """The whole float32 whose value ``bits(n + ROUNDER) - ROUNDER_BITS`` is; None of other forms."""
    if not isinstance(exponent, Sub) or not structural_equal(
        exponent.b, integer(exponent, ROUNDER_BITS)
    ):
        return None
    pattern = exponent.a
    if not isinstance(pattern, Call) or pattern.op is not REINTERPRET:
        return None
    return pattern.args[0] - number(pattern.args[0], ROUNDER)


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


def at_least(x: Lanes, low: float) -> Lanes:
    """The greater of ``x`` and a bound; NaN stays NaN."""
    return select(x < number(x, low), low, x)


def at_most(x: Lanes, high: float) -> Lanes:
    """The lesser of ``x`` and a bound; NaN stays NaN."""
    return select(x > number(x, high), high, x)


def clamp(x: Lanes, low: float, high: float) -> Lanes:
    """``x`` within bounds; NaN stays NaN."""
    return at_most(at_least(x, low), high)


def power_of_two(exponent: Lanes) -> Lanes:
    """``2.0**exponent`` for an int32 exponent from -126 to 127."""
    return from_bits((exponent + integer(exponent, 127)) << integer(exponent, 23))


def double_power_of_two(exponent: Lanes) -> Lanes:
    """``2.0**exponent`` as a float64 for an int32 exponent from -1022 to 1023."""
    lanes = exponent.dtype.lanes
    wide = Cast(INT64.with_lanes(lanes), exponent + integer(exponent, 1023))
    shift = IntImm(INT64, 52)
    pattern = wide << (shift if lanes == 1 else Broadcast(shift, lanes))
    return math_op.reinterpret(FLOAT64.with_lanes(lanes), pattern)


def scaled(x: Lanes, exponent: Lanes) -> Lanes:
    """``x * 2.0**exponent``, rounded once, for ``x`` near one."""
    if _has("ldexp"):
        return builtin.intrinsic_call(x.dtype, "ldexp", (x, exponent))
    first, second = _halves_of_power(exponent, x.dtype.bits)
    return x * first * second


def scaled_one_plus(x: Lanes, exponent: Lanes, bounds: tuple[int, int] | None = None) -> Lanes:
    """``(1 + x) * 2.0**exponent`` of a small ``x``; ``bounds`` of the exponent save products."""
    power, least, most = (
        (power_of_two, -126, 127) if x.dtype.bits == 32 else (double_power_of_two, -1022, 1023)
    )
    if bounds is None or bounds[1] - bounds[0] > most - least:
        if _has("ldexp"):
            return scaled(x + number(x, 1.0), exponent)
        first, second = _halves_of_power(exponent, x.dtype.bits)
        return fma(x, first, first) * second
    raised = min(max(least - bounds[0], 0), most - bounds[1])
    if not raised:
        factor = power(exponent)
        return fma(x, factor, factor)
    factor = power(exponent + integer(x, raised))
    return fma(x, factor, factor) * number(x, 2.0**-raised)


def _halves_of_power(exponent: Lanes, size: int) -> tuple[Lanes, Lanes]:
    """Two factors of ``2.0**exponent``.

    The first cannot overflow or vanish, so that results among the denormals are rounded once.
    """
    half = exponent >> integer(exponent, 1)
    power = power_of_two if size == 32 else double_power_of_two
    return power(half), power(exponent - half)


def widen(x: Lanes) -> Lanes:
    """The same value in float64."""
    return Cast(FLOAT64.with_lanes(x.dtype.lanes), x)


def narrow(x: Lanes) -> Lanes:
    """The value rounded to float32."""
    return Cast(FLOAT32.with_lanes(x.dtype.lanes), x)
