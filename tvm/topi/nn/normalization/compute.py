"""Normalisation by mean and variance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import te, tir
from tvm.support.docstrings import described_by

from ...math import elementwise
from ...reduction import sum as sum_of
from ...shaping import reshape
from ...utils import cast_scalar, dims, mean_dtype, prod, real_axis


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
    axes = sorted([real_axis(a, rank) for a in axis])
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
    """Normalise each channel by moving statistics or, in training, by its own.

    Parameters
    ----------
    data : te.Tensor
        The tensor.
    gamma, beta, moving_mean, moving_var : te.Tensor
        One number for each channel.
    axis : int, optional
        The channels' axis, 1 by default.
    epsilon : float, optional
        Added to the variance, 1e-5 by default.
    center, scale : bool, optional
        Whether `beta` is added, and `gamma` is multiplied by; they are by default.
    training : bool, optional
        Take the statistics of `data`, and move the moving ones towards them.
    momentum : float, optional
        In training, the share of the new statistics in the moving ones, 0.1 by default.

    Returns
    -------
    list of te.Tensor
        The result and the moving statistics.
    """
    at = real_axis(1 if axis is None else axis, len(data.shape))
    smallest = tir.const(1e-5 if epsilon is None else epsilon, data.dtype)
    mean, variance = moving_mean, moving_var
    if training:
        mean, variance = _statistics(data, at)

    def element(*i: Any) -> Any:
        c = i[at]
        value = (data(*i) - mean(c)) / tir.sqrt(variance(c) + smallest)
        value = value if scale is False else value * gamma(c)
        return value if center is False else value + beta(c)

    share = 0.1 if momentum is None else momentum

    def moved(old: te.Tensor, new: te.Tensor) -> te.Tensor:
        if not training:  # an output of its own, not an argument again
            return elementwise(old, lambda v: v, "T_identity")
        kept, added = tir.const(1 - share, old.dtype), tir.const(share, old.dtype)
        return te.compute(old.shape, lambda c: old(c) * kept + new(c) * added, tag="elemwise")

    return [
        te.compute(data.shape, element, name="T_batch_norm", tag="broadcast"),
        moved(moving_mean, mean),
        moved(moving_var, variance),
    ]


def _statistics(data: te.Tensor, axis: int) -> tuple[te.Tensor, te.Tensor]:
    """The mean and the variance of each channel."""
    rest = [i for i in range(len(data.shape)) if i != axis]
    count = cast_scalar(prod([dims(data.shape)[i] for i in rest]), data.dtype)
    total = sum_of(data, rest)
    mean = elementwise(total, lambda v: v / count, "T_mean")
    squares = te.compute(
        data.shape,
        lambda *i: (data(*i) - mean(i[axis])) * (data(*i) - mean(i[axis])),
        name="T_squares",
        tag="broadcast",
    )
    return mean, elementwise(sum_of(squares, rest), lambda v: v / count, "T_variance")


@described_by(layer_norm)
def instance_norm(
    data: te.Tensor,
    gamma: te.Tensor,
    beta: te.Tensor,
    axis: Sequence[int],
    epsilon: float = 1e-5,
) -> te.Tensor:
    """Normalise along the spatial axes of NC..., then scale and shift each channel.

    Parameters
    ----------
    gamma, beta : te.Tensor
        One factor and summand for each channel.
    axis : sequence of int
        The spatial axes.
    """
    return _scaled_channels(layer_norm(data, None, None, axis, epsilon), gamma, beta, 1)


@described_by(instance_norm)
def group_norm(
    data: te.Tensor,
    gamma: te.Tensor,
    beta: te.Tensor,
    num_groups: int,
    channel_axis: int,
    axes: Sequence[int],
    epsilon: float = 1e-5,
) -> te.Tensor:
    """Normalise groups of channels, then scale and shift each channel.

    Parameters
    ----------
    num_groups : int
        The number of groups.
    channel_axis : int
        The axis of channels.
    axes : sequence of int
        The axes that are normalised besides the channels of a group.
    """
    shape = list(dims(data.shape))
    rank = len(shape)
    at = real_axis(channel_axis, rank)
    grouped = reshape(data, [*shape[:at], num_groups, shape[at] // num_groups, *shape[at + 1 :]])
    others = [a for a in [real_axis(a, rank) for a in axes] if a != at]
    inner = [a + (a > at) for a in others]
    normal = layer_norm(grouped, None, None, [at + 1, *inner], epsilon)
    return _scaled_channels(reshape(normal, shape), gamma, beta, at)


def _scaled_channels(
    data: te.Tensor, gamma: te.Tensor | None, beta: te.Tensor | None, axis: int
) -> te.Tensor:
    def element(*i: Any) -> Any:
        value = data(*i) if gamma is None else data(*i) * gamma(i[axis])
        return value if beta is None else value + beta(i[axis])

    return te.compute(data.shape, element, name="T_scaled_channels", tag="broadcast")


@described_by(layer_norm)
def rms_norm(
    data: te.Tensor, weight: te.Tensor, axis: Sequence[int], epsilon: float = 1e-5
) -> te.Tensor:
    """Divide by the root of the mean square along axes, then scale.

    Parameters
    ----------
    weight : te.Tensor
        Factors, of the shape of the axes.
    epsilon : float
        Added to the mean square. Narrow floats are computed in float32.
    """
    rank, wide = len(data.shape), mean_dtype(data.dtype)
    axes = sorted([real_axis(a, rank) for a in ([axis] if isinstance(axis, int) else axis)])
    count = cast_scalar(prod(dims([data.shape[a] for a in axes])), wide)

    def square(*i: Any) -> Any:
        value = data(*i).astype(wide)
        return value * value

    squares = te.compute(data.shape, square, name="T_squares", tag="elemwise")
    total = sum_of(squares, axes, keepdims=True)

    def element(*i: Any) -> Any:
        row = [0 if k in axes else i[k] for k in range(rank)]
        scale = tir.rsqrt(total(*row) / count + tir.const(epsilon, wide))
        factor = weight(*[i[k] for k in axes]).astype(wide)
        return (data(*i).astype(wide) * scale * factor).astype(data.dtype)

    return te.compute(data.shape, element, name="T_rms_norm", tag="rms_norm")
