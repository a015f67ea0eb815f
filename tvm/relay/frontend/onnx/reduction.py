"""ONNX reductions, softmax, normalisation."""

from __future__ import annotations

from collections.abc import Callable

from tvm.ir.expr import RelayExpr
from tvm.relay import op as _op
from tvm.relay.frontend.common import infer_dtype, infer_shape, is_static, scalar_like
from tvm.relay.frontend.composites import added
from tvm.relay.frontend.dynamic_extents import extent, positions_along, reshaped
from tvm.relay.frontend.normalization import moments, p_norm, rms_norm, standardized, weighted

from .dynamic_axes import has_dynamic_axes
from .dynamic_reduction import reduce_dynamic_axes
from .registry import Converter, OnnxNode, onnx_op, onnx_ops

Reduction = Callable[..., RelayExpr]


_REDUCTIONS: dict[str, Reduction] = {
    "ReduceSum": _op.sum, "ReduceMean": _op.mean, "ReduceMax": _op.max, "ReduceMin": _op.min,
    "ReduceProd": _op.prod, "ReduceLogSumExp": _op.logsumexp,
    "ReduceL1": lambda x, axis, keepdims: p_norm(x, 1, axis, keepdims),
    "ReduceL2": lambda x, axis, keepdims: p_norm(x, 2, axis, keepdims),
    "ReduceLogSum": lambda x, axis, keepdims: _op.log(_op.sum(x, axis, keepdims)),
    "ReduceSumSquare": lambda x, axis, keepdims: _op.sum(x * x, axis, keepdims),
}  # fmt: skip


def _reducing(reduction: Reduction) -> Converter:
    def convert(node: OnnxNode) -> RelayExpr:
        if has_dynamic_axes(node) and node.shape(1) != (0,):
            return reduce_dynamic_axes(node)
        axes = [] if node.has(1) and node.shape(1) == (0,) else node.ints("axes", 1)
        if not axes and node.attr("noop_with_empty_axes", 0):
            return node[0]
        return reduction(node[0], axis=axes or None, keepdims=bool(node.attr("keepdims", 1)))

    return convert


onnx_ops({name: _reducing(function) for name, function in _REDUCTIONS.items()})


def _index_of(find: Reduction) -> Reduction:
    return lambda x, axis=0, keepdims=True, select_last_index=False: find(
        x, axis=axis, keepdims=keepdims, select_last_index=select_last_index
    ).astype("int64")


def _softmax(apply: Reduction) -> Reduction:
    """Since opset 13 along an axis; before, over all elements from an axis on."""

    def convert(x: RelayExpr, *, axis: int | None = None, node: OnnxNode) -> RelayExpr:
        if node.opset >= 13:
            return apply(x, axis=-1 if axis is None else axis)
        return over_axes_from(x, 1 if axis is None else axis, apply)

    return convert


def over_axes_from(x: RelayExpr, axis: int, apply: Reduction) -> RelayExpr:
    """A softmax over all elements from an axis on."""
    shape = infer_shape(x)
    axis %= max(len(shape), 1)
    if axis == len(shape) - 1:
        return apply(x, axis=-1)
    found = apply(_op.reshape(x, (*[0] * axis, -1)), axis=-1)
    if is_static(shape):
        return _op.reshape(found, shape)
    return _op.reshape_like(found, x)


def _hardmax(x: RelayExpr, axis: int) -> RelayExpr:
    """One where the first of the largest elements is, zero elsewhere."""
    axis %= max(len(infer_shape(x)), 1)
    first = _op.cast(_op.argmax(x, axis=axis, keepdims=True), "int64")
    return _op.cast(_op.equal(first, positions_along(x, axis)), infer_dtype(x))


@onnx_op("LayerNormalization")
def _layer_norm(
    x: RelayExpr, scale: RelayExpr, bias: RelayExpr | None = None, axis: int = -1,
    epsilon: float = 1e-5, *, node: OnnxNode,
) -> RelayExpr | list[RelayExpr]:  # fmt: skip
    rank = len(infer_shape(x))
    if axis % rank == rank - 1 and bias is not None and node.output_count == 1:
        return _op.nn.layer_norm(x, scale, bias, axis=-1, epsilon=epsilon)
    centred, mean, variance = moments(x, list(range(axis % rank, rank)))
    deviation = _op.sqrt(variance + scalar_like(epsilon, centred))
    inverse = scalar_like(1.0, centred) / deviation
    return [weighted(centred / deviation, scale, bias), mean, inverse]


@onnx_op("com.microsoft.SkipLayerNormalization")
def _skip_layer_norm(
    x: RelayExpr, skip: RelayExpr, gamma: RelayExpr, beta: RelayExpr | None = None,
    bias: RelayExpr | None = None, epsilon: float = 1e-5, *, node: OnnxNode,
) -> list[RelayExpr]:  # fmt: skip
    """The outputs behind the first are means, reciprocal deviations and the sum."""
    total = added(x + skip, bias)
    beta = _op.zeros_like(gamma) if beta is None else beta
    result = _op.nn.layer_norm(total, gamma, beta, axis=-1, epsilon=epsilon)
    if node.output_count < 2:
        return [result]
    mean = _op.mean(total, -1, keepdims=True)
    variance = _op.variance(total, -1, keepdims=True)
    return [result, mean, _op.rsqrt(variance + scalar_like(epsilon, variance)), total]


@onnx_op("GroupNormalization")
def _group_norm(
    x: RelayExpr, scale: RelayExpr, bias: RelayExpr, epsilon: float = 1e-5, *, num_groups: int,
    node: OnnxNode,
) -> RelayExpr:  # fmt: skip
    """Scale and shift are given by channels since opset 21, by groups before."""
    channels, extents = infer_shape(x)[1], [extent(x, i) for i in range(len(infer_shape(x)))]
    normal = standardized(_op.reshape(x, (0, num_groups, -1)), [2], epsilon)
    scale, shift = [
        _op.repeat(v, channels // num_groups, 0) if node.opset < 21 else v for v in (scale, bias)
    ]
    result = _op.reshape(normal, (0, channels, -1)) * _op.expand_dims(scale, 1)
    return reshaped(result + _op.expand_dims(shift, 1), extents)


@onnx_op("RMSNormalization", "SimplifiedLayerNormalization")
def _rms_norm(x: RelayExpr, scale: RelayExpr, axis: int = -1, epsilon: float = 1e-5) -> RelayExpr:
    rank = len(infer_shape(x))
    return rms_norm(x, list(range(axis % rank, rank)), epsilon, scale)


@onnx_op("MeanVarianceNormalization")
def _mean_variance_norm(
    x: RelayExpr, across_channels: bool = False, normalize_variance: bool = True,
    *, axes: list[int] | None = None,
) -> RelayExpr:  # fmt: skip
    """Since opset 9 over ``axes``; before, of images, with or without their channels."""
    old = [0, 1, 2, 3] if across_channels else [0, 2, 3]
    centred, _, variance = moments(x, old if axes is None else list(axes))
    deviation = _op.sqrt(variance) + scalar_like(1e-9, centred) if normalize_variance else None
    return centred if deviation is None else centred / deviation


@onnx_op("BatchNormalization")
def _batch_norm(
    x: RelayExpr, scale: RelayExpr, bias: RelayExpr, mean: RelayExpr, variance: RelayExpr,
    epsilon: float = 1e-5, momentum: float = 0.9, training_mode: bool = False, spatial: bool = True,
) -> list[RelayExpr]:  # fmt: skip
    """Before opset 9 each position of an item could have a scale of its own.

    In training by the mean and variance of the batch, which the running ones follow.
    """
    if not training_mode and spatial:
        return [_op.nn.batch_norm(x, scale, bias, mean, variance, epsilon=epsilon)[0]]
    if not training_mode:
        safe = variance + scalar_like(epsilon, variance)
        return [(x - mean) * (scale * _op.rsqrt(safe)) + bias]
    axes = [axis for axis in range(len(infer_shape(x))) if axis != 1]
    centred, *found = moments(x, axes)
    deviation = _op.sqrt(found[1] + scalar_like(epsilon, x))
    kept, rest = scalar_like(momentum, x), scalar_like(1.0, x) - scalar_like(momentum, x)
    return [
        weighted(centred / deviation, scale, bias, by_channel=True),
        mean * kept + _op.squeeze(found[0], axes) * rest,
        variance * kept + _op.squeeze(found[1], axes) * rest,
    ]


@onnx_op("LpNormalization")
def _lp_normalization(x: RelayExpr, axis: int = -1, p: int = 2) -> RelayExpr:
    length, zero = p_norm(x, p, [axis], True), scalar_like(0.0, x)
    return _op.where(_op.equal(length, zero), zero, x / length)


onnx_ops({
    "ArgMax": _index_of(_op.argmax), "ArgMin": _index_of(_op.argmin),
    "Softmax": _softmax(_op.nn.softmax), "LogSoftmax": _softmax(_op.nn.log_softmax),
    "Hardmax": _softmax(_hardmax), "InstanceNormalization": _op.nn.instance_norm,
    "com.microsoft.BiasSoftmax": lambda x, bias, axis=-1: over_axes_from(
        x + bias, axis, _op.nn.softmax
    ),
})  # fmt: skip
