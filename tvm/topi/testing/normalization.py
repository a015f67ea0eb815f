"""Normalisation, softmax and losses in numpy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

Array = np.ndarray


def _scaled(data: Array, gamma: Array, beta: Array, axes: Sequence[int]) -> Array:
    shape = [n if i in axes else 1 for i, n in enumerate(data.shape)]
    return data * gamma.reshape(shape) + beta.reshape(shape)


def _standardised(data: Array, axes: tuple[int, ...], epsilon: float) -> Array:
    mean, variance = data.mean(axes, keepdims=True), data.var(axes, keepdims=True)
    return np.asarray((data - mean) / np.sqrt(variance + epsilon))


def layer_norm_python(
    data: Array, gamma: Array, beta: Array, axis: Any, epsilon: float = 1e-5
) -> Array:
    """Zero mean and unit variance over some axes, then a scale and a shift of their elements."""
    axes = tuple(np.atleast_1d(axis) % data.ndim)
    return _scaled(_standardised(data, axes, epsilon), gamma, beta, axes)


def group_norm_python(
    data: Array, gamma: Array, beta: Array, num_groups: int, channel_axis: int,
    axes: Sequence[int], epsilon: float = 1e-5,
) -> Array:  # fmt: skip
    """Zero mean and unit variance over groups of channels and other axes."""
    at = channel_axis % data.ndim
    shape = (*data.shape[:at], num_groups, data.shape[at] // num_groups, *data.shape[at + 1 :])
    over = tuple([a % data.ndim + int(a % data.ndim >= at) for a in axes if a % data.ndim != at])
    found = _standardised(data.reshape(shape), (at + 1, *over), epsilon).reshape(data.shape)
    return _scaled(found, gamma, beta, (at,))


def instance_norm_python(
    data: Array, gamma: Array, beta: Array, axis: Any, epsilon: float = 1e-5
) -> Array:
    """Zero mean and unit variance of each channel (axis 1) over some axes."""
    axes = tuple(np.atleast_1d(axis) % data.ndim)
    return _scaled(_standardised(data, axes, epsilon), gamma, beta, (1,))


def rms_norm_python(data: Array, weight: Array, axis: Any, epsilon: float = 1e-5) -> Array:
    """A mean square of 1 over some axes, then a scale of their elements."""
    axes = tuple(np.atleast_1d(axis) % data.ndim)
    mean = np.square(data).mean(axes, keepdims=True)
    return _scaled(data / np.sqrt(mean + epsilon), weight, np.zeros_like(weight), axes)


def batch_norm(
    x: Array, gamma: Array, beta: Array, moving_mean: Array, moving_var: Array, axis: int,
    epsilon: float, center: bool, scale: bool, training: bool, momentum: float,
) -> list[Array]:  # fmt: skip
    """The result, and the moving mean and variance afterwards."""
    at = axis % x.ndim
    mean, variance = moving_mean, moving_var
    if training:
        over = tuple([a for a in range(x.ndim) if a != at])
        mean, variance = x.mean(over), x.var(over)
        moving_mean = (1 - momentum) * moving_mean + momentum * mean
        moving_var = (1 - momentum) * moving_var + momentum * variance
    shape = [-1 if a == at else 1 for a in range(x.ndim)]
    out = (x - mean.reshape(shape)) / np.sqrt(variance.reshape(shape) + epsilon)
    out = out * gamma.reshape(shape) if scale else out
    out = out + beta.reshape(shape) if center else out
    return [out, moving_mean, moving_var]


def l2_normalize_python(a_np: Array, eps: float, axis: Any = None) -> Array:
    """A length of 1 over some axes, unless it was below the root of `eps`."""
    axes = None if axis is None else tuple(np.atleast_1d(axis))
    return np.asarray(a_np / np.sqrt(np.maximum(np.square(a_np).sum(axes, keepdims=True), eps)))


def lrn_python(a_np: Array, size: int, axis: int, bias: float, alpha: float, beta: float) -> Array:
    """Each element divided by a power of what its neighbours along an axis sum up to."""
    squares = np.moveaxis(np.square(a_np), axis, 0)
    total = np.zeros_like(squares)
    reach, count = size // 2, len(squares)
    for i in range(count):
        total[i] = squares[max(i - reach, 0) : min(i + reach, count - 1) + 1].sum(0)
    return np.asarray(a_np / np.power(bias + alpha * np.moveaxis(total, 0, axis) / size, beta))


def softmax_python(a_np: Array, axis: int = 1) -> Array:
    """Normalised exponentials along an axis."""
    found = np.exp(a_np - a_np.max(axis, keepdims=True))
    return np.asarray(found / found.sum(axis, keepdims=True))


def log_softmax_python(a_np: Array, axis: int = 1) -> Array:
    """The logarithms of normalised exponentials along an axis."""
    moved = a_np - a_np.max(axis, keepdims=True)
    return np.asarray(moved - np.log(np.exp(moved).sum(axis, keepdims=True)))


def nll_loss(
    predictions: Array, targets: Array, weights: Array, reduction: str = "mean",
    ignore_index: int = -100,
) -> Array:  # fmt: skip
    """The negative log likelihood of targets; predictions are (N, classes, ...) or (classes,)."""
    if predictions.ndim == 1:
        predictions, targets = predictions[None], np.reshape(targets, (1,))
        loss = nll_loss(predictions, targets, weights, reduction, ignore_index)
        return loss[0] if reduction == "none" else loss
    counts = targets != ignore_index
    known = np.where(counts, targets, 0)
    picked = np.take_along_axis(predictions, known[:, None], 1)[:, 0]
    factor = np.where(counts, weights[known], 0)
    loss = -picked * factor
    if reduction == "none":
        return loss
    total: Array = loss.sum() / factor.sum() if reduction == "mean" else loss.sum()
    return total
