"""sin, cos, tan and their inverses.

x = n pi/2 + r with |r| <= pi/4. pi/2 is three floats: the first product and difference are exact for |n| below
2**16, so that r is right to the last place even where it is tiny. Larger arguments go to the C library.
"""

from __future__ import annotations

from .bits import (
    ROUNDER,
    Lanes,
    bits,
    copysign,
    exact_fma,
    fabs,
    fma,
    from_bits,
    integer,
    number,
    polynomial,
    select,
    sqrt,
)

LARGEST = 48000.0
HALF_PI = (1.5707963705062866, -4.371138828673793e-08, -1.7151245100058819e-15)
TWO_OVER_PI = 0.6366197723675814
PI = (3.1415927410125732, -8.742277657347586e-08)

# (sin(x) / x - 1) / x**2 and (cos(x) - 1 + x**2/2) / x**4 in x**2, on |x| <= pi/4
SIN = (-0.1666666716337204, 0.008333379402756691, -0.00019853052799589932, 2.8322738216957077e-06)
COS = (0.0416666679084301, -0.0013888978864997625, 2.4821507395245135e-05, -2.882629246414581e-07)
# (atan(x) / x - 1) / x**2 in x**2, on |x| <= 1
ATAN = (-0.33333152532577515, 0.19993767142295837, -0.14211001992225647, 0.10665770620107651,
        -0.0755167081952095, 0.043204985558986664, -0.01636345125734806,
        0.0029195179231464863)  # fmt: skip
# (tan(x) / x - 1) / x**2 in x**2, on |x| <= pi/4
TAN = (0.33333349227905273, 0.1333266645669937, 0.05406050756573677, 0.021275939419865608,
       0.010858019813895226, 5.5464577599195763e-05, 0.004395461641252041)  # fmt: skip
# (asin(x) / x - 1) / x**2 in x**2, on |x| <= ASIN_BORDER
ASIN = (0.1666664332151413, 0.07501468062400818, 0.04433805122971535, 0.03324434906244278,
        0.009236170910298824, 0.0444897897541523)  # fmt: skip
# above cos(1), so that asin(sqrt((1 - x) / 2)) is below 1/2 and has one more bit
ASIN_BORDER = 0.545


def _reduced(x: Lanes) -> tuple[Lanes, Lanes]:
    """r, and the number of the quadrant in the low bits of an integer."""
    shifted = fma(x, TWO_OVER_PI, ROUNDER)
    n = shifted - number(x, ROUNDER)
    r = exact_fma(n, -HALF_PI[0], x)
    r = exact_fma(n, -HALF_PI[2], exact_fma(n, -HALF_PI[1], r))
    return r, bits(shifted)


def _is_odd(quadrant: Lanes) -> Lanes:
    return (quadrant & integer(quadrant, 1)).equal(integer(quadrant, 1))


def _sine_in_quadrant(x: Lanes, r: Lanes, quadrant: Lanes) -> Lanes:
    """sin(r) or cos(r) by the quadrant's lowest bit, negated by the next one."""
    square = r * r
    sine = fma(r * square, polynomial(square, SIN), r)
    cosine = fma(square * square, polynomial(square, COS), fma(square, -0.5, 1.0))
    chosen = select(_is_odd(quadrant), cosine, sine)
    sign = (quadrant & integer(x, 2)) << integer(x, 30)
    return from_bits(bits(chosen) ^ sign)


def _at_zero(x: Lanes, value: Lanes) -> Lanes:
    # the sums give -0 the wrong sign
    return select(x.equal(number(x, 0.0)), x, value)


def sin(x: Lanes) -> Lanes:
    r, quadrant = _reduced(x)
    return _at_zero(x, _sine_in_quadrant(x, r, quadrant))


def cos(x: Lanes) -> Lanes:
    r, quadrant = _reduced(x)
    return _sine_in_quadrant(x, r, quadrant + integer(x, 1))


def tan(x: Lanes) -> Lanes:
    """tan(r), or -1 / tan(r) in odd quadrants, corrected by what the sum and the quotient lost."""
    r, quadrant = _reduced(x)
    square = r * r
    rest = r * square * polynomial(square, TAN)
    tangent = r + rest
    lost = rest - (tangent - r)
    inverse = number(x, 1.0) / tangent
    missing = fma(-inverse, lost, exact_fma(-inverse, tangent, number(x, 1.0)))
    cotangent = select(fabs(inverse) < number(x, 1e30), fma(inverse, missing, inverse), inverse)
    return _at_zero(x, select(_is_odd(quadrant), -cotangent, tangent))


def _atan_of_small(x: Lanes) -> Lanes:
    square = x * x
    return fma(x * square, polynomial(square, ATAN), x)


def atan(x: Lanes) -> Lanes:
    """atan(x) = pi/2 - atan(1/x) above 1"""
    size = fabs(x)
    is_large = size > number(x, 1.0)
    base = _atan_of_small(select(is_large, number(x, 1.0) / size, size))
    large = number(x, HALF_PI[0]) - (base - number(x, HALF_PI[1]))
    return copysign(select(is_large, large, base), x)


def atan2(y: Lanes, x: Lanes) -> Lanes:
    """The angle of the point (x, y): atan of the smaller coordinate over the larger, then the octant."""
    tall, wide = fabs(y), fabs(x)
    steep = tall > wide
    low, high = select(steep, wide, tall), select(steep, tall, wide)
    ratio = select(low.equal(high), 1.0, low / high)  # both may be infinite
    ratio = select(high.equal(number(x, 0.0)), 0.0, ratio)
    angle = _atan_of_small(ratio)
    angle = select(steep, number(x, HALF_PI[0]) - (angle - number(x, HALF_PI[1])), angle)
    backwards = bits(x) < integer(x, 0)
    angle = select(backwards, number(x, PI[0]) - (angle - number(x, PI[1])), angle)
    # a NaN among the coordinates is lost in comparisons
    return _keep_nan(copysign(angle, y), y, x)


def _keep_nan(angle: Lanes, y: Lanes, x: Lanes) -> Lanes:
    known = select(x.equal(x), angle, x)
    return select(y.equal(y), known, y)


def _asin_of_small(x: Lanes) -> Lanes:
    square = x * x
    return fma(x * square, polynomial(square, ASIN), x)


def asin(x: Lanes) -> Lanes:
    """asin(x) = pi/2 - 2 asin(sqrt((1 - x) / 2)) above ASIN_BORDER"""
    size = fabs(x)
    is_large = size > number(x, ASIN_BORDER)
    rest = sqrt(fma(size, -0.5, 0.5))
    base = _asin_of_small(select(is_large, rest, size))
    large = number(x, HALF_PI[0]) - (base + base - number(x, HALF_PI[1]))
    return copysign(select(is_large, large, base), x)


def acos(x: Lanes) -> Lanes:
    """pi/2 - asin(x) around zero; 2 asin(sqrt((1 - |x|) / 2)), or pi minus that, elsewhere"""
    size = fabs(x)
    is_large = size > number(x, ASIN_BORDER)
    base = _asin_of_small(select(is_large, sqrt(fma(size, -0.5, 0.5)), x))
    double = base + base
    negative = number(x, PI[0]) - (double - number(x, PI[1]))
    middle = number(x, HALF_PI[0]) - (base - number(x, HALF_PI[1]))
    return select(is_large, select(x < number(x, 0.0), negative, double), middle)


__all__ = ["LARGEST", "acos", "asin", "atan", "atan2", "cos", "sin", "tan"]
