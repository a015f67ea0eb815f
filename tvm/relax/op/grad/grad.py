"""What gradients are made of, and where they stop or are computed again."""

from __future__ import annotations

from typing import Any

from tvm import te, tir, topi
from tvm.relax.expr import Call, Var
from tvm.relax.op.infer import fail, same_as_first, tensor
from tvm.relax.op.nn.pooling import pool_attributes
from tvm.relax.op.operator import Dims, Expr, OptExpr, as_numbers, documented, operator


def _keep(bb: Any, call: Call) -> Any:
    return call.args[0]


@operator("relax.grad.no_grad", infer=same_as_first, FLegalize=_keep)
def no_grad(input: Expr) -> Expr:
    """A value that has no gradient.

    Parameters
    ----------
    input : relax.Expr
    """


def _of_variable(call: Call, bb: Any) -> Any:
    if not isinstance(call.args[0], Var):
        raise fail(call, f"requires a variable, got {call.args[0]}")
    return same_as_first(call, bb)


@operator("relax.grad.start_checkpoint", infer=_of_variable, FLegalize=_keep)
def start_checkpoint(input: Expr) -> Expr:
    """Where a part begins that the backward pass computes again.

    Parameters
    ----------
    input : relax.Expr
        A variable, or what is bound to one when it is emitted.
    """


@operator("relax.grad.end_checkpoint", infer=_of_variable, FLegalize=_keep)
def end_checkpoint(input: Expr) -> Expr:
    """Where a part ends that the backward pass computes again.

    Parameters
    ----------
    input : relax.Expr
        A variable, or what is bound to one when it is emitted.
    """


def _like(index: int) -> Any:
    def infer(call: Any, bb: Any) -> Any:
        return tensor(call, index)

    return infer


def _nll_backward(
    grad: te.Tensor, pred: te.Tensor, target: te.Tensor, weights: Any, reduction: str, ignored: int
) -> te.Tensor:
    batched = len(pred.shape) > 1
    channel = 1 if batched else 0

    def weight(label: Any) -> Any:
        value = tir.const(1, pred.dtype) if weights is None else weights(label)
        return tir.Select(label == ignored, tir.const(0, pred.dtype), value)

    total = None
    if reduction == "mean":
        each = te.compute(target.shape, lambda *i: weight(target(*i)), name="weights")
        total = topi.sum(each)

    def element(*i: Any) -> Any:
        where = [v for a, v in enumerate(i) if a != channel]
        label = target(*where)
        scale = grad(*where) if reduction == "none" else grad()
        if total is not None:
            scale = scale / total()
        return tir.Select(i[channel] == label, -scale * weight(label), tir.const(0, pred.dtype))

    return te.compute(pred.shape, element, name="pred_grad")


def _legalize_nll(bb: Any, call: Call) -> Any:
    attrs = call.attrs
    weights = call.args[3] if len(call.args) == 4 else None
    return bb.call_te(
        _nll_backward, *call.args[:3], weights, attrs.reduction, attrs.ignore_index,
        primfunc_name_hint="nll_loss_backward" if weights is not None else "nll_loss_backward_no_weight",
    )  # fmt: skip


@operator("relax.grad.nll_loss_backward", "NLLLossAttrs", infer=_like(1), FLegalize=_legalize_nll)
def nll_loss_backward(
    output_grad: Expr, predictions: Expr, targets: Expr, weights: OptExpr = None,
    reduction: str = "mean", ignore_index: int = -100,
) -> Expr:  # fmt: skip
    """The gradient of nll_loss with respect to predictions.

    Parameters
    ----------
    output_grad : relax.Expr
        The gradient of the loss.
    predictions, targets, weights, reduction, ignore_index
        As of the loss.
    """


def _pool_backward(kind: str) -> Any:
    def legalize(bb: Any, call: Call) -> Any:
        attrs = call.attrs
        return bb.call_te(
            topi.nn.pool_grad, call.args[0], call.args[1], as_numbers(attrs.pool_size),
            as_numbers(attrs.strides), as_numbers(attrs.padding), kind, attrs.ceil_mode,
            attrs.count_include_pad, attrs.layout, primfunc_name_hint=f"{kind}_pool2d_backward",
        )  # fmt: skip

    def build(
        output_grad: Expr, data: Expr, pool_size: Dims = (1, 1), strides: Dims = (1, 1),
        padding: Dims = (0, 0, 0, 0), dilation: Dims = (1, 1), ceil_mode: bool = False,
        count_include_pad: bool = False, layout: str = "NCHW", out_layout: str | None = None,
    ) -> Expr:  # fmt: skip
        return pool_attributes(2, locals())

    name = f"{kind}_pool2d_backward"
    doc = f"The gradient of {kind}_pool2d with respect to its data."
    return operator(f"relax.grad.{name}", "Pool2DAttrs", infer=_like(1), FLegalize=legalize)(
        documented(build, name, __name__, doc)
    )


max_pool2d_backward = _pool_backward("max")
avg_pool2d_backward = _pool_backward("avg")


def _take_backward(
    grad: te.Tensor, x: te.Tensor, indices: te.Tensor, axis: int | None
) -> te.Tensor:
    rank, own = len(x.shape), len(indices.shape)
    where = 0 if axis is None else axis % rank
    axes = [te.reduce_axis((0, d), name=f"r{i}") for i, d in enumerate(indices.shape)]

    def element(*i: Any) -> Any:
        hit = indices(*axes) == i[where].astype(indices.dtype)
        value = grad(*i[:where], *axes, *i[where + 1 :])
        chosen = tir.if_then_else(hit, value, tir.const(0, x.dtype))
        return te.sum(chosen, axis=axes) if own else chosen

    return te.compute(x.shape, element, name="take_backward")


@operator(
    "relax.grad.take_backward", "TakeAttrs", infer=_like(1),
    FLegalize=lambda bb, call: bb.call_te(
        _take_backward, *call.args, call.attrs.axis, primfunc_name_hint="take_backward"
    ),
)  # fmt: skip
def take_backward(output_grad: Expr, x: Expr, indices: Expr, axis: int | None = None) -> Expr:
    """The gradient of take with respect to its tensor.

    Parameters
    ----------
    output_grad : relax.Expr
    x, indices, axis
        As of take.
    """
