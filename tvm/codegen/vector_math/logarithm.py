"""log, log2, log10, log1p, and the inverse hyperbolic functions.

x = 2**k * (1 + f) with 1 + f between sqrt(1/2) and sqrt(2), so that k is 0 around x = 1 and nothing cancels:
log x = k ln 2 + f - f**2/2 + f**3 P(f).
"""

from __future__ import annotations

import math
from collections.abc import Callable

from tvm.tir.expr import Cast

from .bits import (
    FLOAT32,
    Lanes,
    bits,
    copysign,
    fabs,
    fma,
    from_bits,
    integer,
    number,
    polynomial,
    select,
    sqrt,
)
from .exponential import LN2, LOG10_2

Function = Callable[[Lanes], Lanes]

INFINITY = float("inf")
NAN = float("nan")
# bits of sqrt(1/2), rounded so that 1 + f stays in the polynomial's range
SQRT_HALF = 0x3F3504F3
SMALLEST_NORMAL = 1.1754943508222875e-38
# (log(1 + f) - f + f**2/2) / f**3
LOG = (0.3333331346511841, -0.25000008940696716, 0.2000207155942917, -0.16667988896369934,
       0.14220359921455383, -0.12406239658594131, 0.11883537471294403, -0.11670024693012238,
       0.06749189645051956)  # fmt: skip
LOG2_E_PARTS = (1.4426950216293335, 1.925963033500011e-08)
LOG10_E_PARTS = (0.4342944920063019, -1.0103049952192578e-08)


def _split(x: Lanes) -> tuple[Lanes, Lanes]:
    """k and f of a positive finite number; denormals are scaled up first."""
    tiny = x < number(x, SMALLEST_NORMAL)
    scaled = select(tiny, x * number(x, 8388608.0), x)
    pattern = bits(scaled)
    exponent = (pattern - integer(x, SQRT_HALF)) >> integer(x, 23)
    f = from_bits(pattern - (exponent << integer(x, 23))) - number(x, 1.0)
    k = Cast(FLOAT32.with_lanes(x.dtype.lanes), exponent)
    return select(tiny, k - number(x, 23.0), k), f


def _tail(f: Lanes) -> Lanes:
    """log(1 + f) - f"""
    square = f * f
    return fma(square * f, polynomial(f, LOG), square * number(f, -0.5))


def with_limits(x: Lanes, value: Lanes) -> Lanes:
    """``value`` for positive finite ``x``; what a logarithm is elsewhere."""
    value = select(x < number(x, INFINITY), value, x)  # infinity, NaN
    value = select(x < number(x, 0.0), NAN, value)
    return select(x.equal(number(x, 0.0)), -INFINITY, value)


def log(x: Lanes) -> Lanes:
    k, f = _split(x)
    value = fma(k, LN2[0], f + fma(k, LN2[1], _tail(f)))
    return with_limits(x, value)


def log2(x: Lanes) -> Lanes:
    return _other_base(x, LOG2_E_PARTS, (1.0, 0.0))


def log10(x: Lanes) -> Lanes:
    return _other_base(x, LOG10_E_PARTS, LOG10_2)


def _other_base(x: Lanes, factor: tuple[float, float], of_two: tuple[float, float]) -> Lanes:
    """log(x) times a constant in two parts: the large part meets f itself, which is exact."""
    k, f = _split(x)
    rest = fma(_tail(f), factor[0], f * number(x, factor[1]))
    if of_two[1]:
        rest = fma(k, of_two[1], rest)
    return with_limits(x, fma(k, of_two[0], fma(f, factor[0], rest)))


def log1p(x: Lanes) -> Lanes:
    """log(u) for u = 1 + x rounded, corrected by what the rounding lost over u."""
    one = number(x, 1.0)
    u = one + x
    # the larger of 1 and x is subtracted first: that is exact
    lost = select(x < one, x - (u - one), one - (u - x))
    k, f = _split(u)
    value = fma(k, LN2[0], f + fma(k, LN2[1], _tail(f) + lost / u))
    value = with_limits(u, value)
    return select(fabs(x) < number(x, 5.9604645e-08), x, value)


def asinh(x: Lanes) -> Lanes:
    """log1p(a + a**2 / (1 + sqrt(a**2 + 1))) for a = |x|; log(a) + ln 2 where the square overflows."""
    return asinh_from(x, log, log1p)


def asinh_from(x: Lanes, log: Function, log1p: Function) -> Lanes:
    """asinh by way of the logarithms of the type of ``x``."""
    one, size = number(x, 1.0), fabs(x)
    square = size * size
    near = log1p(size + square / (one + sqrt(square + one)))
    far = log(size) + number(x, math.log(2.0))
    return copysign(select(size < number(x, 1e9), near, far), x)


def acosh(x: Lanes) -> Lanes:
    """log1p(t + sqrt(2 t + t**2)) for t = x - 1, which is exact near 1."""
    return acosh_from(x, log, log1p)


def acosh_from(x: Lanes, log: Function, log1p: Function) -> Lanes:
    """acosh by way of the logarithms of the type of ``x``."""
    t = x - number(x, 1.0)
    near = log1p(t + sqrt(fma(t, t, t + t)))
    far = log(x) + number(x, math.log(2.0))
    return select(x < number(x, 1.0), NAN, select(x < number(x, 1e9), near, far))


def atanh(x: Lanes) -> Lanes:
    """log1p(2 a / (1 - a)) / 2 for a = |x|"""
    return atanh_from(x, log1p)


def atanh_from(x: Lanes, log1p: Function) -> Lanes:
    """atanh by way of the logarithm of the type of ``x``."""
    size = fabs(x)
    value = log1p((size + size) / (number(x, 1.0) - size))
    return copysign(value * number(x, 0.5), x)


__all__ = [
    "acosh", "asinh", "atanh", "log", "log10", "log1p", "log2",
]  # fmt: skip
