"""Exponential functions of float64: as those of float32, with longer polynomials."""

from __future__ import annotations

import math

from tvm.tir.expr import Cast

from .bits import (
    INT32,
    Lanes,
    at_least,
    at_most,
    clamp,
    exact_fma,
    fabs,
    fma,
    integer,
    number,
    polynomial,
    scaled,
    scaled_one_plus,
)
from .exponential import cosh_from, sigmoid_from, sinh_from, tanh_from

ROUNDER = 6755399441055744.0  # 1.5 * 2**52
LN2 = (0.6931471805599453, 2.3190468138462996e-17)
LOG10_2 = (0.3010299956639812, -2.8037281277851704e-18)
LOG2_E = 1.4426950408889634
LN10 = 2.302585092994046
# (exp(r) - 1 - r) / r**2 on |r| <= ln 2 / 2
EXP = (0.5, 0.1666666666666667, 0.04166666666666667, 0.008333333333326141, 0.0013888888888883752,
       0.00019841269874800493, 2.4801587325533363e-05, 2.7557255425746435e-06,
       2.7557273661348637e-07, 2.510520637395701e-08, 2.0914679376583935e-09)  # fmt: skip
# (2**r - 1) / r on |r| <= 1/2
EXP2 = (0.6931471805599453, 0.24022650695910072, 0.055504108664821625, 0.00961812910762848,
        0.001333355814640647, 0.00015403530393370734, 1.5252733841556773e-05,
        1.3215486808705563e-06, 1.0178057087733941e-07, 7.0548973041554995e-09,
        4.4558179083360645e-10, 2.5729324177362305e-11)  # fmt: skip
# (tanh(x) / x - 1) / x**2 in x**2, on |x| <= 0.55
TANH = (-0.3333333333333333, 0.13333333333332714, -0.053968253967434016, 0.021869488493666944,
        -0.008863234397814355, 0.003592110378689024, -0.001455661830100716,
        0.0005889360520074057, -0.0002346347410887237, 8.511313685577672e-05,
        -2.060276537636634e-05)  # fmt: skip
# (sinh(x) / x - 1) / x**2 in x**2, on |x| <= 1
SINH = (0.16666666666666666, 0.008333333333333333, 0.00019841269841269773, 2.755731922404034e-06,
        2.505210836405804e-08, 1.6059048396350562e-10, 7.646625361656657e-13,
        2.8445264169895285e-15)  # fmt: skip


def nearest(x: Lanes, factor: float) -> Lanes:
    """The integer nearest to ``x * factor``."""
    return fma(x, factor, ROUNDER) - number(x, ROUNDER)


def _exp_of_rest(r: Lanes) -> Lanes:
    """``exp(r) - 1``"""
    return fma(r * r, polynomial(r, EXP), r)


def as_int(exponent: Lanes) -> Lanes:
    """An integer of float64 as int32."""
    return Cast(INT32.with_lanes(exponent.dtype.lanes), exponent)


def exp(x: Lanes, less: int = 0) -> Lanes:
    """``exp(x) / 2**less``"""
    rest, exponent = _exp_in_parts(clamp(x, -746.0, 712.0))
    return scaled_one_plus(rest, exponent - integer(x, less) if less else exponent)


def exp_within(x: Lanes, low: float, high: float) -> Lanes:
    """``exp(x)`` of numbers within bounds."""
    bounds = math.floor(low * LOG2_E), math.ceil(high * LOG2_E)
    return scaled_one_plus(*_exp_in_parts(x), bounds)


def _exp_in_parts(x: Lanes) -> tuple[Lanes, Lanes]:
    """``exp(x)`` as ``(1 + rest) * 2**exponent``."""
    n = nearest(x, LOG2_E)
    return _exp_of_rest(exact_fma(n, -LN2[1], exact_fma(n, -LN2[0], x))), as_int(n)


def exp2(x: Lanes) -> Lanes:
    x = clamp(x, -1076.0, 1025.0)
    n = nearest(x, 1.0)
    r = x - n
    return scaled(fma(polynomial(r, EXP2), r, 1.0), as_int(n))


def exp10(x: Lanes) -> Lanes:
    x = clamp(x, -325.0, 309.0)
    n = nearest(x, LN10 * LOG2_E)
    r = exact_fma(n, -LOG10_2[1], exact_fma(n, -LOG10_2[0], x))
    return scaled_one_plus(_exp_of_rest(r * number(x, LN10)), as_int(n))


def tanh(x: Lanes) -> Lanes:
    size = fabs(x)
    return tanh_from(x, exp_within(at_most(size + size, 40.0), 0.0, 40.0), TANH)


def sigmoid(x: Lanes) -> Lanes:
    return sigmoid_from(x, exp_within(at_least(-fabs(x), -746.0), -746.0, 0.0))


def sinh(x: Lanes) -> Lanes:
    return sinh_from(x, exp(fabs(x), less=1), SINH)


def cosh(x: Lanes) -> Lanes:
    return cosh_from(exp(fabs(x), less=1))
