"""fmod of float32, exactly: the quotient and its product with the divisor fit into float64.

x - trunc(x / y) y. With |x / y| < 2**29 no rounding of the quotient reaches the next integer, from
which it is at least 2**-24 away, and its whole part times y has at most 53 bits.
"""

from __future__ import annotations

from tvm.tir import builtin

from .bits import Lanes, copysign, fabs, narrow, number, select, widen

LARGEST_QUOTIENT = 2.0**28


def fmod(x: Lanes, y: Lanes) -> Lanes:
    """The rest has the sign of x, zeros too; a y beyond x, and infinity, leaves x as it is."""
    a, b = widen(x), widen(y)
    quotient = a / b
    whole = builtin.intrinsic_call(quotient.dtype, "trunc", (quotient,))
    rest = copysign(narrow(a - whole * b), x)
    return select(narrow(whole).equal(number(x, 0.0)), x, rest)


def quotient_size(x: Lanes, y: Lanes) -> Lanes:
    """|x / y|, or infinity if it is not finite."""
    return fabs(x / y)
