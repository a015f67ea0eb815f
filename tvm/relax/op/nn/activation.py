"""Activations, softmax, dropout."""

from __future__ import annotations

from typing import Any

from tvm import te, tir, topi
from tvm.relax.expr import Call
from tvm.relax.op.infer import (
    axis_of,
    common_dtype,
    fail,
    is_one,
    known_dims,
    prove_unequal,
    require_float,
    same,
    same_float,
    tensors,
)
from tvm.relax.op.legalize import topi_call
from tvm.relax.op.manipulate import reshape
from tvm.relax.op.operator import Expr, operator
from tvm.relax.struct_info import TupleStructInfo


@operator("relax.nn.relu", infer=same, FLegalize=topi_call(topi.nn.relu, "relu"), FElementwise=True)
def relu(data: Expr) -> Expr:
    """max(data, 0)

    Parameters
    ----------
    data : relax.Expr
        The tensor.
    """


@operator(
    "relax.nn.leakyrelu", "LeakyReluAttrs", infer=same_float, FElementwise=True,
    FLegalize=lambda bb, call: bb.call_te(
        topi.nn.leaky_relu, call.args[0], call.attrs.alpha, primfunc_name_hint="leaky_relu"
    ),
)  # fmt: skip
def leakyrelu(data: Expr, alpha: float = 0.01) -> Expr:
    """data where it is positive, alpha * data elsewhere

    Parameters
    ----------
    data : relax.Expr
        The tensor.
    alpha : float
        The slope below zero.
    """


def _gelu(x: te.Tensor) -> te.Tensor:
    kind = x.dtype
    scaled = topi.multiply(x, tir.const(0.5**0.5, kind))
    wide = (
        topi.cast(topi.erf(topi.cast(scaled, "float32")), kind)
        if kind == "float16"
        else topi.erf(scaled)
    )
    half = topi.multiply(wide, tir.const(0.5, kind))
    return topi.multiply(x, topi.add(tir.const(0.5, kind), half))


@operator("relax.nn.gelu", infer=same_float, FLegalize=topi_call(_gelu, "gelu"), FElementwise=True)
def gelu(data: Expr) -> Expr:
    """x * P(X <= x) of the normal distribution

    Parameters
    ----------
    data : relax.Expr
        The tensor.
    """


def _gelu_tanh(x: te.Tensor) -> te.Tensor:
    kind = x.dtype
    cube = topi.multiply(topi.multiply(x, x), topi.multiply(x, tir.const(0.044715, kind)))
    inner = topi.multiply(tir.const((2 / 3.141592653589793) ** 0.5, kind), topi.add(x, cube))
    return topi.multiply(
        tir.const(0.5, kind), topi.multiply(x, topi.add(tir.const(1, kind), topi.tanh(inner)))
    )


@operator(
    "relax.nn.gelu_tanh", infer=same_float, FLegalize=topi_call(_gelu_tanh, "gelu_tanh"),
    FElementwise=True,
)  # fmt: skip
def gelu_tanh(data: Expr) -> Expr:
    """The approximation of gelu by tanh.

    Parameters
    ----------
    data : relax.Expr
        The tensor.
    """


def _silu(x: te.Tensor) -> te.Tensor:
    return topi.multiply(x, topi.sigmoid(x))


@operator("relax.nn.silu", infer=same_float, FLegalize=topi_call(_silu, "silu"), FElementwise=True)
def silu(data: Expr) -> Expr:
    """x * sigmoid(x)

    Parameters
    ----------
    data : relax.Expr
        The tensor.
    """


@operator(
    "relax.nn.relu6", infer=same, FElementwise=True,
    FLegalize=topi_call(lambda x: topi.clip(x, 0, 6), "relu6"),
)  # fmt: skip
def relu6(data: Expr) -> Expr:
    """min(max(data, 0), 6)

    Parameters
    ----------
    data : relax.Expr
        The tensor.
    """


@operator(
    "relax.nn.selu", infer=same_float, FLegalize=topi_call(topi.nn.selu, "selu"), FElementwise=True
)
def selu(data: Expr) -> Expr:
    """data where it is positive, alpha * (exp(data) - 1) elsewhere, both scaled

    Parameters
    ----------
    data : relax.Expr
        The tensor.
    """


@operator(
    "relax.nn.softplus", "SoftplusAttrs", infer=same_float, FElementwise=True,
    FLegalize=topi_call(topi.nn.softplus, "softplus", "beta", "threshold"),
)  # fmt: skip
def softplus(data: Expr, beta: float = 1.0, threshold: float = 20.0) -> Expr:
    """log(1 + exp(beta * data)) / beta

    Parameters
    ----------
    data : relax.Expr
        The tensor.
    beta : float
        The steepness.
    threshold : float
        Above which ``beta * data`` the result is the data.
    """


def _infer_prelu(call: Any, bb: Any) -> Any:
    """A tensor of the shape and dtype of `data`."""
    data, slope = tensors(call, 2)
    require_float(call, data)
    common_dtype(call, [data, slope])
    if slope.ndim not in (-1, 1):
        raise fail(call, f"requires slopes of one dimension, got {slope}")
    if data.ndim < 0:
        return data
    axis = axis_of(call, call.attrs.axis, data.ndim)
    dims, count = known_dims(data), known_dims(slope)
    if dims and count and not is_one(count[0]) and prove_unequal(dims[axis], count[0]):
        raise fail(
            call,
            f"requires as many slopes as axis {axis} of {data} has elements, or one, got {slope}",
        )
    return data


def _legalize_prelu(bb: Any, call: Call) -> Any:
    data, slope = call.args

    def compute(x: Any, slope: Any, axis: int) -> Any:
        axis %= len(x.shape)
        if not len(x.shape) or is_one(slope.shape[0]):
            zero = tir.const(0, x.dtype)
            below = topi.multiply(x, topi.reshape(slope, [1] * len(x.shape)))
            return topi.where(topi.greater(x, zero), x, below)
        return topi.nn.prelu(x, slope, axis)

    return bb.call_te(compute, data, slope, call.attrs.axis, primfunc_name_hint="prelu")


@operator("relax.nn.prelu", "PReluAttrs", infer=_infer_prelu, FLegalize=_legalize_prelu)
def prelu(data: Expr, alpha: Expr, axis: int = 1) -> Expr:
    """data where it is positive, alpha * data elsewhere

    Parameters
    ----------
    data : relax.Expr
        The tensor.
    alpha : relax.Expr
        The slopes below zero, a vector: one for each channel, or one for all.
    axis : int
        The axis of channels.
    """


def _infer_softmax(call: Any, bb: Any) -> Any:
    """A tensor of the shape and dtype of the operand."""
    info = tensors(call, 1)[0]
    if info.ndim >= 0:
        axis_of(call, call.attrs.axis, info.ndim)
    require_float(call, info)
    return info


@operator(
    "relax.nn.softmax", "SoftmaxAttrs", infer=_infer_softmax,
    FLegalize=topi_call(topi.nn.softmax, "softmax", "axis"),
)  # fmt: skip
def softmax(data: Expr, axis: int = -1) -> Expr:
    """Normalised exponentials along one axis.

    Parameters
    ----------
    data : relax.Expr
        The tensor.
    axis : int
        The axis.
    """


def _log_softmax(x: te.Tensor, axis: int) -> te.Tensor:
    axis %= len(x.shape)
    if axis == len(x.shape) - 1:
        return topi.nn.log_softmax(x, axis)
    high = topi.max(x, axis, True)
    shifted = topi.subtract(x, high)
    return topi.subtract(shifted, topi.log(topi.sum(topi.exp(shifted), axis, True)))


@operator(
    "relax.nn.log_softmax", "SoftmaxAttrs", infer=_infer_softmax,
    FLegalize=topi_call(_log_softmax, "log_softmax", "axis"),
)  # fmt: skip
def log_softmax(data: Expr, axis: int = -1) -> Expr:
    """The logarithm of softmax.

    Parameters
    ----------
    data, axis :
        As of `softmax`.
    """


def _infer_dropout(call: Any, bb: Any) -> Any:
    """Two tensors of the shape and dtype of the operand: the values and the mask."""
    info = tensors(call, 1)[0]
    return TupleStructInfo([info, info])


@operator("relax.nn.dropout", "DropoutAttrs", infer=_infer_dropout)
def dropout(data: Expr, rate: float = 0.5) -> Expr:
    """Elements set to zero at random, and the mask.

    Parameters
    ----------
    data : relax.Expr
        The tensor.
    rate : float
        How many.
    """


def batch_flatten(data: Any) -> Any:
    """All axes but the first as one."""
    dims = data.struct_info.shape.values
    return reshape(data, (dims[0], -1))


__all__ = [
    "Call", "batch_flatten", "dropout", "gelu", "gelu_tanh", "leakyrelu", "log_softmax", "prelu",
    "relu", "relu6", "selu", "silu", "softmax", "softplus",
]  # fmt: skip
