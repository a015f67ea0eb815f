"""Activations, softmax, bias, dropout and padding."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tvm import te, tir, topi
from tvm.ir.attrs import Attrs
from tvm.ir.expr import RelayExpr
from tvm.ir.op import Op
from tvm.ir.type import TupleType, Type
from tvm.relay.expr import Call, Constant, Tuple, TupleWrapper, const

from ..attributes import as_float, as_int, as_ints, as_list, is_run_time, refuse
from ..layout import layout_any
from ..registry import LayoutChoice, OpPattern, Precision, define_op, ops
from ..types import (
    Dim,
    apply,
    expect,
    expect_dim,
    expect_floating,
    expect_tensor,
    positive_axis,
    same_as_input,
    shape_of_type,
    show,
    tensor,
)
from ..unary import unary

unary(
    "nn.relu",
    topi.nn.relu,
    lambda x: np.maximum(x, 0),
    lambda x, y, g: ops.where(ops.greater(x, ops.zeros_like(x)), g, ops.zeros_like(g)),
)


class LeakyReluAttrs(Attrs, key="relay.attrs.LeakyReluAttrs"):
    """The slope below zero."""

    alpha: float = 0.25


define_op(
    "nn.leaky_relu",
    LeakyReluAttrs,
    inputs=("data",),
    infer_type=same_as_input("nn.leaky_relu"),
    fuse=OpPattern.ELEMWISE,
    compute=lambda attrs, inputs, out_type: [topi.nn.leaky_relu(inputs[0], attrs.alpha)],
    fold=lambda attrs, arrays, out_type: [
        np.where(arrays[0] > 0, arrays[0], arrays[0] * arrays[0].dtype.type(attrs.alpha))
    ],
    infer_layout=layout_any,
)


class PReluAttrs(Attrs, key="relay.attrs.PReluAttrs"):
    """The axis along which slopes differ."""

    axis: int = 1


def _prelu_type(attrs: PReluAttrs, arg_types: Sequence[Type]) -> Type:
    data = expect_tensor(arg_types[0], "nn.prelu")
    slope = shape_of_type(expect_tensor(arg_types[1], "nn.prelu", "alpha", rank=1))
    axis = positive_axis(attrs.axis, len(data.shape), "nn.prelu")
    expect_dim(slope[0], shape_of_type(data)[axis], "nn.prelu", "alpha's extent")
    return data


define_op(
    "nn.prelu",
    PReluAttrs,
    inputs=("data", "alpha"),
    infer_type=_prelu_type,
    fuse=OpPattern.BROADCAST,
    compute=lambda attrs, inputs, out_type: [topi.nn.prelu(*inputs, attrs.axis)],
)


class BiasAddAttrs(Attrs, key="relay.attrs.BiasAddAttrs"):
    """The axis that the bias runs along."""

    axis: int = 1


def _bias_add_type(attrs: BiasAddAttrs, arg_types: Sequence[Type]) -> Type:
    data = expect_tensor(arg_types[0], "nn.bias_add")
    bias = shape_of_type(expect_tensor(arg_types[1], "nn.bias_add", "bias", rank=1))
    axis = positive_axis(attrs.axis, len(data.shape), "nn.bias_add")
    expect_dim(bias[0], shape_of_type(data)[axis], "nn.bias_add", "the bias's extent")
    return data


def _bias_as_add(call: Call, arg_types: Sequence[Type]) -> RelayExpr:
    """bias_add as an addition of a bias with trailing axes of extent 1."""
    rank = len(arg_types[0].shape)  # type: ignore[attr-defined]
    trailing = rank - 1 - positive_axis(call.attrs.axis, rank, "nn.bias_add")
    data, bias = call.args
    if trailing:
        bias = ops.expand_dims(bias, axis=1, num_newaxis=trailing)
    return ops.add(data, bias)


def _bias_compute(
    attrs: BiasAddAttrs, inputs: Sequence[te.Tensor], out_type: Type
) -> list[te.Tensor]:
    data, bias = inputs
    trailing = len(data.shape) - 1 - attrs.axis % len(data.shape)
    return [topi.add(data, topi.expand_dims(bias, 1, trailing) if trailing else bias)]


define_op(
    "nn.bias_add",
    BiasAddAttrs,
    inputs=("data", "bias"),
    infer_type=_bias_add_type,
    fuse=OpPattern.BROADCAST,
    compute=_bias_compute,
    simplify=_bias_as_add,
    gradient=lambda call, grad: [
        grad, ops.sum(grad, axis=(call.attrs.axis,), keepdims=False, exclude=True)
    ],
)  # fmt: skip


class SoftmaxAttrs(Attrs, key="relay.attrs.SoftmaxAttrs"):
    """The axis along which the results add up to one."""

    axis: int = -1


def _softmax_type(attrs: SoftmaxAttrs, arg_types: Sequence[Type]) -> Type:
    data = expect_floating(arg_types[0], "nn.softmax")
    positive_axis(attrs.axis, len(data.shape), "nn.softmax")
    return data


def _softmax_gradient(call: Call, grad: RelayExpr) -> list[RelayExpr]:
    # d/dx softmax = (g - sum(g * y)) * y
    total = ops.sum(ops.multiply(grad, call), axis=(call.attrs.axis,), keepdims=True)
    return [(grad - total) * call]


def _log_softmax_gradient(call: Call, grad: RelayExpr) -> list[RelayExpr]:
    # d/dx log_softmax = g - sum(g) * exp(y)
    return [grad - ops.sum(grad, axis=(call.attrs.axis,), keepdims=True) * ops.exp(call)]


def _numpy_softmax(
    attrs: SoftmaxAttrs, arrays: Sequence[np.ndarray], out_type: Type
) -> list[np.ndarray]:
    largest = arrays[0].max(axis=attrs.axis, keepdims=True, initial=-np.inf)
    weights = np.exp(arrays[0] - largest)
    return [weights / weights.sum(axis=attrs.axis, keepdims=True)]


define_op(
    "nn.softmax",
    SoftmaxAttrs,
    inputs=("data",),
    infer_type=_softmax_type,
    fuse=OpPattern.OUT_ELEMWISE_FUSABLE,
    compute=lambda attrs, inputs, out_type: [topi.nn.softmax(inputs[0], attrs.axis)],
    schedules={
        "generic": lambda attrs, outs, target: topi.generic.default_schedule(outs, True),
        "cpu": lambda attrs, outs, target: topi.x86.schedule_softmax(outs),
    },
    fold=_numpy_softmax,
    gradient=_softmax_gradient,
    precision=Precision.KEEP_FLOAT32,
)
define_op(
    "nn.fast_softmax",
    SoftmaxAttrs,
    inputs=("data",),
    infer_type=_softmax_type,
    fuse=OpPattern.OUT_ELEMWISE_FUSABLE,
    compute=lambda attrs, inputs, out_type: [topi.nn.fast_softmax(inputs[0], attrs.axis)],
    schedules={
        "generic": lambda attrs, outs, target: topi.generic.schedule_softmax(outs),
        "cpu": lambda attrs, outs, target: topi.x86.schedule_softmax(outs),
    },
    fold=_numpy_softmax,
    gradient=_softmax_gradient,
    precision=Precision.KEEP_FLOAT32,
)
define_op(
    "nn.log_softmax",
    SoftmaxAttrs,
    inputs=("data",),
    infer_type=_softmax_type,
    fuse=OpPattern.OUT_ELEMWISE_FUSABLE,
    compute=lambda attrs, inputs, out_type: [topi.nn.log_softmax(inputs[0], attrs.axis)],
    schedules={
        "generic": lambda attrs, outs, target: topi.generic.default_schedule(outs, True),
        "cpu": lambda attrs, outs, target: topi.x86.schedule_softmax(outs),
    },
    gradient=_log_softmax_gradient,
    precision=Precision.KEEP_FLOAT32,
)


class DropoutAttrs(Attrs, key="relay.attrs.DropoutAttrs"):
    """The share of elements dropped in training."""

    rate: float = 0.5


def _dropout_type(attrs: DropoutAttrs, arg_types: Sequence[Type]) -> Type:
    data = expect_tensor(arg_types[0], "nn.dropout")
    return TupleType([data, data])


def _inference_dropout(call: Call, arg_types: Sequence[Type]) -> RelayExpr:
    # at inference nothing is dropped
    return Tuple([call.args[0], ops.ones_like(call.args[0])])


define_op(
    "nn.dropout",
    DropoutAttrs,
    inputs=("data",),
    infer_type=_dropout_type,
    fuse=OpPattern.OPAQUE,
    simplify=_inference_dropout,
)


class PadAttrs(Attrs, key="relay.attrs.PadAttrs"):
    """The widths before and after each axis, and how the border is filled."""

    pad_width: tuple[tuple[int, int], ...]
    pad_mode: str = "constant"


def _pad_type(attrs: PadAttrs, arg_types: Sequence[Type]) -> Type:
    data = expect_tensor(arg_types[0], "nn.pad")
    shape = shape_of_type(data)
    expect(
        len(attrs.pad_width) == len(shape),
        f"nn.pad requires a pair of widths for each axis of {show(shape)}, got {attrs.pad_width}",
    )
    expect(
        attrs.pad_mode in ("constant", "edge", "reflect"),
        f"nn.pad requires a mode of constant, edge or reflect, got {attrs.pad_mode!r}",
    )
    out: list[Dim] = []
    for extent, (before, after) in zip(shape, attrs.pad_width, strict=True):
        out.append(apply(lambda e, b=before, a=after: e + b + a, extent))
    return tensor(out, data.dtype)


def _pad_compute(attrs: PadAttrs, inputs: Sequence[te.Tensor], out_type: Type) -> list[te.Tensor]:
    before = [pair[0] for pair in attrs.pad_width]
    after = [pair[1] for pair in attrs.pad_width]
    if attrs.pad_mode == "constant":
        return [topi.nn.pad(inputs[0], before, after, inputs[1]())]
    return [topi.nn.mirror_pad(inputs[0], before, after, attrs.pad_mode.upper())]


def _fold_pad(attrs: PadAttrs, arrays: Sequence[np.ndarray], out_type: Type) -> list[np.ndarray]:
    if attrs.pad_mode == "constant":
        return [np.pad(arrays[0], attrs.pad_width, constant_values=arrays[1].item())]
    return [np.pad(arrays[0], attrs.pad_width, mode=attrs.pad_mode)]


def _pad_layout(
    attrs: PadAttrs, in_layouts: Sequence[tir.Layout | None], arg_types: Sequence[Type]
) -> LayoutChoice | None:
    """Padding of other axes keeps blocked channels."""
    chosen = in_layouts[0]
    if chosen is None or chosen.name[-1] != "c" or "C" not in chosen.name:
        return None
    axis = chosen.index_of("C")
    if len(chosen.name.rstrip("c").rstrip("0123456789")) != len(attrs.pad_width):
        return None
    if tuple(attrs.pad_width[axis]) != (0, 0):
        return None
    widths = (*attrs.pad_width, (0, 0))
    return LayoutChoice((chosen, None), (chosen,), attrs.replace(pad_width=widths))


define_op(
    "nn.pad",
    PadAttrs,
    inputs=("data", "pad_value"),
    infer_type=_pad_type,
    fuse=OpPattern.INJECTIVE,
    compute=_pad_compute,
    fold=_fold_pad,
    infer_layout=_pad_layout,
)


class MirrorPadAttrs(Attrs, key="relay.attrs.MirrorPadAttrs"):
    """Widths, and whether the border itself is repeated."""

    mode: str = "SYMMETRIC"
    pad_width: tuple[tuple[int, int], ...] = ()


define_op(
    "nn.mirror_pad",
    MirrorPadAttrs,
    inputs=("data",),
    infer_type=lambda attrs, arg_types: _pad_type(PadAttrs(attrs.pad_width), arg_types),
    fuse=OpPattern.INJECTIVE,
    compute=lambda attrs, inputs, out_type: [
        topi.nn.mirror_pad(
            inputs[0], [p[0] for p in attrs.pad_width], [p[1] for p in attrs.pad_width], attrs.mode
        )
    ],
    fold=lambda attrs, arrays, out_type: [
        np.pad(arrays[0], attrs.pad_width, mode=attrs.mode.lower())
    ],
)


def relu(data: RelayExpr) -> RelayExpr:
    """max(x, 0), element by element.

    Parameters
    ----------
    data : relay.Expr
        The tensor.
    """
    return ops.nn.relu(data)


def leaky_relu(data: RelayExpr, alpha: float = 0.01) -> RelayExpr:
    """x where it is positive, alpha * x elsewhere.

    Parameters
    ----------
    data : relay.Expr
        The tensor.
    alpha : float
        The slope below zero.
    """
    return ops.nn.leaky_relu(data, alpha=as_float(alpha))


def prelu(data: RelayExpr, alpha: RelayExpr, axis: int = 1) -> RelayExpr:
    """x where it is positive, alpha * x elsewhere, with one slope for each channel.

    Parameters
    ----------
    data, alpha : relay.Expr
        The tensor, and the slopes.
    axis : int
        The channels' axis.
    """
    return ops.nn.prelu(data, alpha, axis=as_int(axis))


def bias_add(data: RelayExpr, bias: RelayExpr, axis: int = 1) -> RelayExpr:
    """Add a vector along one axis.

    Parameters
    ----------
    data, bias : relay.Expr
        The tensor, and the vector.
    axis : int
        The axis.
    """
    return ops.nn.bias_add(data, bias, axis=as_int(axis))


def softmax(data: RelayExpr, axis: int = -1) -> RelayExpr:
    """Normalised exponentials along one axis.

    Parameters
    ----------
    data : relay.Expr
        The tensor.
    axis : int
        The axis.
    """
    return ops.nn.softmax(data, axis=as_int(axis))


def fast_softmax(data: RelayExpr, axis: int = -1) -> RelayExpr:
    """`softmax` with the fast exponential.

    Parameters
    ----------
    data : relay.Expr
        Floating-point numbers.
    axis : int
        Along which their exponentials have the sum 1.
    """
    return ops.nn.fast_softmax(data, axis=as_int(axis))


def log_softmax(data: RelayExpr, axis: int = -1) -> RelayExpr:
    """The logarithm of softmax, without loss; parameters as in `softmax`."""
    return ops.nn.log_softmax(data, axis=as_int(axis))


def dropout(data: RelayExpr, rate: float = 0.5) -> RelayExpr:
    """Drop elements at random in training; the identity at inference.

    Parameters
    ----------
    data : relay.Expr
        The tensor.
    rate : float
        The share dropped.
    """
    return dropout_raw(data, rate)[0]


def dropout_raw(data: RelayExpr, rate: float = 0.5) -> TupleWrapper:
    """As `dropout`, with the mask as second result."""
    return TupleWrapper(ops.nn.dropout(data, rate=as_float(rate)), 2)


def pad(
    data: RelayExpr,
    pad_width: Sequence[Sequence[int]] | RelayExpr,
    pad_value: float | RelayExpr = 0,
    pad_mode: str = "constant",
) -> RelayExpr:
    """Surround a tensor with a border.

    Parameters
    ----------
    data : relay.Expr
        The tensor.
    pad_width : sequence of (int, int)
        The widths before and after, for each axis.
    pad_value : float or relay.Expr
        The border's value.
    pad_mode : str
        "constant", "edge" or "reflect".
    """
    value = pad_value if isinstance(pad_value, RelayExpr) else const(as_float(pad_value))
    if is_run_time(pad_width):
        return Op.get("dyn.nn.pad")(data, pad_width, value, pad_width=(), pad_mode=str(pad_mode))
    return ops.nn.pad(data, value, pad_width=_widths(pad_width), pad_mode=str(pad_mode))


def _widths(pad_width: Sequence[Sequence[int]] | RelayExpr) -> tuple[tuple[int, int], ...]:
    if isinstance(pad_width, Constant):
        pad_width = pad_width.data.numpy().tolist()
    pairs = [as_ints(pair) for pair in as_list(pad_width, "pairs")]
    if not all([1 <= len(pair) <= 2 for pair in pairs]):
        refuse(pad_width, "a pair of widths for each axis")
    return tuple([(pair[0], pair[-1]) for pair in pairs])


def mirror_pad(
    data: RelayExpr, pad_width: Sequence[Sequence[int]], mode: str = "SYMMETRIC"
) -> RelayExpr:
    """Surround a tensor with its mirror image.

    Parameters
    ----------
    data : relay.Expr
        The tensor.
    pad_width : sequence of (int, int)
        The widths before and after, for each axis.
    mode : str
        "SYMMETRIC" repeats the outermost elements, "REFLECT" does not.
    """
    return ops.nn.mirror_pad(data, pad_width=_widths(pad_width), mode=str(mode))
