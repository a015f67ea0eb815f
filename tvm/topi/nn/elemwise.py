"""Activations, element by element."""

from __future__ import annotations

from typing import Any

from tvm import te, tir

from .. import tag
from ..math import elementwise
from ..utils import real_axis


def relu(x: te.Tensor) -> te.Tensor:
    """max(x, 0)"""
    return elementwise(x, lambda v: tir.max(v, tir.const(0, v.dtype)), "T_relu")


def leaky_relu(x: te.Tensor, alpha: float) -> te.Tensor:
    """x where it is positive, alpha * x elsewhere."""

    def element(v: Any) -> Any:
        return tir.Select(v > tir.const(0, v.dtype), v, v * tir.const(alpha, v.dtype))

    return elementwise(x, element, "T_leaky_relu")


def prelu(x: te.Tensor, slope: te.Tensor, axis: int = 1) -> te.Tensor:
    """x where it is positive, slope * x elsewhere, with one slope for each channel."""
    at = real_axis(axis, len(x.shape))

    def element(*i: Any) -> Any:
        v = x(*i)
        return tir.Select(v > tir.const(0, v.dtype), v, v * slope(i[at]))

    return te.compute(x.shape, element, name="T_prelu", tag=tag.BROADCAST)


def softplus(x: te.Tensor, beta: float = 1.0, threshold: float = 20.0) -> te.Tensor:
    """log(1 + exp(beta * x)) / beta, or x where beta * x is above the threshold."""

    def element(v: Any) -> Any:
        scale = tir.const(beta, v.dtype)
        scaled = v * scale
        below = tir.log1p(tir.exp(scaled)) / scale
        return tir.Select(scaled > tir.const(threshold, v.dtype), v, below)

    return elementwise(x, element, "T_softplus")


def selu(x: te.Tensor) -> te.Tensor:
    """x where it is positive, alpha * (exp(x) - 1) elsewhere, both scaled (Klambauer et al. 2017)."""
    alpha, scale = 1.6732632423543772, 1.0507009873554805

    def element(v: Any) -> Any:
        zero, one, two = [tir.const(number, v.dtype) for number in (0, 1, 2)]
        # exp(v) - 1 by the hyperbolic tangent, which keeps its digits near zero
        half = tir.tanh(v / two)
        below = tir.const(alpha * scale, v.dtype) * (two * half / (one - half))
        return tir.Select(v > zero, tir.const(scale, v.dtype) * v, below)

    return elementwise(x, element, "T_selu")
