"""Normalisations: batch, layer, group and instance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import te, topi
from tvm.ir.attrs import Attrs
from tvm.ir.expr import RelayExpr
from tvm.ir.type import TensorType, TupleType, Type
from tvm.relay.analysis.infer import tensor_type_of
from tvm.relay.expr import Call, Tuple, TupleWrapper, const
from tvm.support.docstrings import described_by

from ..computes import computed_by
from ..known_shapes import shape_of
from ..layout_axes import layout_along_axes, layout_along_axis
from ..operator import Expr, OptionalInts, operator
from ..parameters import more_parameters, same_parameters
from ..registry import OpPattern, Precision, ops
from ..schedules import default_schedules
from ..types import (
    Dim,
    TypeRelation,
    expect,
    expect_dim,
    expect_floating,
    expect_tensor,
    positive_axis,
    shape_of_type,
    tensor,
)
from .channels import along, vectors_of_channels


def _check_vectors(
    who: str, names: Sequence[str], arg_types: Sequence[Type], channels: Dim
) -> list[TensorType]:
    found = [
        expect_tensor(ty, who, name, rank=1) for name, ty in zip(names, arg_types[1:], strict=True)
    ]
    for name, ty in zip(names, found, strict=True):
        expect_dim(shape_of_type(ty)[0], channels, who, f"{name}'s extent")
    return found


def _check_factors(who: str, arg_types: Sequence[Type], channels: Dim) -> None:
    """Factors and offsets of the data's type, so that the result is of it too."""
    names, dtype = ("gamma", "beta"), expect_tensor(arg_types[0], who).dtype
    vectors = _check_vectors(who, names, arg_types, channels)
    for name, vector in zip(names, vectors, strict=True):
        expect(
            vector.dtype == dtype,
            f"{who} requires {name} of the data's type {dtype}, got {vector.dtype}",
            hint=f'convert it first: relay.cast({name}, "{dtype}")',
        )


def _batch_norm_type(attrs: Any, arg_types: Sequence[Type]) -> Type:
    who = "nn.batch_norm"
    data = expect_floating(arg_types[0], who)
    axis = positive_axis(attrs.axis, len(data.shape), who)
    names = ("gamma", "beta", "moving_mean", "moving_var")
    channels = shape_of_type(data)[axis]
    vectors = _check_vectors(who, names, arg_types, channels)
    return TupleType(
        [data, tensor((channels,), vectors[2].dtype), tensor((channels,), vectors[3].dtype)]
    )


def _inference_batch_norm(call: Call, arg_types: Sequence[TensorType]) -> RelayExpr:
    """x * s + (beta - mean * s) with s = gamma / sqrt(var + epsilon)"""
    data, gamma, beta, mean, variance = call.args
    attrs = call.attrs
    ty = arg_types[0]
    rank = len(ty.shape)
    epsilon = const(attrs.epsilon, dtype=arg_types[4].dtype)
    scale = const(1.0, dtype=arg_types[4].dtype) / ops.sqrt(ops.add(variance, epsilon))
    if attrs.scale:
        scale = ops.multiply(scale, gamma)
    shift = ops.multiply(ops.negative(mean), scale)
    if attrs.center:
        shift = ops.add(shift, beta)
    scaled = ops.multiply(data, along(scale, attrs.axis, rank))
    return Tuple([ops.add(scaled, along(shift, attrs.axis, rank)), mean, variance])


_batch_normalised = computed_by(topi.nn.batch_norm, "axis", "epsilon", "center", "scale")


@operator(
    "nn.batch_norm",
    support_level=1,
    infer_type=_batch_norm_type,
    infer_layout=layout_along_axis(outputs=3),
    fuse=OpPattern.OUT_ELEMWISE_FUSABLE,
    compute=lambda attrs, inputs, out_type: [
        _batch_normalised(attrs, inputs, out_type)[0],
        topi.identity(inputs[3]),
        topi.identity(inputs[4]),
    ],
    argument_types=vectors_of_channels,
    simplify=_inference_batch_norm,
    precision=Precision.KEEP_FLOAT32,
    results=3,
)
def batch_norm(
    data: Expr,
    gamma: Expr,
    beta: Expr,
    moving_mean: Expr,
    moving_var: Expr,
    axis: int = 1,
    epsilon: float = 1e-5,
    center: bool = True,
    scale: bool = True,
) -> TupleWrapper:
    """Normalise each channel by moving statistics.

    Parameters
    ----------
    data, gamma, beta, moving_mean, moving_var : relay.Expr
        The tensor, and one number of each kind for each channel.
    axis : int
        The channels' axis.
    epsilon : float
        Added to the variance.
    center, scale : bool
        Whether beta and gamma are applied.

    Returns
    -------
    The normalised tensor, the mean and the variance.
    """


def _scaled_type(who: str) -> TypeRelation:
    """The data's type; factors and offsets of its channels, which groups divide if there are some."""

    def relation(attrs: Attrs, arg_types: Sequence[Type]) -> Type:
        """A tensor of the shape and dtype of `data`, which is of floats."""
        data = expect_floating(arg_types[0], who)
        channels = shape_of_type(data)[positive_axis(attrs.axis, len(data.shape), who)]
        _check_factors(who, arg_types, channels)
        groups = attrs.num_groups if "num_groups" in attrs else 1
        is_divided = groups > 0 and (not isinstance(channels, int) or channels % groups == 0)
        expect(
            is_divided, f"{who} requires channels divisible by num_groups={groups}, got {channels}"
        )
        return data

    return relation


def _normalised(data: RelayExpr, axes: tuple[int, ...], epsilon: float, dtype: str) -> RelayExpr:
    mean = ops.mean(data, axis=axes, keepdims=True)
    variance = ops.variance(data, mean, axis=axes, keepdims=True)
    return ops.multiply(
        ops.subtract(data, mean), ops.rsqrt(ops.add(variance, const(epsilon, dtype=dtype)))
    )


def _scaled(
    attrs: Attrs, value: RelayExpr, gamma: RelayExpr, beta: RelayExpr, axis: int, rank: int
) -> RelayExpr:
    if attrs.scale:
        value = ops.multiply(value, along(gamma, axis, rank))
    if attrs.center:
        value = ops.add(value, along(beta, axis, rank))
    return value


def _composed_layer_norm(call: Call, arg_types: Sequence[TensorType]) -> RelayExpr | None:
    """Layer norm along the last axis has a kernel of its own; others are composed."""
    data, gamma, beta = call.args
    attrs, ty = call.attrs, arg_types[0]
    rank = len(ty.shape)
    if attrs.axis % rank == rank - 1 and isinstance(shape_of_type(ty)[-1], int):
        return None
    value = _normalised(data, (attrs.axis,), attrs.epsilon, ty.dtype)
    return _scaled(attrs, value, gamma, beta, attrs.axis, rank)


def _layer_norm_compute(attrs: Any, inputs: Sequence[te.Tensor], out_type: Type) -> list[te.Tensor]:
    data, gamma, beta = inputs
    return [
        topi.nn.layer_norm(
            data,
            gamma if attrs.scale else None,
            beta if attrs.center else None,
            [attrs.axis % len(data.shape)],
            attrs.epsilon,
        )
    ]


def _layer_norm_gradient(call: Call, grad: RelayExpr) -> list[RelayExpr]:
    """With y = (x - mean(x)) * r: dx = r * (dy - mean(dy) - y * mean(dy * y))"""
    (data, gamma, beta), attrs = call.args, call.attrs
    rank = len(shape_of(data))
    axis = attrs.axis % rank
    over = {"axis": (axis,), "keepdims": True}
    rest = tuple([i for i in range(rank) if i != axis])
    average = ops.mean(data, **over)
    epsilon = const(attrs.epsilon, tensor_type_of(data).dtype)
    root = ops.rsqrt(ops.add(ops.variance(data, average, **over), epsilon))
    normal = ops.multiply(ops.subtract(data, average), root)
    inner = ops.multiply(grad, along(gamma, axis, rank)) if attrs.scale else grad
    shared = ops.multiply(normal, ops.mean(ops.multiply(inner, normal), **over))
    to_data = ops.multiply(root, ops.subtract(ops.subtract(inner, ops.mean(inner, **over)), shared))
    to_gamma = (
        ops.sum(ops.multiply(grad, normal), axis=rest) if attrs.scale else ops.zeros_like(gamma)
    )
    return [to_data, to_gamma, ops.sum(grad, axis=rest) if attrs.center else ops.zeros_like(beta)]


@operator(
    "nn.layer_norm",
    accumulates=True,
    support_level=1,
    infer_type=_scaled_type("nn.layer_norm"),
    infer_layout=layout_along_axis(),
    fuse=OpPattern.OUT_ELEMWISE_FUSABLE,
    compute=_layer_norm_compute,
    schedules=default_schedules(topi.x86.schedule_layer_norm),
    argument_types=vectors_of_channels,
    simplify=_composed_layer_norm,
    precision=Precision.KEEP_FLOAT32,
    gradient=_layer_norm_gradient,
)
@described_by(batch_norm)
def layer_norm(
    data: Expr,
    gamma: Expr,
    beta: Expr,
    axis: int = -1,
    epsilon: float = 1e-5,
    center: bool = True,
    scale: bool = True,
) -> RelayExpr:
    """Normalise along one axis, then scale and shift.

    Parameters
    ----------
    data, gamma, beta : relay.Expr
        The tensor, the factors and the summands along the axis.
    """


def _composed_instance_norm(call: Call, arg_types: Sequence[TensorType]) -> RelayExpr:
    (data, gamma, beta), attrs, ty = call.args, call.attrs, arg_types[0]
    rank = len(ty.shape)
    axes = tuple([i for i in range(1, rank) if i != attrs.axis % rank])
    value = _normalised(data, axes, attrs.epsilon, ty.dtype)
    return _scaled(attrs, value, gamma, beta, attrs.axis, rank)


@operator(
    "nn.instance_norm",
    accumulates=True,
    support_level=1,
    infer_type=_scaled_type("nn.instance_norm"),
    infer_layout=layout_along_axis(),
    argument_types=vectors_of_channels,
    simplify=_composed_instance_norm,
    precision=Precision.KEEP_FLOAT32,
)
@same_parameters(layer_norm)
def instance_norm(axis: int = 1) -> None:
    """Normalise each channel of each example; parameters as in `layer_norm`."""


def _composed_group_norm(call: Call, arg_types: Sequence[TensorType]) -> RelayExpr:
    """Reshape the channels to (groups, channels of a group), normalise, reshape back."""
    data, gamma, beta = call.args
    attrs, ty = call.attrs, arg_types[0]
    shape = shape_of_type(ty)
    rank, axis = len(shape), attrs.axis % len(shape)
    channels = shape[axis]
    of_group = channels // attrs.num_groups if isinstance(channels, int) else -1
    newshape = (*[0] * axis, -4, attrs.num_groups, of_group, *[-2] * (axis + 1 < rank))
    axes = tuple([i for i in range(1, rank + 1) if i != axis])
    value = _normalised(ops.reshape(data, newshape=newshape), axes, attrs.epsilon, ty.dtype)
    back = ops.reshape(value, newshape=(*[0] * axis, -3, *[-2] * (axis + 1 < rank)))
    return _scaled(attrs, back, gamma, beta, axis, rank)


@operator(
    "nn.group_norm",
    accumulates=True,
    support_level=1,
    defaults={"num_groups": 0},
    infer_type=_scaled_type("nn.group_norm"),
    argument_types=vectors_of_channels,
    simplify=_composed_group_norm,
    precision=Precision.KEEP_FLOAT32,
)
@more_parameters(layer_norm)
def group_norm(beta: Expr, num_groups: int, axis: int = 1) -> None:
    """Normalise groups of channels; parameters as in `layer_norm`, and

    num_groups : int
        The number of groups.
    """


def _composed_l2_normalize(call: Call, arg_types: Sequence[TensorType]) -> RelayExpr:
    data, attrs = call.args[0], call.attrs
    total = ops.sum(ops.multiply(data, data), axis=attrs.axis, keepdims=True)
    smallest = const(attrs.eps, dtype=arg_types[0].dtype)
    return data / ops.sqrt(ops.maximum(total, smallest))


@operator(
    "nn.l2_normalize",
    accumulates=True,
    support_level=2,
    infer_type=lambda attrs, arg_types: expect_floating(arg_types[0], "nn.l2_normalize"),
    infer_layout=layout_along_axes,
    simplify=_composed_l2_normalize,
)
def l2_normalize(data: Expr, eps: float, axis: OptionalInts = None) -> RelayExpr:
    """Scale to a sum of squares of one along axes.

    Parameters
    ----------
    eps : float
        The least sum of squares taken.
    axis : sequence of int, optional
        The axes, all by default.
    """
