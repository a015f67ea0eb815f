"""Normalisation by the moments of a tensor, for both importers."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tvm.ir.expr import RelayExpr
from tvm.relay import op as _op

from .common import infer_dtype, infer_shape, scalar_like


def moments(x: RelayExpr, axes: Sequence[int]) -> tuple[RelayExpr, RelayExpr, RelayExpr]:
    """``x`` less its mean, the mean, and the variance, of extent one along the axes."""
    mean = _op.mean(x, axes, True)
    centred = x - mean
    return centred, mean, _op.mean(centred * centred, axes, True)


def standardized(x: RelayExpr, axes: Sequence[int], epsilon: float) -> RelayExpr:
    """``x`` with a mean of zero and a variance of one."""
    centred, _, variance = moments(x, axes)
    return centred / _op.sqrt(variance + scalar_like(epsilon, x))


def rms_norm(
    x: RelayExpr, axes: Sequence[int], epsilon: float, weight: RelayExpr | None = None
) -> RelayExpr:
    """``x`` over its root mean square."""
    square = _op.mean(x * x, axes, True)
    return weighted(x * _op.rsqrt(square + scalar_like(epsilon, x)), weight)


def weighted(
    x: RelayExpr, weight: RelayExpr | None, bias: RelayExpr | None = None, by_channel: bool = False
) -> RelayExpr:
    """``x * weight + bias``, of those that are given; by channel, of axis 1."""
    along = (-1, *[1] * (len(infer_shape(x)) - 2))
    if weight is not None:
        x = x * (_op.reshape(weight, along) if by_channel else weight)
    if bias is not None:
        x = x + (_op.reshape(bias, along) if by_channel else bias)
    return x


def p_norm(x: RelayExpr, p: float, axes: Sequence[int], keepdims: bool = False) -> RelayExpr:
    """The p-th root of the sum of p-th powers; the number of elements that are not zero for 0."""
    size = _op.abs(x)
    if p == 0:
        counted = _op.not_equal(x, scalar_like(0.0, x))
        return _op.sum(_op.cast(counted, infer_dtype(x)), axes, keepdims)
    if math.isinf(p):
        return (_op.max if p > 0 else _op.min)(size, axes, keepdims)
    if p == 1:
        return _op.sum(size, axes, keepdims)
    if p == 2:
        return _op.sqrt(_op.sum(x * x, axes, keepdims))
    power = _op.sum(_op.power(size, scalar_like(p, x)), axes, keepdims)
    return _op.power(power, scalar_like(1 / p, x))
