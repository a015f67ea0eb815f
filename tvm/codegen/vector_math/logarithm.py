"""Logarithms of float32.

x = 2**k * (1 + f) with 1 + f between sqrt(1/2) and sqrt(2), so that k is 0 around x = 1 and nothing cancels:
log x = k ln 2 + f - f**2/2 + f**3 P(f).
"""

from __future__ import annotations

from tvm.tir.expr import Cast

from .bits import FLOAT32, Lanes, bits, fma, from_bits, integer, number, polynomial, select
from .exponential import LN2, LOG10_2
from .logarithms import Logarithms

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


SINGLE = Logarithms(_split, _tail, LN2, LOG2_E_PARTS, LOG10_E_PARTS, LOG10_2, 2.0**-24)
