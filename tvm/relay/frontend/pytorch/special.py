"""PyTorch's special functions, by series and rational approximations of float precision."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tvm.error import OpAttributeUnImplemented
from tvm.ir.expr import RelayExpr
from tvm.relay import op as _op
from tvm.relay.frontend.common import constant, infer_dtype, infer_shape, scalar_like
from tvm.relay.op.annotation import stop_fusion

from .registry import CONVERTERS, as_number, is_tensor, promoted_floats, torch_op, torch_ops

_TOGETHER = 8  # steps of a series that become one kernel, which repeats what it uses twice


def _horner(x: RelayExpr, coefficients: Sequence[float]) -> RelayExpr:
    """A polynomial, its highest coefficient first."""
    result = scalar_like(coefficients[0], x)
    for coefficient in coefficients[1:]:
        result = result * x + scalar_like(coefficient, x)
    return result


def _wide(apply: Callable[..., RelayExpr]) -> Callable[..., RelayExpr]:
    """Compute in float64, so that cancellation does not show in float32."""

    def convert(*operands: Any) -> RelayExpr:
        values = promoted_floats(*operands)
        dtype = infer_dtype(values[0])
        return _op.cast(apply(*[_op.cast(v, "float64") for v in values]), dtype)

    return convert


def _lgamma(x: RelayExpr) -> RelayExpr:
    """Stirling's series above 8, reached by the recurrence; reflection below 1/2."""
    half, one = scalar_like(0.5, x), scalar_like(1.0, x)
    reflected = _op.less(x, half)
    y = _op.where(reflected, one - x, x)
    small = _op.less(y, scalar_like(8.0, x))
    rising = y
    for k in range(1, 8):
        rising = rising * (y + scalar_like(float(k), x))
    product = stop_fusion(_op.where(small, rising, one))
    shift = stop_fusion(_op.where(small, y + scalar_like(8.0, x), y))
    inverse = one / shift
    series = inverse * _horner(
        inverse * inverse, [-1 / 1680, 1 / 1260, -1 / 360, 1 / 12]
    )  # fmt: skip
    stirling = (shift - half) * _op.log(shift) - shift + scalar_like(0.5 * math.log(2 * math.pi), x)
    result = stirling + series - _op.log(product)
    sine = _op.abs(_op.sin(scalar_like(math.pi, x) * (x - _op.floor(x))))
    mirrored = scalar_like(math.log(math.pi), x) - _op.log(sine) - result
    value = _op.where(reflected, mirrored, result)
    return _op.where(_op.isinf(x), scalar_like(math.inf, x), value)


def _digamma(x: RelayExpr) -> RelayExpr:
    """The asymptotic series above 10; recurrence and reflection below."""
    zero, one = scalar_like(0.0, x), scalar_like(1.0, x)
    reflected = _op.less(x, zero)
    y = _op.where(reflected, one - x, x)
    small = _op.less(y, scalar_like(10.0, x))
    steps = zero
    for k in range(10):
        steps = steps - one / (y + scalar_like(float(k), x))
    total = stop_fusion(_op.where(small, steps, zero))
    shift = stop_fusion(_op.where(small, y + scalar_like(10.0, x), y))
    inverse = one / (shift * shift)
    series = inverse * _horner(inverse, [1 / 132, -1 / 240, 1 / 252, -1 / 120, 1 / 12])
    result = total + _op.log(shift) - scalar_like(0.5, x) / shift - series
    angle = scalar_like(math.pi, x) * (x - _op.floor(x))
    mirrored = result - scalar_like(math.pi, x) / _op.tan(angle)
    value = _op.where(reflected, mirrored, result)
    is_pole = _op.logical_and(_op.equal(x, _op.floor(x)), _op.less(x, zero))
    value = _op.where(is_pole, scalar_like(math.nan, x), value)
    return _op.where(_op.equal(x, zero), scalar_like(-math.inf, x), value)


_BERNOULLI = [1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510]


def _zeta(s: RelayExpr, q: RelayExpr) -> RelayExpr:
    """Hurwitz's zeta function by Euler and Maclaurin's sum."""
    one, terms = scalar_like(1.0, s), 12
    total = scalar_like(0.0, s)
    negative = _op.negative(s)
    for k in range(terms):
        total = total + _power(q + scalar_like(float(k), s), negative)
    edge = q + scalar_like(float(terms), s)
    tail = _op.power(edge, negative)
    total = total + tail * edge / (s - one) + tail * scalar_like(0.5, s)
    factor, weight = s, tail / edge
    for k, bernoulli in enumerate(_BERNOULLI):
        total = total + scalar_like(bernoulli / math.factorial(2 * k + 2), s) * factor * weight
        factor = factor * (s + scalar_like(2.0 * k + 1, s)) * (s + scalar_like(2.0 * k + 2, s))
        factor, weight = stop_fusion(factor), stop_fusion(weight / (edge * edge))
    pole = _op.logical_and(_op.less_equal(q, scalar_like(0.0, s)), _op.equal(q, _op.floor(q)))
    total = _op.where(pole, scalar_like(math.inf, s), total)
    uneven = _op.logical_not(_op.equal(s, _op.floor(s)))
    outside = _op.logical_and(_op.less(q, scalar_like(0.0, s)), uneven)
    undefined = _op.logical_or(_op.less(s, one), outside)
    total = _op.where(undefined, scalar_like(math.nan, s), total)
    return _op.where(_op.equal(s, one), scalar_like(math.inf, s), total)


def _power(base: RelayExpr, exponent: RelayExpr) -> RelayExpr:
    """A power whose base may be negative, for integer exponents."""
    size = _op.power(_op.abs(base), exponent)
    half = exponent * scalar_like(0.5, exponent)
    odd = _op.not_equal(half, _op.floor(half))
    flipped = _op.logical_and(odd, _op.less(base, scalar_like(0.0, base)))
    return _op.where(flipped, _op.negative(size), size)


def _gamma_below(a: RelayExpr, x: RelayExpr) -> RelayExpr:
    """The lower regularized gamma function by its series, the upper by Lentz's fraction."""
    one, zero = scalar_like(1.0, x), scalar_like(0.0, x)
    scale = _op.exp(a * _op.log(x) - x - _lgamma(a))
    term = total = one / a
    for k in range(1, 120):
        term = term * x / (a + scalar_like(float(k), x))
        total = total + term
        if k % _TOGETHER == 0:
            term, total = stop_fusion(term), stop_fusion(total)
    below = total * scale
    tiny = scalar_like(1e-300, x)
    b = x + one - a
    c, d = one / tiny, one / b
    fraction = d
    for k in range(1, 80):
        step = scalar_like(float(-k), x) * (scalar_like(float(k), x) - a)
        b = b + scalar_like(2.0, x)
        d = one / (step * d + b)
        c = b + step / c
        fraction = fraction * d * c
        if k % _TOGETHER == 0:
            b, c, d, fraction = [stop_fusion(v) for v in (b, c, d, fraction)]
    above = one - fraction * scale
    result = _op.where(_op.less(x, a + one), below, above)
    result = _op.where(_op.equal(x, zero), zero, result)
    result = _op.where(_op.logical_or(_op.isinf(x), _op.equal(a, zero)), one, result)
    bad = _op.logical_or(_op.less(x, zero), _op.less(a, zero))
    both = _op.logical_and(_op.equal(x, zero), _op.equal(a, zero))
    return _op.where(_op.logical_or(bad, both), scalar_like(math.nan, x), result)


def _ndtri(p: RelayExpr) -> RelayExpr:
    """The normal distribution's quantile: Acklam's fractions, then two steps of Halley's."""
    low, half = scalar_like(0.02425, p), scalar_like(0.5, p)
    one, zero = scalar_like(1.0, p), scalar_like(0.0, p)
    tail = _op.minimum(p, one - p)
    q = _op.sqrt(scalar_like(-2.0, p) * _op.log(tail))
    outer = _horner(q, [-7.784894002430293e-03, -3.223964580411365e-01, -2.400758277161838,
                        -2.549732539343734, 4.374664141464968, 2.938163982698783]) / _horner(
        q, [7.784695709041462e-03, 3.224671290700398e-01, 2.445134137142996, 3.754408661907416,
            1.0])  # fmt: skip
    r = p - half
    s = r * r
    inner = r * _horner(s, [-3.969683028665376e01, 2.209460984245205e02, -2.759285104469687e02,
                            1.383577518672690e02, -3.066479806614716e01, 2.506628277459239]) / (
        _horner(s, [-5.447609879822406e01, 1.615858368580409e02, -1.556989798598866e02,
                    6.680131188771972e01, -1.328068155288572e01, 1.0]))  # fmt: skip
    signed = _op.where(_op.less(p, half), outer, _op.negative(outer))
    x = _op.where(_op.less(tail, low), signed, inner)
    x = stop_fusion(x)
    for _ in range(2):
        miss = half * (one + _op.erf(x * scalar_like(math.sqrt(0.5), p))) - p
        slope = miss * scalar_like(math.sqrt(2 * math.pi), p) * _op.exp(x * x * half)
        x = stop_fusion(x - slope / (one + x * slope * half))
    x = _op.where(_op.equal(p, zero), scalar_like(-math.inf, p), x)
    x = _op.where(_op.equal(p, one), scalar_like(math.inf, p), x)
    bad = _op.logical_or(_op.less(p, zero), _op.greater(p, one))
    return _op.where(bad, scalar_like(math.nan, p), x)


def _erfinv(x: RelayExpr) -> RelayExpr:
    half = scalar_like(0.5, x)
    return _ndtri((x + scalar_like(1.0, x)) * half) * scalar_like(math.sqrt(0.5), x)


_NEAR = 60.0  # up to here the quadrature is exact, from here the asymptotic series


def _by_quadrature(
    kernel: Callable[[RelayExpr, RelayExpr], RelayExpr], far: Callable[[RelayExpr], RelayExpr]
) -> Callable[[RelayExpr], RelayExpr]:
    """The mean of a periodic kernel over the half circle, by the midpoint rule."""

    def apply(x: RelayExpr) -> RelayExpr:
        angles = (np.arange(64) + 0.5) * (math.pi / 64)
        size, edge = _op.abs(x), scalar_like(_NEAR, x)
        column = _op.expand_dims(_op.minimum(size, edge), len(infer_shape(x)))
        near = _op.mean(kernel(column, constant(angles, "float64")), axis=[-1])
        return _op.where(_op.less(size, edge), near, far(_op.maximum(size, edge)))

    return apply


def _far_modified(order: int) -> Callable[[RelayExpr], RelayExpr]:
    """``exp(-x) I(x)`` for large x: the series in 1 / x with mu = 4 order^2."""
    mu, terms = 4.0 * order * order, [1.0]
    for k in range(1, 6):
        terms.append(-terms[-1] * (mu - (2 * k - 1) ** 2) / (8 * k))

    def apply(x: RelayExpr) -> RelayExpr:
        series = _horner(scalar_like(1.0, x) / x, terms[::-1])
        return series / _op.sqrt(scalar_like(2 * math.pi, x) * x)

    return apply


def _far_oscillating(order: int) -> Callable[[RelayExpr], RelayExpr]:
    """``J(x)`` for large x: Hankel's expansion."""
    mu = 4.0 * order * order

    def apply(x: RelayExpr) -> RelayExpr:
        inverse = scalar_like(1.0, x) / x
        even = _horner(inverse * inverse, [-(mu - 1) * (mu - 9) / 128, 1.0])
        odd = inverse * _horner(
            inverse * inverse, [-(mu - 1) * (mu - 9) * (mu - 25) / 3072, (mu - 1) / 8]
        )
        angle = x - scalar_like((order / 2 + 0.25) * math.pi, x)
        wave = even * _op.cos(angle) - odd * _op.sin(angle)
        return wave * _op.sqrt(scalar_like(2 / math.pi, x) / x)

    return apply


def _damped(x: RelayExpr, t: RelayExpr) -> RelayExpr:
    return _op.exp(x * (_op.cos(t) - constant(1.0, "float64")))


_bessel_i0e = _by_quadrature(_damped, _far_modified(0))
_bessel_i1e_size = _by_quadrature(lambda x, t: _damped(x, t) * _op.cos(t), _far_modified(1))
_bessel_j0 = _by_quadrature(lambda x, t: _op.cos(x * _op.sin(t)), _far_oscillating(0))
_bessel_j1_size = _by_quadrature(lambda x, t: _op.cos(t - x * _op.sin(t)), _far_oscillating(1))


def _bessel_i1e(x: RelayExpr) -> RelayExpr:
    return _op.sign(x) * _bessel_i1e_size(x)


def _erfcx(x: RelayExpr) -> RelayExpr:
    """``exp(x * x) * erfc(x)``; a continued fraction where erfc is small."""
    one = scalar_like(1.0, x)
    far = scalar_like(0.0, x)
    for k in range(60, 0, -1):
        far = scalar_like(k / 2.0, x) / (x + far)
    far = scalar_like(1 / math.sqrt(math.pi), x) / (x + far)
    near = _op.exp(x * x) * (one - _op.erf(x))
    return _op.where(_op.greater(x, scalar_like(2.0, x)), far, near)


def _spherical_j0(x: RelayExpr) -> RelayExpr:
    one, zero = scalar_like(1.0, x), scalar_like(0.0, x)
    away = _op.sin(x) / _op.where(_op.equal(x, zero), one, x)
    value = _op.where(_op.equal(x, zero), one, away)
    return _op.where(_op.isinf(x), zero, value)


_FUNCTIONS: dict[str, Callable[..., RelayExpr]] = {
    "lgamma special_gammaln prims::lgamma": _lgamma,
    "digamma special_digamma special_psi prims::digamma": _digamma,
    "special_zeta prims::zeta": _zeta,
    "igamma special_gammainc prims::igamma": _gamma_below,
    "igammac special_gammaincc prims::igammac": lambda a, x: (
        scalar_like(1.0, x) - _gamma_below(a, x)
    ),
    "special_ndtri prims::ndtri": _ndtri,
    "erfinv special_erfinv prims::erf_inv": _erfinv,
    "special_i0e prims::bessel_i0e": _bessel_i0e,
    "special_i1e prims::bessel_i1e": _bessel_i1e,
    "i0 special_i0 prims::bessel_i0 special_modified_bessel_i0": lambda x: (
        _bessel_i0e(x) * _op.exp(_op.abs(x))
    ),
    "special_i1 prims::bessel_i1 special_modified_bessel_i1": lambda x: (
        _bessel_i1e(x) * _op.exp(_op.abs(x))
    ),
    "special_bessel_j0 prims::bessel_j0": _bessel_j0,
    "special_bessel_j1 prims::bessel_j1": lambda x: _op.sign(x) * _bessel_j1_size(x),
    "special_erfcx prims::erfcx": _erfcx,
    "special_spherical_bessel_j0 prims::spherical_bessel_j0": _spherical_j0,
}
torch_ops({names: _wide(function) for names, function in _FUNCTIONS.items()})


@torch_op("polygamma", "special_polygamma")
def _polygamma(order: Any, x: RelayExpr) -> RelayExpr:
    n = as_number(order)
    if n == 0:
        found: RelayExpr = CONVERTERS["aten::digamma"](x)
        return found
    sign = 1.0 if n % 2 else -1.0

    def apply(value: RelayExpr) -> RelayExpr:
        size = _zeta(scalar_like(n + 1.0, value), value)
        return size * scalar_like(sign * math.factorial(n), value)

    return _wide(apply)(x)


# by name: the polynomials of degree 1, and the recurrence p[n + 1] = (a x + b) p[n] - c p[n - 1]
_Recurrence = Callable[[int], tuple[float, float, float]]
_POLYNOMIALS: dict[str, tuple[tuple[float, float], _Recurrence]] = {
    "special_chebyshev_polynomial_t": ((1, 0), lambda n: (2, 0, 1)),
    "special_chebyshev_polynomial_u": ((2, 0), lambda n: (2, 0, 1)),
    "special_chebyshev_polynomial_v": ((2, -1), lambda n: (2, 0, 1)),
    "special_chebyshev_polynomial_w": ((2, 1), lambda n: (2, 0, 1)),
    "special_shifted_chebyshev_polynomial_t": ((2, -1), lambda n: (4, -2, 1)),
    "special_shifted_chebyshev_polynomial_u": ((4, -2), lambda n: (4, -2, 1)),
    "special_shifted_chebyshev_polynomial_v": ((4, -3), lambda n: (4, -2, 1)),
    "special_shifted_chebyshev_polynomial_w": ((4, -1), lambda n: (4, -2, 1)),
    "special_hermite_polynomial_h": ((2, 0), lambda n: (2, 0, 2 * n)),
    "special_hermite_polynomial_he": ((1, 0), lambda n: (1, 0, n)),
    "special_laguerre_polynomial_l": (
        (-1, 1), lambda n: (-1 / (n + 1), (2 * n + 1) / (n + 1), n / (n + 1))
    ),
    "special_legendre_polynomial_p": ((1, 0), lambda n: ((2 * n + 1) / (n + 1), 0, n / (n + 1))),
}  # fmt: skip
_HIGHEST_DEGREE = 24


def _polynomial(first: tuple[float, float], recurrence: _Recurrence) -> Callable[..., RelayExpr]:
    def by_degree(x: RelayExpr, n: RelayExpr) -> RelayExpr:
        before, now = scalar_like(1.0, x), scalar_like(first[0], x) * x + scalar_like(first[1], x)
        result = _op.where(_op.less(n, scalar_like(1.0, x)), before, now)
        for degree in range(1, _HIGHEST_DEGREE):
            a, b, c = recurrence(degree)
            following = (scalar_like(a, x) * x + scalar_like(b, x)) * now - scalar_like(
                c, x
            ) * before
            before, now = now, stop_fusion(following)
            result = _op.where(_op.greater_equal(n, scalar_like(degree + 1.0, x)), now, result)
        unknown = _op.greater_equal(n, scalar_like(_HIGHEST_DEGREE + 1.0, x))
        result = _op.where(unknown, scalar_like(math.nan, x), result)
        return _op.where(_op.less(n, scalar_like(0.0, x)), scalar_like(0.0, x), result)

    def convert(x: Any, degree: Any) -> RelayExpr:
        known = as_number(degree)
        if not is_tensor(known) and known > _HIGHEST_DEGREE:
            raise OpAttributeUnImplemented(
                f"polynomials require a degree of at most {_HIGHEST_DEGREE}, got {known}"
            )
        return _wide(by_degree)(x, degree)

    return convert


for _name, (_first, _rule) in _POLYNOMIALS.items():
    CONVERTERS[f"aten::{_name}"] = _polynomial(_first, _rule)
