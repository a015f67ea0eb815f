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
