"""Functions without an operator of their own, written in simpler ones, for both importers.

They keep their relative precision near zero, where ``1 + x`` rounds small numbers away.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeVar

from tvm.ir.expr import RelayExpr
from tvm.relay import op as _op
from tvm.relay.expr import TupleWrapper

from .common import scalar_like

T = TypeVar("T")


def whole_power(x: T, exponent: int, multiply: Callable[[T, T], T]) -> T:
    """``x**exponent`` of an exponent from 1 on by products, which wrap around as integers do."""
    result: T | None = None
    while True:
        if exponent % 2:
            result = x if result is None else multiply(result, x)
        exponent //= 2
        if not exponent:
            assert result is not None
            return result
        x = multiply(x, x)


def log1p(x: RelayExpr) -> RelayExpr:
    """``log(1 + x)``."""
    near = _op.less(_op.abs(x), scalar_like(0.5, x))
    return _op.where(near, log1p_of_small(x), _op.log(scalar_like(1.0, x) + x))


def log1p_of_small(x: RelayExpr) -> RelayExpr:
    """``log(1 + x)`` for ``x`` from -1/2 to 1."""
    two = scalar_like(2.0, x)
    return two * _op.atanh(x / (two + x))


def expm1(x: RelayExpr) -> RelayExpr:
    """``exp(x) - 1``, near zero as ``tanh(x / 2) * (exp(x) + 1)``."""
    one, power = scalar_like(1.0, x), _op.exp(x)
    near = _op.tanh(x * scalar_like(0.5, x)) * (power + one)
    return _op.where(_op.less(_op.abs(x), scalar_like(0.5, x)), near, power - one)


def added(x: RelayExpr, other: RelayExpr | None) -> RelayExpr:
    """``x`` plus what may be given."""
    return x if other is None else x + other


def scaled(x: RelayExpr, factor: float) -> RelayExpr:
    """``x`` times a number."""
    return x if factor == 1 else x * scalar_like(factor, x)


def affine(x: RelayExpr, alpha: float = 1.0, beta: float = 0.0) -> RelayExpr:
    """``alpha * x + beta``."""
    return x * scalar_like(alpha, x) + scalar_like(beta, x)


def scaled_tanh(x: RelayExpr, alpha: float = 1.0, beta: float = 1.0) -> RelayExpr:
    """``alpha * tanh(beta * x)``."""
    return _op.tanh(x * scalar_like(beta, x)) * scalar_like(alpha, x)


def threshold(x: RelayExpr, limit: float, value: float = 0.0) -> RelayExpr:
    """``x`` above a limit, a number elsewhere."""
    return _op.where(_op.greater(x, scalar_like(limit, x)), x, scalar_like(value, x))


def prelu(x: RelayExpr, slope: RelayExpr) -> RelayExpr:
    """``x`` above zero, ``slope * x`` below."""
    return _op.where(_op.less(x, scalar_like(0.0, x)), x * slope, x)


def elu(x: RelayExpr, alpha: float = 1.0) -> RelayExpr:
    """``x`` above zero, ``alpha * (exp(x) - 1)`` below."""
    zero, one = scalar_like(0.0, x), scalar_like(1.0, x)
    below = scalar_like(alpha, x) * (_op.exp(_op.minimum(x, zero)) - one)
    return _op.where(_op.less(x, zero), below, x)


def celu(x: RelayExpr, alpha: float = 1.0) -> RelayExpr:
    """``alpha * elu(x / alpha)``."""
    return elu(x) if alpha == 1 else elu(x / scalar_like(alpha, x)) * scalar_like(alpha, x)


def selu(x: RelayExpr, alpha: float = 1.6732632, gamma: float = 1.050701) -> RelayExpr:
    """``gamma * elu(x, alpha)``."""
    return elu(x, alpha) * scalar_like(gamma, x)


def hard_sigmoid(x: RelayExpr, alpha: float = 0.2, beta: float = 0.5) -> RelayExpr:
    """``alpha * x + beta`` between zero and one."""
    return _op.clip(affine(x, alpha, beta), 0.0, 1.0)


def hard_sigmoid_of_sixths(x: RelayExpr) -> RelayExpr:
    """``x / 6 + 1 / 2`` between zero and one."""
    return _op.clip(x / scalar_like(6.0, x) + scalar_like(0.5, x), 0.0, 1.0)


def hard_swish(x: RelayExpr) -> RelayExpr:
    """``x`` times a hard sigmoid."""
    return x * hard_sigmoid_of_sixths(x)


def swish(x: RelayExpr, alpha: float = 1.0) -> RelayExpr:
    """``x * sigmoid(alpha * x)``."""
    return x * _op.sigmoid(scaled(x, alpha))


def softplus(x: RelayExpr) -> RelayExpr:
    """``log(1 + exp(x))`` without overflow."""
    return _op.nn.relu(x) + log1p_of_small(_op.exp(_op.negative(_op.abs(x))))


def parametric_softplus(x: RelayExpr, alpha: float = 1.0, beta: float = 1.0) -> RelayExpr:
    """``alpha * softplus(beta * x)``."""
    return softplus(x * scalar_like(beta, x)) * scalar_like(alpha, x)


def mish(x: RelayExpr) -> RelayExpr:
    """``x * tanh(softplus(x))``."""
    return x * _op.tanh(softplus(x))


def softsign(x: RelayExpr) -> RelayExpr:
    """``x / (1 + |x|)``."""
    return x / (scalar_like(1.0, x) + _op.abs(x))


def gelu(x: RelayExpr, approximate: str = "none") -> RelayExpr:
    """``x * Phi(x)``, exactly or by the tanh formula (Hendrycks and Gimpel 2016)."""
    half, one = scalar_like(0.5, x), scalar_like(1.0, x)
    if approximate == "tanh":
        inner = x * (one + scalar_like(0.044715, x) * x * x)
        return half * x * (one + _op.tanh(scalar_like(math.sqrt(2 / math.pi), x) * inner))
    return half * x * (one + _op.erf(x * scalar_like(math.sqrt(0.5), x)))


def sampled(
    draw: Callable[..., TupleWrapper], key: RelayExpr, shape: Sequence[int], dtype: str,
    *parameters: float,
) -> RelayExpr:  # fmt: skip
    """Numbers of a distribution; float64 and float32 are sampled, others cast."""
    kind = dtype if dtype == "float64" else "float32"
    numbers = draw(key, tuple(shape) or (1,), kind, *parameters)[1]
    numbers = numbers if len(shape) else _op.reshape(numbers, ())
    return numbers if dtype == kind else _op.cast(numbers, dtype)
