"""Functions that have no operator, by operators that keep their relative precision near zero."""

from __future__ import annotations

from tvm.ir.expr import RelayExpr
from tvm.relay import op as _op

from .common import scalar_like


def log1p(x: RelayExpr) -> RelayExpr:
    """``log(1 + x)``."""
    near = _op.less(_op.abs(x), scalar_like(0.5, x))
    return _op.where(near, log1p_of_small(x), _op.log(scalar_like(1.0, x) + x))


def log1p_of_small(x: RelayExpr) -> RelayExpr:
    """``log(1 + x)`` for ``x`` from -1/2 to 1, where ``1 + x`` rounds the small ones away."""
    two = scalar_like(2.0, x)
    return two * _op.atanh(x / (two + x))


def expm1(x: RelayExpr) -> RelayExpr:
    """``exp(x) - 1``, near zero as ``tanh(x / 2) * (exp(x) + 1)``."""
    one, power = scalar_like(1.0, x), _op.exp(x)
    near = _op.tanh(x * scalar_like(0.5, x)) * (power + one)
    return _op.where(_op.less(_op.abs(x), scalar_like(0.5, x)), near, power - one)
