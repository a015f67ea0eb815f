"""pow and hypot, in float64: y log2 x needs more digits than a float32 has.

log2 x = k + 2/ln 2 * (s + s**3/3 + ...) with s = (m - 1) / (m + 1), where x = 2**k m.
"""

from __future__ import annotations

from tvm.support.dtype import dtype as as_dtype
from tvm.tir import builtin, math_op, op
from tvm.tir.expr import Cast

from .bits import (
    FLOAT64,
    INT32,
    Lanes,
    bits,
    clamp,
    fabs,
    integer,
    long_integer,
    narrow,
    number,
    polynomial,
    select,
    sqrt,
    widen,
)

INT64 = as_dtype("int64")
INFINITY = float("inf")
NAN = float("nan")
SQRT_HALF = 0x3FE6A09E667F3BCD
ROUNDER = 6755399441055744.0  # 1.5 * 2**52
ROUNDER_BITS = 0x4338000000000000
# log2((1 + s) / (1 - s)) / s in s**2
LOG2 = (2.8853900817902653, 0.9617966731154274, 0.5770836287402625, 0.4116700503765886,
        0.3407803431515522)  # fmt: skip
# (2**r - 1) / r on |r| <= 1/2
EXP2 = (0.6931471807056903, 0.2402265106877433, 0.05550410362988194, 0.009618037770529348,
        0.0013333936626659523, 0.0001546688193882963, 1.5196015785544179e-05)  # fmt: skip


def pow(x: Lanes, y: Lanes) -> Lanes:
    """x**y as C defines it: also for negative x with an integer y, for zeros, infinities and NaN."""
    size = fabs(x)
    exponent = widen(y) * _log2(widen(size))
    magnitude = narrow(_exp2(clamp(exponent, -200.0, 200.0)))
    one = number(x, 1.0)
    magnitude = select(op.logical_or(size.equal(one), y.equal(number(y, 0.0))), one, magnitude)
    whole = _trunc(y).equal(y)
    half = y * number(y, 0.5)
    odd = op.logical_and(whole, _trunc(half) != half)
    negative = bits(x) < integer(x, 0)
    value = select(op.logical_and(negative, odd), -magnitude, magnitude)
    finite_negative = op.logical_and(x < number(x, 0.0), size < number(x, INFINITY))
    value = select(op.logical_and(finite_negative, op.logical_not(whole)), NAN, value)
    value = select(x.equal(x), value, x)
    value = select(y.equal(y), value, y)
    return select(op.logical_or(x.equal(one), y.equal(number(y, 0.0))), one, value)


def hypot(x: Lanes, y: Lanes) -> Lanes:
    """sqrt(x**2 + y**2); the squares cannot overflow a float64"""
    a, b = widen(x), widen(y)
    length = narrow(sqrt(a * a + b * b))
    infinite = number(x, INFINITY)
    either = op.logical_or(fabs(x).equal(infinite), fabs(y).equal(infinite))
    return select(either, infinite, length)


def _trunc(x: Lanes) -> Lanes:
    return builtin.intrinsic_call(x.dtype, "trunc", (x,))


def _log2(x: Lanes) -> Lanes:
    """log2 of a float64 that is zero, infinite, or in the range of float32."""
    lanes = x.dtype.lanes
    pattern = math_op.reinterpret(INT64.with_lanes(lanes), x)
    k = (pattern - long_integer(x, SQRT_HALF)) >> long_integer(x, 52)
    m = math_op.reinterpret(x.dtype, pattern - (k << long_integer(x, 52)))
    one = number(x, 1.0)
    s = (m - one) / (m + one)
    # k fits int32, which converts faster
    whole = Cast(FLOAT64.with_lanes(lanes), Cast(INT32.with_lanes(lanes), k))
    value = whole + s * polynomial(s * s, LOG2)
    value = select(x < number(x, INFINITY), value, x)
    return select(x.equal(number(x, 0.0)), -INFINITY, value)


def _exp2(x: Lanes) -> Lanes:
    """2**x for |x| <= 200"""
    shifted = x + number(x, ROUNDER)
    r = x - (shifted - number(x, ROUNDER))
    long = INT64.with_lanes(x.dtype.lanes)
    n = math_op.reinterpret(long, shifted) - long_integer(x, ROUNDER_BITS)
    scale = math_op.reinterpret(x.dtype, (n + long_integer(x, 1023)) << long_integer(x, 52))
    return (number(x, 1.0) + r * polynomial(r, EXP2)) * scale
