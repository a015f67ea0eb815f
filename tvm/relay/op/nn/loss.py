"""Losses: what training compares predictions and targets by."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tvm.ir.attrs import Attrs
from tvm.ir.expr import RelayExpr
from tvm.ir.type import TensorType, Type
from tvm.relay.expr import Call, const

from ..known_shapes import known_shape
from ..operator import Expr, OperatorFunction, P, R, operator
from ..registry import ops
from ..types import (
    Tensor1,
    expect,
    expect_dim,
    expect_same_dtype,
    expect_tensor,
    is_known,
    shape_of_type,
    tensor,
)

_REDUCTIONS = ("none", "mean", "sum")


def _cross_entropy(
    name: str, is_log: bool
) -> Callable[[Callable[P, R | None]], OperatorFunction[P, R]]:
    def infer_type(attrs: Attrs, arg_types: Sequence[Type]) -> Type:
        """A scalar of the predictions' dtype."""
        predictions = expect_tensor(arg_types[0], name, "predictions", 2)
        targets = expect_tensor(arg_types[1], name, "targets", 2)
        expect_same_dtype((predictions, targets), name)
        for have, want in zip(shape_of_type(targets), shape_of_type(predictions), strict=True):
            expect_dim(have, want, name, "the targets' extents")
        return tensor((), predictions.dtype)

    def composed(call: Call, arg_types: Sequence[TensorType]) -> RelayExpr | None:
        """-sum(log(p) * t) / batch"""
        batch = shape_of_type(arg_types[0])[0]
        predictions, targets = call.args
        logs = predictions if is_log else ops.log(predictions)
        if not is_known(batch):
            return ops.negative(
                ops.mean(ops.sum(ops.multiply(logs, targets), axis=(1,)), axis=None)
            )
        total = ops.sum(ops.multiply(logs, targets), axis=None)
        dtype = arg_types[0].dtype
        return ops.multiply(total, const(-1.0 / batch, dtype=dtype))

    def gradient(call: Call, grad: RelayExpr) -> list[RelayExpr]:
        predictions, targets = call.args
        batch = known_shape(predictions, "nn.cross_entropy")[0]
        share = ops.divide(ops.negative(grad), ops.cast_like(const(batch), grad))
        logs = predictions if is_log else ops.log(predictions)
        slope = targets if is_log else ops.divide(targets, predictions)
        return [ops.multiply(share, slope), ops.multiply(share, logs)]

    return operator(name, infer_type=infer_type, simplify=composed, gradient=gradient)


@_cross_entropy("nn.cross_entropy", is_log=False)
def cross_entropy(predictions: Expr, targets: Expr) -> RelayExpr:
    """The mean over the batch of -sum(targets * log(predictions)).

    Parameters
    ----------
    predictions, targets : relay.Expr
        Probabilities, (batch, classes).
    """


@_cross_entropy("nn.cross_entropy_with_logits", is_log=True)
def cross_entropy_with_logits(predictions: Expr, targets: Expr) -> RelayExpr:
    """The mean over the batch of -sum(targets * predictions), with predictions as logarithms.

    Parameters
    ----------
    predictions : relay.Expr
        (batch, classes), logarithms of probabilities.
    targets : relay.Expr
        (batch, classes), the wanted probabilities.

    Returns
    -------
    relay.Expr
        One number, of rank 0.
    """


def _nll_loss_type(
    attrs: Any, predictions: TensorType, targets: TensorType, weights: Tensor1
) -> Type:
    """A tensor of the predictions' dtype: of the targets' shape if `reduction` is none, else a
    scalar."""
    who = "nn.nll_loss"
    expect_same_dtype((predictions, weights), who)
    have, want = shape_of_type(predictions), shape_of_type(targets)
    expect(len(have) == len(want) + 1, f"{who} requires one target for each row of predictions")
    expect_dim(shape_of_type(weights)[0], have[1], who, "the number of weights")
    for extent, given in zip((have[0], *have[2:]), want, strict=True):
        expect_dim(given, extent, who, "the targets' extents")
    expect(
        attrs.reduction in _REDUCTIONS,
        f"{who} requires a reduction of {', '.join(_REDUCTIONS)}, got {attrs.reduction!r}",
    )
    return tensor(want if attrs.reduction == "none" else (), predictions.dtype)


def _composed_nll_loss(call: Call, arg_types: Sequence[TensorType]) -> RelayExpr:
    """-weight[t] * prediction[t], for the targets that count."""
    predictions, targets, weights = call.args
    attrs = call.attrs
    dtype, index_dtype = [ty.dtype for ty in arg_types[:2]]
    ignored = ops.equal(targets, const(attrs.ignore_index, dtype=index_dtype))
    safe = ops.where(ignored, const(0, dtype=index_dtype), targets)
    picked = ops.gather(predictions, ops.expand_dims(safe, axis=1, num_newaxis=1), axis=1)
    weight = ops.where(ignored, const(0.0, dtype=dtype), ops.take(weights, safe, axis=0))
    losses = ops.negative(ops.multiply(ops.squeeze(picked, axis=(1,)), weight))
    if attrs.reduction == "none":
        return losses
    total = ops.sum(losses, axis=None)
    return total if attrs.reduction == "sum" else ops.divide(total, ops.sum(weight, axis=None))


@operator(
    "nn.nll_loss",
    "NLLLossAttrs",
    infer_type=_nll_loss_type,
    simplify=_composed_nll_loss,
)
def nll_loss(
    predictions: Expr,
    targets: Expr,
    weights: Expr,
    reduction: str = "mean",
    ignore_index: int = -100,
) -> RelayExpr:
    """The negative log likelihood of the target classes.

    Parameters
    ----------
    predictions : relay.Expr
        Logarithms of probabilities, (batch, classes, ...).
    targets : relay.Expr
        Classes, (batch, ...).
    weights : relay.Expr
        The weight of each class.
    reduction : str
        "none", "sum", or "mean": the sum over the sum of the weights.
    ignore_index : int
        The target that does not count.
    """
