"""pow and hypot of float64.

y log x needs more digits than a float64 has: log x is the sum of two numbers, and so are the steps towards it.
log m = 2 (s + s**3/3 + s**5/5 + ...) with s = (m - 1) / (m + 1), where x = 2**k m.
"""

from __future__ import annotations

from tvm.tir import op

from .bits import (
    Lanes,
    clamp,
    exact_fma,
    exact_product,
    exact_sum,
    fabs,
    fma,
    is_negative,
    number,
    polynomial,
    scaled,
    select,
    sqrt,
    sum_by_size,
)
from .double import EXP, LN2, LOG2_E, as_int, nearest
from .double_logarithm import split

INFINITY = float("inf")
NAN = float("nan")
TWO_THIRDS = (0.6666666666666666, 3.700743415417188e-17)
# ((log((1 + s) / (1 - s)) / s - 2) / s**2 - 2/3) / s**2 in s**2, on |s| <= 0.1716
LOG = (0.4, 0.2857142857142937, 0.22222222221655138, 0.18181818335562422, 0.1538459494439715,
       0.13334805679298412, 0.11706209953550312, 0.11723454509771844)  # fmt: skip
# any larger exponent makes a power 0, 1 or infinite
LARGEST_EXPONENT = 1e20


def pow(x: Lanes, y: Lanes) -> Lanes:
    """x**y as C defines it: also for negative x with an integer y, for zeros, infinities and NaN."""
    size, one, zero = fabs(x), number(x, 1.0), number(x, 0.0)
    infinite = size.equal(number(x, INFINITY))
    magnitude = _power(size, clamp(y, -LARGEST_EXPONENT, LARGEST_EXPONENT))
    # powers of zero and of infinity
    falls = select(size.equal(zero), y, -y)
    extreme = select(falls < zero, INFINITY, zero)
    magnitude = select(op.logical_or(size.equal(zero), infinite), extreme, magnitude)
    always_one = op.logical_or(size.equal(one), y.equal(zero))
    magnitude = select(always_one, one, magnitude)
    whole = _is_integral(y)
    odd = op.logical_and(whole, op.logical_not(_is_integral(y * number(y, 0.5))))
    value = select(op.logical_and(is_negative(x), odd), -magnitude, magnitude)
    finite_negative = op.logical_and(x < zero, op.logical_not(infinite))
    value = select(op.logical_and(finite_negative, op.logical_not(whole)), NAN, value)
    # -1 to an infinite power is 1, as all large numbers are even
    value = select(x.equal(x), value, x)
    value = select(y.equal(y), value, y)
    return select(op.logical_or(x.equal(one), y.equal(zero)), one, value)


def _is_integral(y: Lanes) -> Lanes:
    """Whether y is an integer, as all large and infinite numbers are."""
    size, border = fabs(y), number(y, 2.0**52)
    return op.logical_or(size >= border, ((size + border) - border).equal(size))


def _power(x: Lanes, y: Lanes) -> Lanes:
    """exp(y log x) for positive finite x"""
    high, low = _exact_log(x)
    product, lost = exact_product(y, high)
    within = clamp(product, -746.0, 712.0)
    lost = select(within.equal(product), fma(y, low, lost), 0.0)
    n = nearest(within, LOG2_E)
    near = exact_fma(n, -LN2[0], within)
    r = exact_fma(n, -LN2[1], near)
    lost = lost + exact_fma(n, -LN2[1], near - r)
    # exp(r + lost) = exp(r) + lost exp(r) with exp(r) = 1 + r + r**2 P(r)
    total, missing = sum_by_size(number(x, 1.0), r)
    rest = fma(r * r, polynomial(r, EXP), missing)
    return scaled(total + fma(lost, total + rest, rest), as_int(n))


def _exact_log(x: Lanes) -> tuple[Lanes, Lanes]:
    """log x as a sum of two numbers."""
    k, f = split(x)
    divisor, missing = exact_sum(number(x, 2.0), f)
    s = f / divisor
    s_low = (exact_fma(-s, divisor, f) - s * missing) / divisor
    z, z_low = exact_product(s, s)
    z_low = fma(s + s, s_low, z_low)
    # the sum behind 2 s is s z (2/3 + z P(z))
    inner, inner_low = sum_by_size(number(x, TWO_THIRDS[0]), z * polynomial(z, LOG))
    cube, cube_low = exact_product(s, z)
    cube_low = fma(s, z_low, fma(s_low, z, cube_low))
    tail, tail_low = exact_product(cube, inner)
    tail_low = fma(cube, inner_low + number(x, TWO_THIRDS[1]), fma(cube_low, inner, tail_low))
    log_m, log_m_low = sum_by_size(s + s, tail)
    log_m_low = log_m_low + (tail_low + (s_low + s_low))
    whole, product_low = exact_product(k, number(k, LN2[0]))
    total, total_low = sum_by_size(whole, log_m)
    return total, total_low + (fma(k, LN2[1], product_low) + log_m_low)


def hypot(x: Lanes, y: Lanes) -> Lanes:
    """sqrt(x**2 + y**2), scaled so that no square overflows or vanishes"""
    a, b = fabs(x), fabs(y)
    large = select(a > b, a, b)
    huge, tiny = large > number(x, 2.0**500), large < number(x, 2.0**-500)
    factor = select(huge, 2.0**-600, select(tiny, 2.0**600, number(x, 1.0)))
    inverse = select(huge, 2.0**600, select(tiny, 2.0**-600, number(x, 1.0)))
    a, b = a * factor, b * factor
    length = sqrt(fma(a, a, b * b)) * inverse
    infinite = number(x, INFINITY)
    either = op.logical_or(fabs(x).equal(infinite), fabs(y).equal(infinite))
    return select(either, infinite, length)
