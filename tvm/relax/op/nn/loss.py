"""Losses."""

from __future__ import annotations

from typing import Any

from tvm import topi
from tvm.relax.expr import Call
from tvm.relax.op.infer import (
    common_dtype,
    common_vdevice,
    dims_of,
    fail,
    made,
    prove_unequal,
    tensors,
)
from tvm.relax.op.operator import Expr, OptExpr, operator


def _differ(a: Any, b: Any) -> bool:
    return prove_unequal(a, b)


def _infer_cross_entropy(call: Any, bb: Any) -> Any:
    """A scalar of the operands' dtype."""
    infos = tensors(call, 2)
    a, b = infos
    kind = common_dtype(call, infos)
    if a.ndim >= 0 and b.ndim >= 0 and a.ndim != b.ndim:
        raise fail(call, f"requires tensors of one rank, got {a} and {b}")
    x, y = dims_of(a), dims_of(b)
    for p, q in zip(x or (), y or (), strict=False):
        if _differ(p, q):
            raise fail(call, f"requires tensors of one shape, got {a} and {b}")
    return made((), kind, common_vdevice(call, infos))


def _cross_entropy(x: Any, y: Any) -> Any:
    if len(x.shape) > 1:
        total = topi.negative(topi.sum(topi.multiply(x, y)))
        return topi.divide(total, x.shape[0].astype(x.dtype))
    return topi.negative(topi.sum(topi.multiply(x, y)))


@operator(
    "relax.nn.cross_entropy_with_logits", infer=_infer_cross_entropy,
    FLegalize=lambda bb, call: bb.call_te(
        _cross_entropy, *call.args, primfunc_name_hint="cross_entropy_with_logits"
    ),
)  # fmt: skip
def cross_entropy_with_logits(predictions: Expr, labels: Expr) -> Expr:
    """-sum(predictions * labels) / batch

    Parameters
    ----------
    predictions, labels : relax.Expr
        Logarithms of probabilities, and the labels' probabilities.
    """


def _infer_nll(call: Any, bb: Any) -> Any:
    """A tensor of the predictions' dtype: of the targets' shape if `reduction` is none, else a
    scalar."""
    infos = tensors(call, 2, 3)
    pred, target = infos[:2]
    attrs = call.attrs
    kind = common_dtype(call, [pred, *infos[2:]])
    device = common_vdevice(call, infos)
    if attrs.reduction not in ("none", "sum", "mean"):
        raise fail(call, f"requires reduction none, sum or mean, got {attrs.reduction!r}")
    if not target.dtype.is_void and not (target.dtype.is_int or target.dtype.is_uint):
        raise fail(call, f"requires targets of an integer dtype, got {target.dtype}")
    if pred.ndim == 0:
        raise fail(call, "requires predictions of one dimension or more")
    if pred.ndim >= 0 and target.ndim >= 0:
        wanted = 0 if pred.ndim == 1 else pred.ndim - 1
        if target.ndim != wanted:
            raise fail(call, f"requires targets of {wanted} dimensions, got {target}")
    if len(infos) == 3 and infos[2].ndim not in (-1, 1):
        raise fail(call, f"requires weights of one dimension, got {infos[2]}")
    result = _nll_dims(call, infos)
    if attrs.reduction != "none":
        return made((), kind, device)
    if result is not None:
        return made(result, kind, device)
    if target.shape is not None and dims_of(target) is None:
        ndim = target.ndim
        return made(None, kind, device, ndim)
    ndim = target.ndim if target.ndim >= 0 else (pred.ndim - 1 if pred.ndim > 0 else -1)
    return made(None, kind, device, ndim)


def _nll_dims(call: Any, infos: Any) -> Any:
    pred, target = infos[:2]
    x, y = dims_of(pred), dims_of(target)
    channel = None if x is None else (x[0] if len(x) == 1 else x[1])
    rest = None if x is None else ([] if len(x) == 1 else [x[0], *x[2:]])
    if rest is not None and y is not None:
        for a, b in zip(rest, y, strict=True):
            if _differ(a, b):
                raise fail(call, f"requires targets that fit, got {pred} and {target}")
    if len(infos) == 3 and channel is not None:
        w = dims_of(infos[2])
        if w is not None and _differ(channel, w[0]):
            raise fail(call, f"requires {channel} weights, got {infos[2]}")
    return rest if y is None else list(y)


def _legalize_nll(bb: Any, call: Call) -> Any:
    attrs = call.attrs
    if len(call.args) == 3:
        return bb.call_te(
            topi.nn.nll_loss, *call.args, attrs.reduction, attrs.ignore_index,
            primfunc_name_hint="nll_loss",
        )  # fmt: skip

    def unweighted(pred: Any, target: Any, reduction: str, ignored: int) -> Any:
        channels = pred.shape[0] if len(pred.shape) == 1 else pred.shape[1]
        weights = topi.full((channels,), pred.dtype, 1.0)
        return topi.nn.nll_loss(pred, target, weights, reduction, ignored)

    return bb.call_te(
        unweighted, *call.args, attrs.reduction, attrs.ignore_index,
        primfunc_name_hint="nll_loss_without_weight",
    )  # fmt: skip


@operator("relax.nn.nll_loss", "NLLLossAttrs", infer=_infer_nll, FLegalize=_legalize_nll)
def nll_loss(
    predictions: Expr, targets: Expr, weights: OptExpr = None, reduction: str = "mean",
    ignore_index: int = -100,
) -> Expr:  # fmt: skip
    """The negative logarithm of the likelihood of classes.

    Parameters
    ----------
    predictions : relax.Expr
        Logarithms of probabilities, classes along the second axis.
    targets : relax.Expr
        The classes.
    weights : relax.Expr, optional
        Of the classes.
    reduction : str
        ``"none"``, ``"sum"`` or ``"mean"``.
    ignore_index : int
        The class that is left out.
    """
