"""Activations, softmax, bias, dropout and padding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np

from tvm import te, topi
from tvm.ir.expr import RelayExpr
from tvm.ir.type import TensorType, TupleType, Type
from tvm.relay.analysis.infer import tensor_type_of
from tvm.relay.expr import Call, Constant, Tuple, TupleWrapper, const

from ..attributes import as_float, as_ints, as_list, reject
from ..computes import computed_by
from ..known_shapes import known_shape, shape_of
from ..layout import layout_any
from ..layout_axes import layout_along_axis, layout_padded
from ..operator import Attribute, Expr, Operand, operator
from ..registry import OpPattern, Precision, ops
from ..run_time_shapes import PAD
from ..schedules import default_schedules
from ..separable import identity_matrix, through
from ..types import (
    Dim,
    Floating,
    TypeRelation,
    apply,
    expect,
    expect_dim,
    expect_tensor,
    positive_axis,
    same_as_input,
    shape_of_type,
    show,
    tensor,
)
from ..unary import unary
from .channels import along, vectors_of_channels

relu = unary(
    "nn.relu",
    "max(x, 0), element by element.",
    topi.nn.relu,
    lambda x: np.maximum(x, 0),
    lambda x, y, g: ops.where(ops.greater(x, ops.zeros_like(x)), g, ops.zeros_like(g)),
    support_level=1,
)


def _leaky_relu_gradient(call: Call, grad: RelayExpr) -> list[RelayExpr]:
    data = call.args[0]
    slope = ops.cast_like(const(call.attrs.alpha, "float64"), data)
    return [ops.where(ops.greater(data, ops.zeros_like(data)), grad, ops.multiply(grad, slope))]


@operator(
    "nn.leaky_relu",
    support_level=3,
    infer_type=same_as_input("nn.leaky_relu"),
    fuse=OpPattern.ELEMWISE,
    compute=computed_by(topi.nn.leaky_relu, "alpha"),
    fold=lambda attrs, arrays, out_type: [
        np.where(arrays[0] > 0, arrays[0], arrays[0] * arrays[0].dtype.type(attrs.alpha))
    ],
    gradient=_leaky_relu_gradient,
    infer_layout=layout_any,
)
def leaky_relu(data: Expr, alpha: float = 0.01) -> RelayExpr:
    """x where it is positive, alpha * x elsewhere.

    Parameters
    ----------
    alpha : float
        The slope below zero.
    """


def _with_vector(who: str, argument: str) -> TypeRelation:
    """The data's type; the second argument is a vector along an axis."""

    def relation(attrs: Any, arg_types: Sequence[Type]) -> Type:
        """A tensor of the shape and dtype of `data`."""
        data = expect_tensor(arg_types[0], who)
        (extent,) = shape_of_type(expect_tensor(arg_types[1], who, argument, rank=1))
        axis = positive_axis(attrs.axis, len(data.shape), who)
        expect_dim(extent, shape_of_type(data)[axis], who, f"{argument}'s extent")
        return data

    return relation


def _prelu_gradient(call: Call, grad: RelayExpr) -> list[RelayExpr]:
    data, alpha = call.args
    rank = len(shape_of(data))
    axis = call.attrs.axis % rank
    is_positive = ops.greater(data, ops.zeros_like(data))
    rest = tuple([i for i in range(rank) if i != axis])
    below = ops.where(is_positive, ops.zeros_like(data), ops.multiply(grad, data))
    return [
        ops.where(is_positive, grad, ops.multiply(grad, along(alpha, axis, rank))),
        ops.sum(below, axis=rest),
    ]


@operator(
    "nn.prelu",
    "PReluAttrs",
    support_level=3,
    infer_type=_with_vector("nn.prelu", "alpha"),
    infer_layout=layout_along_axis(),
    fuse=OpPattern.BROADCAST,
    compute=computed_by(topi.nn.prelu, "axis"),
    gradient=_prelu_gradient,
    argument_types=vectors_of_channels,
)
def prelu(data: Expr, alpha: Expr, axis: int = 1) -> RelayExpr:
    """x where it is positive, alpha * x elsewhere, with one slope for each channel.

    Parameters
    ----------
    data, alpha : relay.Expr
        The tensor, and the slopes.
    axis : int
        The channels' axis.
    """


def _bias_as_add(call: Call, arg_types: Sequence[Type]) -> RelayExpr:
    """bias_add as an addition of a bias with trailing axes of extent 1."""
    data, bias = call.args
    return ops.add(data, along(bias, call.attrs.axis, len(shape_of_type(arg_types[0]))))


def _bias_compute(attrs: Any, inputs: Sequence[te.Tensor], out_type: Type) -> list[te.Tensor]:
    data, bias = inputs
    trailing = len(data.shape) - 1 - attrs.axis % len(data.shape)
    return [topi.add(data, topi.expand_dims(bias, 1, trailing) if trailing else bias)]


@operator(
    "nn.bias_add",
    support_level=1,
    infer_type=_with_vector("nn.bias_add", "bias"),
    infer_layout=layout_along_axis(),
    fuse=OpPattern.BROADCAST,
    compute=_bias_compute,
    simplify=_bias_as_add,
    argument_types=vectors_of_channels,
    gradient=lambda call, grad: [
        grad, ops.sum(grad, axis=(call.attrs.axis,), keepdims=False, exclude=True)
    ],
)  # fmt: skip
def bias_add(data: Expr, bias: Expr, axis: int = 1) -> RelayExpr:
    """Add a vector along one axis.

    Parameters
    ----------
    data, bias : relay.Expr
        The tensor, and the vector.
    """


def _softmax_type(attrs: Any, data: Floating) -> Type:
    """A tensor of the shape and dtype of `data`, which is of floats."""
    positive_axis(attrs.axis, len(data.shape), "nn.softmax")
    return data


def _softmax_gradient(call: Call, grad: RelayExpr) -> list[RelayExpr]:
    # d/dx softmax = (g - sum(g * y)) * y
    total = ops.sum(ops.multiply(grad, call), axis=(call.attrs.axis,), keepdims=True)
    return [(grad - total) * call]


def _log_softmax_gradient(call: Call, grad: RelayExpr) -> list[RelayExpr]:
    # d/dx log_softmax = g - sum(g) * exp(y)
    return [grad - ops.sum(grad, axis=(call.attrs.axis,), keepdims=True) * ops.exp(call)]


def _numpy_softmax(attrs: Any, arrays: Sequence[np.ndarray], out_type: Type) -> list[np.ndarray]:
    largest = arrays[0].max(axis=attrs.axis, keepdims=True, initial=-np.inf)
    weights = np.exp(arrays[0] - largest)
    return [weights / weights.sum(axis=attrs.axis, keepdims=True)]


_SCHEDULES = default_schedules(topi.x86.schedule_softmax)
_SOFTMAX: dict[str, Any] = {
    "infer_type": _softmax_type,
    "infer_layout": layout_along_axis(),
    "fuse": OpPattern.OUT_ELEMWISE_FUSABLE,
    "precision": Precision.KEEP_FLOAT32,
}


@operator(
    "nn.softmax",
    accumulates=True,
    fast_math="nn.fast_softmax",
    support_level=1,
    compute=computed_by(topi.nn.softmax, "axis"),
    schedules=_SCHEDULES,
    fold=_numpy_softmax,
    gradient=_softmax_gradient,
    **_SOFTMAX,
)
def softmax(data: Expr, axis: int = -1) -> RelayExpr:
    """Normalised exponentials along one axis."""


@operator(
    "nn.fast_softmax",
    softmax,
    support_level=1,
    compute=computed_by(topi.nn.fast_softmax, "axis"),
    schedules={
        **_SCHEDULES,
        "generic": lambda attrs, outs, target: topi.generic.schedule_softmax(outs),
    },
    fold=_numpy_softmax,
    gradient=_softmax_gradient,
    **_SOFTMAX,
)
def fast_softmax(data: Expr, axis: int = -1) -> RelayExpr:
    """`softmax` with the fast exponential.

    Parameters
    ----------
    data : relay.Expr
        Floating-point numbers.
    axis : int
        Along which their exponentials have the sum 1.
    """


@operator(
    "nn.log_softmax",
    softmax,
    accumulates=True,
    support_level=1,
    compute=computed_by(topi.nn.log_softmax, "axis"),
    schedules=_SCHEDULES,
    gradient=_log_softmax_gradient,
    **_SOFTMAX,
)
def log_softmax(data: Expr, axis: int = -1) -> RelayExpr:
    """The logarithm of softmax, without loss; parameters as in `softmax`."""


def _dropout_type(attrs: Any, data: TensorType) -> Type:
    """Two tensors of the shape and dtype of `data`: the values and the mask."""
    return TupleType([data, data])


def _inference_dropout(call: Call, arg_types: Sequence[Type]) -> RelayExpr:
    # at inference nothing is dropped
    return Tuple([call.args[0], ops.ones_like(call.args[0])])


@operator(
    "nn.dropout",
    "DropoutAttrs",
    support_level=1,
    results=2,
    infer_type=_dropout_type,
    simplify=_inference_dropout,
)
def dropout_raw(data: Expr, rate: float = 0.5) -> TupleWrapper:
    """As `dropout`, with the mask as second result."""


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


def _widths(pad_width: Sequence[Sequence[int]] | RelayExpr) -> tuple[tuple[int, int], ...]:
    if isinstance(pad_width, Constant):
        pad_width = pad_width.data.numpy().tolist()
    pairs = [as_ints(pair) for pair in as_list(pad_width, "pairs")]
    if not all([1 <= len(pair) <= 2 for pair in pairs]):
        reject(pad_width, "a pair of widths for each axis")
    return tuple([(pair[0], pair[-1]) for pair in pairs])


def _border(value: float | RelayExpr) -> RelayExpr:
    return value if isinstance(value, RelayExpr) else const(as_float(value))


Widths = Annotated[Any, Attribute("tuple[tuple[int, int], ...]", _widths)]


def _pad_type(attrs: Any, data: TensorType) -> Type:
    """A tensor of the dtype of `data`; each extent is longer by what is put before and behind."""
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
        out.append(apply(lambda e, b, a: e + b + a, extent, before, after))
    return tensor(out, data.dtype)


def _pad_compute(attrs: Any, inputs: Sequence[te.Tensor], out_type: Type) -> list[te.Tensor]:
    before = [pair[0] for pair in attrs.pad_width]
    after = [pair[1] for pair in attrs.pad_width]
    if attrs.pad_mode == "constant":
        border = inputs[1](*[0] * len(inputs[1].shape))
        return [topi.nn.pad(inputs[0], before, after, border)]
    return [topi.nn.mirror_pad(inputs[0], before, after, attrs.pad_mode.upper())]


def _fold_pad(attrs: Any, arrays: Sequence[np.ndarray], out_type: Type) -> list[np.ndarray]:
    if attrs.pad_mode == "constant":
        return [np.pad(arrays[0], attrs.pad_width, constant_values=arrays[1].item())]
    return [np.pad(arrays[0], attrs.pad_width, mode=attrs.pad_mode)]


def _constant_border_gradient(call: Call, grad: RelayExpr) -> list[RelayExpr]:
    """Of data and the one value around it."""
    data = call.args[0]
    shape = known_shape(data, "nn.pad")
    begins = tuple([before for before, _ in call.attrs.pad_width])
    ends = tuple([b + extent for b, extent in zip(begins, shape, strict=True)])
    inner = ops.strided_slice(grad, begin=begins, end=ends)
    border = ops.sum(grad, axis=None) - ops.sum(inner, axis=None)
    # the value may be a vector of one element, of another dtype than the data
    value = ops.reshape(border, newshape=known_shape(call.args[1], "nn.pad"))
    dtype = tensor_type_of(call.args[1]).dtype
    same = dtype == tensor_type_of(data).dtype
    return [inner, value if same else ops.cast(value, dtype=dtype)]


def _bordered(call: Call, grad: RelayExpr) -> list[RelayExpr]:
    """Of a border that repeats the data."""
    data = call.args[0]
    shape, dtype = known_shape(data, call.operator.name), tensor_type_of(data).dtype
    for axis, (extent, width) in enumerate(zip(shape, call.attrs.pad_width, strict=True)):
        if any(width):
            attrs = call.attrs.replace(pad_width=((0, 0), (0, 0), tuple(width)))
            matrix = Call(call.op, (identity_matrix(extent, dtype), *call.args[1:]), attrs)
            grad = through(grad, matrix, axis)
    return [grad]


def _pad_gradient(call: Call, grad: RelayExpr) -> list[RelayExpr]:
    if call.attrs.pad_mode == "constant":
        return _constant_border_gradient(call, grad)
    return [*_bordered(call, grad), ops.zeros_like(call.args[1])]


@operator(
    "nn.pad",
    support_level=2,
    infer_type=_pad_type,
    fuse=OpPattern.INJECTIVE,
    compute=_pad_compute,
    fold=_fold_pad,
    gradient=_pad_gradient,
    infer_layout=layout_padded,
    run_time=PAD,
)
def pad(
    data: Expr,
    pad_width: Widths,
    pad_value: Annotated[float | RelayExpr, Operand(_border)] = 0,
    pad_mode: str = "constant",
) -> RelayExpr:
    """Surround a tensor with a border.

    Parameters
    ----------
    pad_width : sequence of (int, int)
        The widths before and after, for each axis.
    pad_value : float or relay.Expr
        The border's value.
    pad_mode : str
        "constant", "edge" or "reflect".
    """


def _filled_type(attrs: Any, data: TensorType) -> Type:
    """A tensor of the dtype of `data`; each extent is longer by what is put before and behind."""
    return _pad_type(pad.op.attrs_type(attrs.pad_width), data)


@operator(
    "nn.mirror_pad",
    support_level=2,
    fields=("mode", "pad_width"),
    infer_type=_filled_type,
    fuse=OpPattern.INJECTIVE,
    compute=lambda attrs, inputs, out_type: [
        topi.nn.mirror_pad(
            inputs[0], [p[0] for p in attrs.pad_width], [p[1] for p in attrs.pad_width], attrs.mode
        )
    ],
    fold=lambda attrs, arrays, out_type: [
        np.pad(arrays[0], attrs.pad_width, mode=attrs.mode.lower())
    ],
    gradient=_bordered,
)
def mirror_pad(data: Expr, pad_width: Widths, mode: str = "SYMMETRIC") -> RelayExpr:
    """Surround a tensor with its mirror image.

    Parameters
    ----------
    pad_width : sequence of (int, int)
        The widths before and after, for each axis.
    mode : str
        "SYMMETRIC" repeats the outermost elements, "REFLECT" does not.
    """
