"""Normalisation by mean and variance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import te, tir

from ...utils import cast_scalar, dims, prod


def layer_norm(
    data: te.Tensor,
    gamma: te.Tensor | None,
    beta: te.Tensor | None,
    axis: Sequence[int],
    epsilon: float = 1e-5,
) -> te.Tensor:
    """Normalise along axes, then scale and shift.

    Parameters
    ----------
    data : te.Tensor
        The tensor.
    gamma, beta : te.Tensor, optional
        Factors and summands, of the shape of the axes.
    axis : sequence of int
        The axes.
    epsilon : float
        Added to the variance.
    """
    rank = len(data.shape)
    axes = sorted([a % rank for a in axis])
    kept = [i for i in range(rank) if i not in axes]
    count = cast_scalar(prod(dims([data.shape[a] for a in axes])), data.dtype)
    shape = [data.shape[i] for i in kept]

    def full(rows: Sequence[Any], inner: Sequence[Any]) -> list[Any]:
        outer, reduced = iter(rows), iter(inner)
        return [next(reduced) if i in axes else next(outer) for i in range(rank)]

    def total(name: str, term: Any) -> te.Tensor:
        ks = [te.reduce_axis((0, data.shape[a]), name=f"k{a}") for a in axes]
        inner = [k.var for k in ks]
        return te.compute(shape, lambda *i: te.sum(term(i, full(i, inner)), axis=ks), name=name)

    summed = total("T_layer_norm_sum", lambda i, at: data(*at))
    mean = te.compute(shape, lambda *i: summed(*i) / count, name="T_layer_norm_mean")

    def squared(i: Any, at: Any) -> Any:
        deviation = data(*at) - mean(*i)
        return deviation * deviation

    squares = total("T_layer_norm_squares", squared)
    scale = te.compute(
        shape,
        lambda *i: (
            tir.const(1.0, data.dtype)
            / tir.sqrt(squares(*i) / count + tir.const(epsilon, data.dtype))
        ),
        name="T_layer_norm_rstd",
    )

    def element(*i: Any) -> Any:
        rows, inner = [i[k] for k in kept], [i[a] for a in axes]
        value = (data(*i) - mean(*rows)) * scale(*rows)
        value = value if gamma is None else value * gamma(*inner)
        return value if beta is None else value + beta(*inner)

    return te.compute(data.shape, element, name="T_layer_norm", tag="layer_norm")


def batch_norm(
    data: te.Tensor,
    gamma: te.Tensor,
    beta: te.Tensor,
    moving_mean: te.Tensor,
    moving_var: te.Tensor,
    axis: int | None = None,
    epsilon: float | None = None,
    center: bool | None = None,
    scale: bool | None = None,
    training: bool | None = None,
    momentum: float | None = None,
) -> list[te.Tensor]:
    """Normalise each channel by moving statistics (those of inference)."""
    at = (1 if axis is None else axis) % len(data.shape)
    smallest = tir.const(1e-5 if epsilon is None else epsilon, data.dtype)

    def element(*i: Any) -> Any:
        c = i[at]
        value = (data(*i) - moving_mean(c)) / tir.sqrt(moving_var(c) + smallest)
        value = value if scale is False else value * gamma(c)
        return value if center is False else value + beta(c)

    return [
        te.compute(data.shape, element, name="T_batch_norm", tag="broadcast"),
        moving_mean,
        moving_var,
    ]
