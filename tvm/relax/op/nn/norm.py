"""Normalisations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import topi
from tvm.relax.expr import Call
from tvm.relax.op.infer import (
    axes_of,
    axis_of,
    broadcast_dims,
    check_count,
    dims_of,
    fail,
    made,
    prove_equal,
    prove_unequal,
    require_float,
    tensors,
)
from tvm.relax.op.operator import Expr, Int, Ints, operator
from tvm.relax.struct_info import TensorStructInfo, TupleStructInfo


def _normalized(call: Any, infos: Any, axes: Sequence[int], least: int = 1) -> bool:
    """Check parameters of normalised axes; whether all shapes are known."""
    data, *rest = infos
    require_float(call, data)
    kinds = {i.dtype for i in infos}
    if len(kinds) > 1 and not data.dtype.is_void:
        raise fail(call, f"requires tensors of one dtype, got {sorted(kinds)}")
    for info in rest:
        if info.ndim not in (-1, len(axes)):
            raise fail(call, f"requires parameters of {len(axes)} dimensions, got {info}")
    if data.ndim < 0:
        return True
    found = axes_of(call, axes, data.ndim)
    dims = dims_of(data)
    known = [None if dims is None else tuple([dims[a] for a in found])]
    known += [dims_of(i) for i in rest]
    given = [d for d in known if d is not None]
    is_known = True
    for other in given[1:]:
        for a, b in zip(given[0], other, strict=True):
            if prove_unequal(a, b):
                raise fail(call, f"requires parameters of the sizes of axes {found}, got {infos}")
            is_known = is_known and prove_equal(a, b)
    return is_known


def _like(data: TensorStructInfo, is_known: bool) -> TensorStructInfo:
    """A tensor like the data, of unknown shape if parameters may not fit."""
    return data if is_known else made(None, data.dtype, data.vdevice, data.ndim)


def _infer_batch_norm(call: Any, bb: Any) -> Any:
    infos = tensors(call, 5)
    data = infos[0]
    if data.ndim < 0:
        for i in infos[1:]:
            if i.ndim not in (-1, 1):
                raise fail(call, f"requires parameters of one dimension, got {i}")
        require_float(call, data)
        return TupleStructInfo([data, infos[3], infos[4]])
    is_known = _normalized(call, infos, (call.attrs.axis,))
    return TupleStructInfo([_like(i, is_known) for i in (data, infos[3], infos[4])])


def _legalize_batch_norm(bb: Any, call: Call) -> Any:
    attrs = call.attrs
    return bb.call_te(
        topi.nn.batch_norm, *call.args, axis=attrs.axis, epsilon=attrs.epsilon,
        center=attrs.center, scale=attrs.scale, training=True, momentum=attrs.momentum,
        primfunc_name_hint="batch_norm",
    )  # fmt: skip


@operator(
    "relax.nn.batch_norm", "BatchNormAttrs", infer=_infer_batch_norm,
    FLegalize=_legalize_batch_norm,
)  # fmt: skip
def batch_norm(
    data: Expr, gamma: Expr, beta: Expr, moving_mean: Expr, moving_var: Expr, axis: Int,
    epsilon: float = 1e-5, center: bool = True, scale: bool = True, momentum: float = 0.1,
) -> Expr:  # fmt: skip
    """Normalise by the statistics of a batch, which are kept as running means.

    Parameters
    ----------
    data : relax.Expr
        The tensor.
    gamma, beta : relax.Expr
        The scales and offsets.
    moving_mean, moving_var : relax.Expr
        The running statistics.
    axis : int
        The axis of channels.
    epsilon : float
        Added to variances.
    center, scale : bool
        Whether offsets and scales are used.
    momentum : float
        How much of the batch goes into the running statistics.

    Returns
    -------
    relax.Expr
        A tuple of the result and the new running statistics.
    """


def _infer_layer_norm(call: Any, bb: Any) -> Any:
    """A tensor of the shape and dtype of `data`."""
    infos = tensors(call, 3)
    return _like(infos[0], _normalized(call, infos, call.attrs.axes))


@operator(
    "relax.nn.layer_norm", "LayerNormAttrs", infer=_infer_layer_norm,
    FLegalize=lambda bb, call: bb.call_te(
        topi.nn.layer_norm, *call.args, axis=list(call.attrs.axes), epsilon=call.attrs.epsilon
    ),
)  # fmt: skip
def layer_norm(
    data: Expr, gamma: Expr, beta: Expr, axes: Ints, epsilon: float = 1e-5, center: bool = True,
    scale: bool = True,
) -> Expr:  # fmt: skip
    """Normalise over axes.

    Parameters
    ----------
    data : relax.Expr
        The tensor.
    gamma, beta : relax.Expr
        The scales and offsets, of the axes' sizes.
    axes : int or list of int
        The axes.
    epsilon, center, scale :
        As of `batch_norm`.
    """


def _infer_group_norm(call: Any, bb: Any) -> Any:
    """A tensor of the shape and dtype of `data`."""
    infos = tensors(call, 3)
    data, attrs = infos[0], call.attrs
    if data.ndim >= 0:
        channel = axis_of(call, attrs.channel_axis, data.ndim)
        dims = dims_of(data)
        if (
            dims is not None
            and getattr(dims[channel], "value", attrs.num_groups) % attrs.num_groups
        ):
            raise fail(call, f"requires channels that {attrs.num_groups} groups divide, got {dims}")
        axes = axes_of(call, attrs.axes, data.ndim)
        if channel in axes:
            raise fail(call, f"requires axes without the channel axis {channel}, got {axes}")
    return _like(data, _normalized(call, infos, (attrs.channel_axis,)))


@operator(
    "relax.nn.group_norm", "GroupNormAttrs", infer=_infer_group_norm,
    FLegalize=lambda bb, call: bb.call_te(
        topi.nn.group_norm, *call.args, call.attrs.num_groups, call.attrs.channel_axis,
        list(call.attrs.axes), call.attrs.epsilon,
    ),
)  # fmt: skip
def group_norm(
    data: Expr, gamma: Expr, beta: Expr, num_groups: Int, channel_axis: Int, axes: Ints,
    epsilon: float = 1e-5, center: bool = True, scale: bool = True,
) -> Expr:  # fmt: skip
    """Normalise over groups of channels.

    Parameters
    ----------
    data : relax.Expr
        The tensor.
    gamma, beta : relax.Expr
        The scales and offsets of channels.
    num_groups : int
        The number of groups.
    channel_axis : int
        The axis of channels.
    axes : list of int
        The other axes that are normalised.
    epsilon, center, scale :
        As of `batch_norm`.
    """


def _infer_instance_norm(call: Any, bb: Any) -> Any:
    """A tensor of the shape and dtype of `data`."""
    infos = tensors(call, 3)
    data, attrs = infos[0], call.attrs
    if data.ndim >= 0:
        channel = axis_of(call, attrs.channel_axis, data.ndim)
        axes = axes_of(call, attrs.axes, data.ndim)
        if channel in axes:
            raise fail(call, f"requires axes without the channel axis {channel}, got {axes}")
    return _like(data, _normalized(call, infos, (attrs.channel_axis,)))


def _legalize_instance_norm(bb: Any, call: Call) -> Any:
    attrs, rank = call.attrs, call.args[0].struct_info.ndim
    channel = attrs.channel_axis % rank

    def compute(x: Any, gamma: Any, beta: Any) -> Any:
        shape = [x.shape[i] if i == channel else 1 for i in range(rank)]
        found = topi.nn.layer_norm(x, None, None, list(attrs.axes), attrs.epsilon)
        if attrs.scale:
            found = topi.multiply(found, topi.reshape(gamma, shape))
        return topi.add(found, topi.reshape(beta, shape)) if attrs.center else found

    return bb.call_te(compute, *call.args, primfunc_name_hint="instance_norm")


@operator(
    "relax.nn.instance_norm", "InstanceNormAttrs", infer=_infer_instance_norm,
    FLegalize=_legalize_instance_norm,
)  # fmt: skip
def instance_norm(
    data: Expr, gamma: Expr, beta: Expr, channel_axis: Int, axes: Ints, epsilon: float = 1e-5,
    center: bool = True, scale: bool = True,
) -> Expr:  # fmt: skip
    """Normalise each channel of each instance.

    Parameters
    ----------
    data : relax.Expr
        The tensor.
    gamma, beta : relax.Expr
        The scales and offsets of channels.
    channel_axis : int
        The axis of channels.
    axes : list of int
        The axes that are normalised, the spatial ones.
    epsilon, center, scale :
        As of `batch_norm`.
    """


def _infer_rms_norm(call: Any, bb: Any) -> Any:
    """A tensor of the shape and dtype of `data`."""
    infos = tensors(call, 2)
    return _like(infos[0], _normalized(call, infos, call.attrs.axes))


@operator(
    "relax.nn.rms_norm", "RMSNormAttrs", infer=_infer_rms_norm,
    FLegalize=lambda bb, call: bb.call_te(
        topi.nn.rms_norm, *call.args, axis=list(call.attrs.axes), epsilon=call.attrs.epsilon
    ),
)  # fmt: skip
def rms_norm(data: Expr, weight: Expr, axes: Ints = -1, epsilon: float = 1e-5) -> Expr:
    """Divide by the root of the mean square over axes.

    Parameters
    ----------
    data : relax.Expr
        The tensor.
    weight : relax.Expr
        The scales.
    axes : int or list of int
        The axes.
    epsilon : float
        Added to mean squares.
    """


__all__ = [
    "batch_norm",
    "broadcast_dims",
    "check_count",
    "group_norm",
    "instance_norm",
    "layer_norm",
    "rms_norm",
]
