"""The negative log-likelihood of targets."""

from __future__ import annotations

from typing import Any

from tvm import te, tir
from tvm.error import RuntimeValueError

from ..reduction import sum as sum_of
from ..utils import dims


def nll_loss(
    predictions: te.Tensor,
    targets: te.Tensor,
    weights: te.Tensor,
    reduction: str,
    ignore_index: int,
) -> te.Tensor:
    """-weights[t] * predictions[n, t, ...] for each target t.

    Parameters
    ----------
    predictions, targets, weights : te.Tensor
        (batch, classes, ...) logarithms, (batch, ...) classes and (classes,) weights; without a
        batch (classes,) and ().
    reduction : str
        "none", "sum", or "mean" (weighted).
    ignore_index : int
        The target that has no loss.
    """
    if reduction not in ("none", "mean", "sum"):
        raise RuntimeValueError(
            f"nll_loss requires a reduction of none, mean or sum, got {reduction!r}"
        )
    zero = tir.const(0, predictions.dtype)

    def unless_ignored(i: Any, value: Any) -> Any:
        target = targets(*i)
        is_ignored = tir.EQ(target, tir.const(ignore_index, target.dtype))
        return tir.if_then_else(is_ignored, zero, value(target))

    def prediction(i: Any, target: Any) -> Any:
        return predictions(i[0], target, *i[1:]) if i else predictions(target)

    losses = te.compute(
        targets.shape,
        lambda *i: unless_ignored(i, lambda t: zero - prediction(i, t) * weights(t)),
        name="nll_loss",
        tag="nll_loss",
    )
    axes = tuple(range(len(dims(targets.shape))))
    if reduction == "none":
        return losses
    total = sum_of(losses, axes) if axes else losses
    if reduction == "sum":
        return total
    given = te.compute(
        targets.shape, lambda *i: unless_ignored(i, lambda t: weights(t)), name="nll_weight"
    )
    count = sum_of(given, axes) if axes else given
    return te.compute(total.shape, lambda *i: total(*i) / count(*i), name="nll_mean")
