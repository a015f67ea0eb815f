"""ONNX reductions, softmax, normalisation."""

from __future__ import annotations

from collections.abc import Callable

from tvm.ir.expr import RelayExpr
from tvm.relay import op as _op
from tvm.relay.frontend.common import infer_dtype, infer_shape, is_static, scalar_like
from tvm.relay.frontend.dynamic_extents import extent, iota, reshaped
from tvm.relay.frontend.indexing import along_axis
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


@onnx_op("ArgMax", "ArgMin")
def _arg_reduce(node: OnnxNode) -> RelayExpr:
    find = _op.argmax if node.op_type == "ArgMax" else _op.argmin
    found = find(
        node[0], axis=node.attr("axis", 0), keepdims=bool(node.attr("keepdims", 1)),
        select_last_index=bool(node.attr("select_last_index", 0)),
    )  # fmt: skip
    return found.astype("int64")


@onnx_op("Softmax", "LogSoftmax", "Hardmax")
def _softmax(node: OnnxNode) -> RelayExpr:
    """Since opset 13 along an axis; before, over all elements from an axis on."""
    functions: dict[str, Callable[..., RelayExpr]] = {
        "Softmax": _op.nn.softmax, "LogSoftmax": _op.nn.log_softmax, "Hardmax": _hardmax,
    }  # fmt: skip
    apply = functions[node.op_type]
    if node.opset >= 13:
        return apply(node[0], axis=node.attr("axis", -1))
    return over_axes_from(node[0], node.attr("axis", 1), apply)


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
    rank = len(infer_shape(x))
    axis %= max(rank, 1)
    first = _op.cast(_op.argmax(x, axis=axis, keepdims=True), "int64")
    positions = _op.reshape(iota(extent(x, axis)), along_axis(axis, rank))
    return _op.cast(_op.equal(first, positions), infer_dtype(x))


@onnx_op("LayerNormalization")
def _layer_norm(node: OnnxNode) -> RelayExpr | list[RelayExpr]:
    shape = node.shape(0)
    axis = node.attr("axis", -1) % len(shape)
    epsilon = node.attr("epsilon", 1e-5)
    if axis == len(shape) - 1 and node.has(2) and node.output_count == 1:
        return _op.nn.layer_norm(node[0], node[1], node[2], axis=-1, epsilon=epsilon)
    centred, mean, variance = moments(node[0], list(range(axis, len(shape))))
    deviation = _op.sqrt(variance + scalar_like(epsilon, centred))
    result = weighted(centred / deviation, node[1], node[2] if node.has(2) else None)
    inverse = scalar_like(1.0, centred) / deviation
    return [result, mean, inverse][: node.output_count]


@onnx_op("com.microsoft.SkipLayerNormalization")
def _skip_layer_norm(node: OnnxNode) -> list[RelayExpr]:
    """The outputs behind the first are means, reciprocal deviations and the sum."""
    epsilon = node.attr("epsilon", 1e-5)
    total = node[0] + node[1]
    total = total + node[4] if node.has(4) else total
    beta = node[3] if node.has(3) else _op.zeros_like(node[2])
    result = _op.nn.layer_norm(total, node[2], beta, axis=-1, epsilon=epsilon)
    if node.output_count < 2:
        return [result]
    mean = _op.mean(total, -1, keepdims=True)
    variance = _op.variance(total, -1, keepdims=True)
    deviation = _op.rsqrt(variance + scalar_like(epsilon, variance))
    return [result, mean, deviation, total][: node.output_count]


@onnx_op("InstanceNormalization")
def _instance_norm(node: OnnxNode) -> RelayExpr:
    return _op.nn.instance_norm(
        node[0], node[1], node[2], axis=1, epsilon=node.attr("epsilon", 1e-5)
    )


@onnx_op("GroupNormalization")
def _group_norm(node: OnnxNode) -> RelayExpr:
    """Scale and shift are given by channels since opset 21, by groups before."""
    shape, groups = node.shape(0), node.attr("num_groups")
    x = _op.reshape(node[0], (0, groups, -1))
    result = _op.reshape(standardized(x, [2], node.attr("epsilon", 1e-5)), (0, shape[1], -1))
    scale, shift = [
        _op.repeat(v, shape[1] // groups, 0) if node.opset < 21 else v for v in (node[1], node[2])
    ]
    result = result * _op.expand_dims(scale, 1) + _op.expand_dims(shift, 1)
    return reshaped(result, [extent(node[0], axis) for axis in range(len(shape))])


@onnx_op("RMSNormalization", "SimplifiedLayerNormalization")
def _rms_norm(node: OnnxNode) -> RelayExpr:
    rank = len(node.shape(0))
    axes = list(range(node.attr("axis", -1) % rank, rank))
    return rms_norm(node[0], axes, node.attr("epsilon", 1e-5), node[1])


@onnx_op("MeanVarianceNormalization")
def _mean_variance_norm(node: OnnxNode) -> RelayExpr:
    """Since opset 9 over ``axes``; before, of images, with or without their channels."""
    old = [0, 1, 2, 3] if node.attr("across_channels", 0) else [0, 2, 3]
    centred, _, variance = moments(node[0], list(node.attr("axes", old)))
    if not node.attr("normalize_variance", 1):
        return centred
    return centred / (_op.sqrt(variance) + scalar_like(1e-9, centred))


@onnx_op("BatchNormalization")
def _batch_norm(node: OnnxNode) -> list[RelayExpr]:
    if node.attr("training_mode", 0):
        return _trained_batch_norm(node)
    if not node.attr("spatial", 1):
        return [_batch_norm_of_positions(node)]
    return [_op.nn.batch_norm(
        node[0], node[1], node[2], node[3], node[4], epsilon=node.attr("epsilon", 1e-5)
    )[0]]  # fmt: skip


def _batch_norm_of_positions(node: OnnxNode) -> RelayExpr:
    """Before opset 9: each element of an item has a scale, a shift, a mean and a variance."""
    scale, shift, mean, variance = [node[i] for i in range(1, 5)]
    safe = variance + scalar_like(node.attr("epsilon", 1e-5), variance)
    return (node[0] - mean) * (scale * _op.rsqrt(safe)) + shift


def _trained_batch_norm(node: OnnxNode) -> list[RelayExpr]:
    """By the mean and variance of the batch; the running ones follow them."""
    x, rank = node[0], len(node.shape(0))
    axes = [axis for axis in range(rank) if axis != 1]
    centred, mean, variance = moments(x, axes)
    momentum = scalar_like(node.attr("momentum", 0.9), x)
    rest = scalar_like(1.0, x) - momentum
    deviation = _op.sqrt(variance + scalar_like(node.attr("epsilon", 1e-5), x))
    means, variances = _op.squeeze(mean, axes), _op.squeeze(variance, axes)
    return [
        weighted(centred / deviation, node[1], node[2], by_channel=True),
        node[3] * momentum + means * rest,
        node[4] * momentum + variances * rest,
    ]


@onnx_op("LpNormalization")
def _lp_normalization(node: OnnxNode) -> RelayExpr:
    axis = node.attr("axis", -1)
    length, zero = p_norm(node[0], node.attr("p", 2), [axis], True), scalar_like(0.0, node[0])
    return _op.where(_op.equal(length, zero), zero, node[0] / length)
