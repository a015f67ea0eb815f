"""Logarithms of float64.

x = 2**k * (1 + f) with 1 + f between sqrt(1/2) and sqrt(2), and s = f / (2 + f), so that
log(1 + f) = log((1 + s) / (1 - s)) = f - f**2/2 + s * (f**2/2 + s**2 R(s**2)).
"""

from __future__ import annotations

from tvm.tir import math_op
from tvm.tir.expr import Cast

from .bits import INT32, INT64, Lanes, fma, long_integer, number, polynomial, select
from .double import LN2, LOG10_2
from .logarithms import Logarithms

SMALLEST_NORMAL = 2.2250738585072014e-308
SQRT_HALF = 0x3FE6A09E667F3BCD
# (log((1 + s) / (1 - s)) / s - 2) / s**2 in s**2, on |s| <= 0.1716
LOG = (0.6666666666666666, 0.40000000000000885, 0.28571428570799784, 0.22222222392581045,
       0.18181795547521137, 0.15386244737621665, 0.13268638369266825, 0.13088034850927555)  # fmt: skip
LOG2_E = (1.4426950408889634, 2.0355273740931033e-17)
LOG10_E = (0.4342944819032518, 1.098319650216765e-17)


def split(x: Lanes) -> tuple[Lanes, Lanes]:
    """k and f of a positive finite number; denormals are scaled up first."""
    lanes = x.dtype.lanes
    tiny = x < number(x, SMALLEST_NORMAL)
    pattern = math_op.reinterpret(INT64.with_lanes(lanes), select(tiny, x * number(x, 2.0**54), x))
    exponent = (pattern - long_integer(x, SQRT_HALF)) >> long_integer(x, 52)
    f = math_op.reinterpret(x.dtype, pattern - (exponent << long_integer(x, 52))) - number(x, 1.0)
    # k fits int32, which converts faster
    k = Cast(x.dtype, Cast(INT32.with_lanes(lanes), exponent))
    return select(tiny, k - number(x, 54.0), k), f


def _tail(f: Lanes) -> Lanes:
    """log(1 + f) - f"""
    s = f / (f + number(f, 2.0))
    square = s * s
    half = f * f * number(f, 0.5)
    return fma(s, fma(square, polynomial(square, LOG), half), -half)


DOUBLE = Logarithms(split, _tail, LN2, LOG2_E, LOG10_E, LOG10_2, 2.0**-53)
