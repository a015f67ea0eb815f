"""Normalisation by the squares of neighbours along one axis."""

from __future__ import annotations

from typing import Any

from tvm import te, tir

from ..utils import dims, real_axis


def lrn(
    data: te.Tensor,
    size: int,
    axis: int = 1,
    alpha: float = 0.0001,
    beta: float = 0.75,
    bias: float = 2,
) -> te.Tensor:
    """data / (bias + alpha / size * sum of squares of `size` neighbours) ** beta

    Parameters
    ----------
    data : te.Tensor
        The tensor.
    size : int
        How many neighbours count, the element itself included.
    axis : int
        Along which axis.
    alpha, beta, bias : float
        Coefficients.
    """
    at = real_axis(axis, len(data.shape))
    extent = dims(data.shape)[at]
    window = te.reduce_axis((0, size), name="rxs")

    def squares(*i: Any) -> Any:
        position = i[at] + window.var - (size - 1) // 2
        value = data(*i[:at], position, *i[at + 1 :])
        inside = tir.all(position >= 0, position < extent)
        return te.sum(
            tir.if_then_else(inside, value * value, tir.const(0, data.dtype)), axis=window
        )

    total = te.compute(data.shape, squares, name="tensor_square_sum")

    def element(*i: Any) -> Any:
        norm = tir.const(bias, data.dtype) + total(*i) * tir.const(alpha / size, data.dtype)
        return data(*i) / tir.power(norm, tir.const(beta, data.dtype))

    return te.compute(data.shape, element, name="lrn", tag="lrn")
