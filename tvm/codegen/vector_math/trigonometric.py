"""sin, cos, tan and their inverses, of float32 and float64.

x = n pi/2 + r with |r| <= pi/4. pi/2 is three floats: the first product and difference are exact for |x| up to
``largest``, so that r is right to the last place even where it is tiny. Larger arguments go to the C library.
"""

from __future__ import annotations

from dataclasses import dataclass

from tvm.tir.expr import Cast

from .bits import (
    INT32,
    ROUNDER,
    Lanes,
    bits,
    copysign,
    exact_fma,
    fabs,
    fma,
    from_bits,
    integer,
    is_negative,
    number,
    polynomial,
    select,
    sqrt,
)
from .double import nearest

TWO_OVER_PI = 0.6366197723675814
# above cos(1), so that asin(sqrt((1 - x) / 2)) is below 1/2 and has one more bit
ASIN_BORDER = 0.545


@dataclass(frozen=True, slots=True)
class Constants:
    """What differs between the types: coefficients in x**2, those of tangents with |x| <= pi/4."""

    largest: float
    half_pi: tuple[float, float, float]
    pi: tuple[float, float]
    sin: tuple[float, ...]  # (sin(x) / x - 1) / x**2
    cos: tuple[float, ...]  # (cos(x) - 1 + x**2/2) / x**4
    tan: tuple[float, ...]  # (tan(x) / x - 1) / x**2
    atan: tuple[float, ...]  # (atan(x) / x - 1) / x**2 on |x| <= 1
    asin: tuple[float, ...]  # (asin(x) / x - 1) / x**2 on |x| <= ASIN_BORDER


SINGLE = Constants(
    48000.0,
    (1.5707963705062866, -4.371138828673793e-08, -1.7151245100058819e-15),
    (3.1415927410125732, -8.742277657347586e-08),
    (-0.1666666716337204, 0.008333379402756691, -0.00019853052799589932, 2.8322738216957077e-06),
    (0.0416666679084301, -0.0013888978864997625, 2.4821507395245135e-05, -2.882629246414581e-07),
    (0.33333349227905273, 0.1333266645669937, 0.05406050756573677, 0.021275939419865608,
     0.010858019813895226, 5.5464577599195763e-05, 0.004395461641252041),
    (-0.33333152532577515, 0.19993767142295837, -0.14211001992225647, 0.10665770620107651,
     -0.0755167081952095, 0.043204985558986664, -0.01636345125734806, 0.0029195179231464863),
    (0.1666664332151413, 0.07501468062400818, 0.04433805122971535, 0.03324434906244278,
     0.009236170910298824, 0.0444897897541523),
)  # fmt: skip
DOUBLE = Constants(
    2.0**30,
    (1.5707963267948966, 6.123233995736766e-17, -1.4973849048591698e-33),
    (3.141592653589793, 1.2246467991473532e-16),
    (-0.16666666666666666, 0.008333333333333331, -0.00019841269841265003, 2.7557319219291695e-06,
     -2.5052106215978872e-08, 1.6058529011960858e-10, -7.586543634101903e-13),
    (0.041666666666666664, -0.0013888888888888887, 2.480158730158461e-05, -2.7557319221376434e-07,
     2.08767557819242e-09, -1.1470459438155826e-11, 4.7457865678652127e-14),
    (0.3333333333333333, 0.1333333333333336, 0.053968253968215016, 0.021869488538261955,
     0.008863235470202483, 0.0035921290568167175, 0.0014558229783926085, 0.0005901152492647251,
     0.00023864904948781934, 9.881353906701725e-05, 3.381398798491568e-05, 2.73186998855857e-05,
     -1.0464315567148816e-05, 1.9761009515729096e-05, -9.856886260287923e-06,
     3.974590223170094e-06),
    (-0.3333333333333333, 0.1999999999999992, -0.14285714285701234, 0.11111111110268297,
     -0.0909090906193528, 0.07692307078827029, -0.06666657934573768, 0.05882264416776449,
     -0.052624922290256754, 0.04758080083637821, -0.043306538430670664, 0.03938687540798632,
     -0.035271331066871296, 0.030330719265790507, -0.024191345810140718, 0.01718398172211335,
     -0.010412153260359241, 0.005140912856746939, -0.0019612554271685326, 0.0005376839297396244,
     -9.371186345052626e-05, 7.767624330289919e-06),
    (0.16666666666666666, 0.07499999999999844, 0.04464285714324705, 0.03038194440611134,
     0.022372161058594763, 0.017352703809224365, 0.013966057325622885, 0.011535227368155397,
     0.009920453497013697, 0.007307289615407602, 0.012566583916221384, -0.011411155469948309,
     0.04667377293484263, -0.05309168264599189, 0.046375061885377294),
)  # fmt: skip


def _constants(x: Lanes) -> Constants:
    return SINGLE if x.dtype.bits == 32 else DOUBLE


def _reduced(x: Lanes) -> tuple[Lanes, Lanes]:
    """r, and the number of the quadrant in the low bits of an integer."""
    if x.dtype.bits == 32:
        shifted = fma(x, TWO_OVER_PI, ROUNDER)
        n, quadrant = shifted - number(x, ROUNDER), bits(shifted)
    else:
        n = nearest(x, TWO_OVER_PI)
        quadrant = Cast(INT32.with_lanes(x.dtype.lanes), n)
    first, second, third = _constants(x).half_pi
    r = exact_fma(n, -first, x)
    return exact_fma(n, -third, exact_fma(n, -second, r)), quadrant


def _is_odd(quadrant: Lanes) -> Lanes:
    return (quadrant & integer(quadrant, 1)).equal(integer(quadrant, 1))


def _sine_in_quadrant(x: Lanes, r: Lanes, quadrant: Lanes) -> Lanes:
    """sin(r) or cos(r) by the quadrant's lowest bit, negated by the next one."""
    square = r * r
    sine = fma(r * square, polynomial(square, _constants(x).sin), r)
    cosine = fma(square * square, polynomial(square, _constants(x).cos), fma(square, -0.5, 1.0))
    chosen = select(_is_odd(quadrant), cosine, sine)
    if x.dtype.bits == 64:
        return select((quadrant & integer(x, 2)).equal(integer(x, 2)), -chosen, chosen)
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
    rest = r * square * polynomial(square, _constants(x).tan)
    tangent = r + rest
    lost = rest - (tangent - r)
    inverse = number(x, 1.0) / tangent
    missing = fma(-inverse, lost, exact_fma(-inverse, tangent, number(x, 1.0)))
    cotangent = select(fabs(inverse) < number(x, 1e30), fma(inverse, missing, inverse), inverse)
    return _at_zero(x, select(_is_odd(quadrant), -cotangent, tangent))


def _atan_of_small(x: Lanes) -> Lanes:
    square = x * x
    return fma(x * square, polynomial(square, _constants(x).atan), x)


def atan(x: Lanes) -> Lanes:
    """atan(x) = pi/2 - atan(1/x) above 1"""
    size, half_pi = fabs(x), _constants(x).half_pi
    is_large = size > number(x, 1.0)
    base = _atan_of_small(select(is_large, number(x, 1.0) / size, size))
    large = number(x, half_pi[0]) - (base - number(x, half_pi[1]))
    return copysign(select(is_large, large, base), x)


def atan2(y: Lanes, x: Lanes) -> Lanes:
    """The angle of the point (x, y): atan of the smaller coordinate over the larger, then the octant."""
    tall, wide = fabs(y), fabs(x)
    half_pi, pi = _constants(x).half_pi, _constants(x).pi
    steep = tall > wide
    low, high = select(steep, wide, tall), select(steep, tall, wide)
    ratio = select(low.equal(high), 1.0, low / high)  # both may be infinite
    ratio = select(high.equal(number(x, 0.0)), 0.0, ratio)
    angle = _atan_of_small(ratio)
    angle = select(steep, number(x, half_pi[0]) - (angle - number(x, half_pi[1])), angle)
    angle = select(is_negative(x), number(x, pi[0]) - (angle - number(x, pi[1])), angle)
    # a NaN among the coordinates is lost in comparisons
    return _keep_nan(copysign(angle, y), y, x)


def _keep_nan(angle: Lanes, y: Lanes, x: Lanes) -> Lanes:
    known = select(x.equal(x), angle, x)
    return select(y.equal(y), known, y)


def _asin_of_small(x: Lanes) -> Lanes:
    square = x * x
    return fma(x * square, polynomial(square, _constants(x).asin), x)


def asin(x: Lanes) -> Lanes:
    """asin(x) = pi/2 - 2 asin(sqrt((1 - x) / 2)) above ASIN_BORDER"""
    size, half_pi = fabs(x), _constants(x).half_pi
    is_large = size > number(x, ASIN_BORDER)
    rest = sqrt(fma(size, -0.5, 0.5))
    base = _asin_of_small(select(is_large, rest, size))
    large = number(x, half_pi[0]) - (base + base - number(x, half_pi[1]))
    return copysign(select(is_large, large, base), x)


def acos(x: Lanes) -> Lanes:
    """pi/2 - asin(x) around zero; 2 asin(sqrt((1 - |x|) / 2)), or pi minus that, elsewhere"""
    size, half_pi, pi = fabs(x), _constants(x).half_pi, _constants(x).pi
    is_large = size > number(x, ASIN_BORDER)
    base = _asin_of_small(select(is_large, sqrt(fma(size, -0.5, 0.5)), x))
    double = base + base
    negative = number(x, pi[0]) - (double - number(x, pi[1]))
    middle = number(x, half_pi[0]) - (base - number(x, half_pi[1]))
    return select(is_large, select(x < number(x, 0.0), negative, double), middle)


__all__ = ["DOUBLE", "SINGLE", "acos", "asin", "atan", "atan2", "cos", "sin", "tan"]
