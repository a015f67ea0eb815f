"""exp, exp2, exp10, sinh, cosh, tanh, sigmoid.

exp(x) = 2**n * exp(r) with n the integer nearest to x / ln 2, so that |r| <= ln 2 / 2. The product with r's
two-part constant is exact in a fused multiply-add.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from .bits import (
    ROUNDER,
    ROUNDER_BITS,
    Lanes,
    at_least,
    at_most,
    bits,
    clamp,
    copysign,
    exact_fma,
    fabs,
    fma,
    integer,
    number,
    polynomial,
    scaled,
    scaled_one_plus,
    select,
)

LN2 = (0.6931471824645996, -1.9046542121259336e-09)
LOG10_2 = (0.3010300099849701, -1.432098883924482e-08)
LOG2_E = 1.4426950408889634
LN10 = 2.302585092994046

# (exp(r) - 1 - r) / r**2 on |r| <= ln 2 / 2
EXP = (0.4999999403953552, 0.1666652113199234, 0.04166828840970993, 0.008368703536689281,
       0.0013818938750773668)  # fmt: skip
# (2**r - 1) / r on |r| <= 1/2
EXP2 = (0.6931471824645996, 0.24022647738456726, 0.05550359562039375, 0.009618503041565418,
        0.0013390997191891074, 0.00015327802975662053)  # fmt: skip
# (tanh(x) / x - 1) / x**2 in x**2, on |x| <= 0.55
TANH = (-0.33333316445350647, 0.13332544267177582, -0.0538475476205349, 0.02105071395635605,
        -0.00624284939840436)  # fmt: skip
# (sinh(x) / x - 1) / x**2 in x**2, on |x| <= 1
SINH = (0.1666666716337204, 0.00833331048488617, 0.00019842895562760532, 2.7822131869470468e-06)


def _nearest(x: Lanes, factor: float) -> tuple[Lanes, Lanes]:
    """The integer nearest to ``x * factor``, as float and as int32."""
    shifted = fma(x, factor, ROUNDER)
    return shifted - number(x, ROUNDER), bits(shifted) - integer(x, ROUNDER_BITS)


def _exp_of_rest(r: Lanes) -> Lanes:
    """``exp(r) - 1``: adding 1 last keeps the error of the sum before it below a quarter of a unit."""
    return fma(r * r, polynomial(r, EXP), r)


def exp(x: Lanes, less: int = 0) -> Lanes:
    """``exp(x) / 2**less``"""
    rest, exponent = _exp_in_parts(clamp(x, -104.5, 90.5))
    return scaled_one_plus(rest, exponent - integer(x, less) if less else exponent)


def exp_within(x: Lanes, low: float, high: float) -> Lanes:
    """``exp(x)`` of numbers within bounds."""
    bounds = math.floor(low * LOG2_E), math.ceil(high * LOG2_E)
    return scaled_one_plus(*_exp_in_parts(x), bounds)


def _exp_in_parts(x: Lanes) -> tuple[Lanes, Lanes]:
    """``exp(x)`` as ``(1 + rest) * 2**exponent``."""
    n, exponent = _nearest(x, LOG2_E)
    return _exp_of_rest(exact_fma(n, -LN2[1], exact_fma(n, -LN2[0], x))), exponent


def exp2(x: Lanes) -> Lanes:
    x = clamp(x, -151.0, 129.0)
    n, exponent = _nearest(x, 1.0)
    r = x - n
    return scaled(fma(polynomial(r, EXP2), r, 1.0), exponent)


def exp10(x: Lanes) -> Lanes:
    x = clamp(x, -45.5, 39.0)
    n, exponent = _nearest(x, LN10 * LOG2_E)
    r = exact_fma(n, -LOG10_2[1], exact_fma(n, -LOG10_2[0], x))
    return scaled_one_plus(_exp_of_rest(r * number(x, LN10)), exponent)


def tanh(x: Lanes) -> Lanes:
    size = fabs(x)
    return tanh_from(x, exp_within(at_most(size + size, 20.0), 0.0, 20.0), TANH)


def tanh_from(x: Lanes, power: Lanes, terms: Sequence[float]) -> Lanes:
    """A polynomial near zero, elsewhere 1 - 2 / (power + 1) with ``power`` = exp(2|x|)."""
    square = x * x
    small = fma(x * square, polynomial(square, terms), x)
    large = number(x, 1.0) - number(x, 2.0) / (power + number(x, 1.0))
    # the polynomial's sum would give -0 the wrong sign
    return copysign(select(fabs(x) < number(x, 0.55), small, large), x)


def sigmoid(x: Lanes) -> Lanes:
    """1 / (1 + exp(-x)), by way of e = exp(-|x|), which cannot overflow.

    The quotient is corrected by what rounding 1 + e lost, which matters most where e is small.
    """
    return sigmoid_from(x, exp_within(at_least(-fabs(x), -104.5), -104.5, 0.0))


def sigmoid_from(x: Lanes, power: Lanes) -> Lanes:
    """The sigmoid for ``power`` = exp(-|x|)."""
    one = number(x, 1.0)
    above = select(x < number(x, 0.0), power, one)
    total = one + power
    lost = power - (total - one)
    quotient = above / total
    return fma(-quotient, lost, quotient)


def sinh(x: Lanes) -> Lanes:
    """A polynomial near zero, elsewhere from exp(|x|) / 2, which overflows only if sinh does."""
    return sinh_from(x, exp(fabs(x), less=1), SINH)


def sinh_from(x: Lanes, half: Lanes, coefficients: Sequence[float]) -> Lanes:
    """sinh for ``half`` = exp(|x|) / 2 and the coefficients of (sinh(x) / x - 1) / x**2."""
    size = fabs(x)
    square = x * x
    small = fma(x * square, polynomial(square, coefficients), x)
    large = half - number(x, 0.25) / half
    return select(size < number(x, 1.0), small, copysign(large, x))


def cosh(x: Lanes) -> Lanes:
    return cosh_from(exp(fabs(x), less=1))


def cosh_from(half: Lanes) -> Lanes:
    """cosh for ``half`` = exp(|x|) / 2."""
    return half + number(half, 0.25) / half
