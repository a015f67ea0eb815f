"""ONNX signal processing: Fourier transforms as products with matrices of roots of unity."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tvm.ir.expr import RelayExpr
from tvm.relay import op as _op
from tvm.relay.expr import If
from tvm.relay.frontend.common import constant, infer_dtype, infer_shape, is_static, static_or
from tvm.relay.frontend.dynamic_extents import (
    as_vector,
    difference_of,
    extent,
    iota,
    product_of,
    quotient_of,
    sum_of,
)
from tvm.relay.frontend.indexing import move_axis
from tvm.relay.frontend.matmul import matmul

from .registry import OnnxNode, onnx_op
from .tensors import tensor_dtype


def fourier(
    real: RelayExpr, imaginary: RelayExpr | None, length: Any, inverse: bool, bins: Any
) -> tuple[RelayExpr, RelayExpr]:
    """The first ``bins`` values of the transform of the last axis, cut or filled to ``length``."""
    if isinstance(length, int):
        real = _first(real, length)
        imaginary = None if imaginary is None else _first(imaginary, length)
    rows = extent(real, -1)
    cosine, sine = _roots(rows, bins, length, inverse, infer_dtype(real))
    if imaginary is None:
        return matmul(real, cosine), matmul(real, sine)
    return (
        matmul(real, cosine) - matmul(imaginary, sine),
        matmul(real, sine) + matmul(imaginary, cosine),
    )


def _roots(
    rows: Any, bins: Any, length: Any, inverse: bool, dtype: str
) -> tuple[RelayExpr, RelayExpr]:
    """Cosines and sines of the angles that positions and frequencies make, (rows, bins)."""
    turn = 2 * math.pi if inverse else -2 * math.pi
    if is_static([rows, bins, length]):
        angle = turn * np.outer(np.arange(rows), np.arange(bins)) / length
        scale = 1 / length if inverse else 1.0
        return constant(np.cos(angle) * scale, dtype), constant(np.sin(angle) * scale, dtype)
    # full turns are removed before the angle is rounded
    steps = _op.expand_dims(iota(rows), 1) * iota(bins)
    turns = _op.cast(_op.floor_mod(steps, as_vector(length)), "float64")
    size = _op.cast(as_vector(length), "float64")
    angles = turns * constant(turn, "float64") / size
    found = [_op.cos(angles), _op.sin(angles)]
    cosine, sine = [_op.cast(x / size if inverse else x, dtype) for x in found]
    return cosine, sine


def _first(x: RelayExpr, count: int) -> RelayExpr:
    shape = infer_shape(x)
    if isinstance(shape[-1], int) and shape[-1] <= count:
        return x
    return _op.strided_slice(x, [0], [count], axes=[len(shape) - 1])


def parts_of(x: RelayExpr) -> tuple[RelayExpr, RelayExpr | None]:
    """The real and the imaginary numbers of the last axis."""
    last = len(infer_shape(x)) - 1
    if infer_shape(x)[-1] == 1:
        return _op.squeeze(x, [last]), None
    if not isinstance(infer_shape(x)[-1], int):  # zeros behind real numbers, if they are real
        x = _op.nn.pad(x, [(0, 0)] * last + [(0, 1)])
        return _op.take(x, constant(0, "int64"), last), _op.take(x, constant(1, "int64"), last)
    real, imaginary = _op.split(x, 2, last)
    return _op.squeeze(real, [last]), _op.squeeze(imaginary, [last])


@onnx_op("DFT")
def _dft(node: OnnxNode) -> RelayExpr:
    if node.opset < 20:
        return _transformed(node, node.attr("axis", 1))
    if not node.has(2):
        return _transformed(node, -2)
    axis = node.value_or_expr(2, "the axis")
    if isinstance(axis, RelayExpr):
        return _along_an_axis_of_the_run(node, axis)
    return _transformed(node, int(axis.reshape(-1)[0]))


def _along_an_axis_of_the_run(node: OnnxNode, axis: RelayExpr) -> RelayExpr:
    """A branch for each axis; the results have one shape, whichever is chosen."""
    rank = len(node.shape(0))
    results = [_transformed(node, i) for i in range(rank - 1)]
    if len({tuple(static_or(infer_shape(result), None)) for result in results}) > 1:
        node.require_value(2, "the axis, which decides about the result's shape")
    number = _op.floor_mod(_op.reshape(axis, ()).astype("int64"), constant(rank, "int64"))
    chosen = results[-1]
    for i in reversed(range(rank - 2)):
        chosen = If(_op.equal(number, constant(i, "int64")), results[i], chosen)
    return chosen


def _transformed(node: OnnxNode, axis: int) -> RelayExpr:
    rank = len(node.shape(0))
    axis %= rank
    inverse, onesided = bool(node.attr("inverse", 0)), bool(node.attr("onesided", 0))
    real, imaginary = parts_of(node[0])
    half_given = inverse and onesided
    length = int(node.require_scalar(1, "the length")) if node.has(1) else extent(node[0], axis)
    if half_given and not node.has(1):
        length = sum_of(product_of([length, 2]), -2)
    real = move_axis(real, axis, -1)
    imaginary = None if imaginary is None else move_axis(imaginary, axis, -1)
    if half_given and imaginary is not None:
        real, imaginary = mirrored(real, imaginary, length)
    bins = half(length) if onesided and not inverse else length
    result = [move_axis(x, -1, axis) for x in fourier(real, imaginary, length, inverse, bins)]
    return _op.expand_dims(result[0], rank - 1) if half_given else _op.stack(result, rank - 1)


def half(length: Any) -> Any:
    """How many frequencies of a real signal are not conjugates of others."""
    return sum_of(quotient_of(length, 2), 1)


def mirrored(real: RelayExpr, imaginary: RelayExpr, length: Any) -> tuple[RelayExpr, RelayExpr]:
    """The other half of the spectrum of a real signal: conjugates in reverse order."""
    axis = len(infer_shape(real)) - 1
    have = extent(real, axis)
    if isinstance(have, int) and isinstance(length, int):
        positions: RelayExpr = constant(np.arange(length - have, 0, -1), "int64")
    else:
        first = _op.reshape(as_vector(length) - as_vector(have), ())
        positions = _op.arange(first, constant(0, "int64"), constant(-1, "int64"), "int64")
    return (
        _op.concatenate([real, _op.take(real, positions, axis)], axis),
        _op.concatenate([imaginary, _op.negative(_op.take(imaginary, positions, axis))], axis),
    )


@onnx_op("STFT")
def _stft(node: OnnxNode) -> RelayExpr:
    """Transforms of overlapping frames."""
    step = int(node.require_scalar(1, "the step"))
    if node.has(3):
        length = int(node.require_scalar(3, "the length of frames"))
    elif node.has(2):
        length = infer_shape(node[2])[0]
        if not isinstance(length, int):
            node.static_shape(2)
    else:
        raise node.unsupported("neither a window nor a length of frames")
    count = sum_of(quotient_of(difference_of(extent(node[0], 1), length), step), 1)
    starts = iota(count) * constant(step, "int64")
    positions = _op.expand_dims(starts, 1) + iota(length)
    parts = [None if x is None else _op.take(x, positions, 1) for x in parts_of(node[0])]
    if node.has(2):
        parts = [None if x is None else x * node[2] for x in parts]
    bins = length // 2 + 1 if node.attr("onesided", 1) else length
    assert parts[0] is not None
    return _op.stack(list(fourier(parts[0], parts[1], length, False, bins)), 3)


@onnx_op("MelWeightMatrix")
def _mel_weight_matrix(node: OnnxNode) -> RelayExpr:
    """Triangles over the bins of a spectrum, evenly spaced in mels."""
    names = ("num_mel_bins", "dft_length", "sample_rate", "lower edge", "upper edge")
    bands, length, rate, low, high = [node.require_scalar(i, n) for i, n in enumerate(names)]
    # the standard takes the edges from evenly spaced mels without the end point
    mels = _mel(low) + np.arange(bands + 2) * ((_mel(high) - _mel(low)) / (bands + 2))
    edges = np.floor((length + 1) * 700 * (10 ** (mels / 2595) - 1) / rate).astype(int)
    result = np.zeros((length // 2 + 1, bands))
    for band in range(bands):
        lower, centre, upper = edges[band : band + 3]
        if lower == centre:
            result[centre, band] = 1
        for i in range(lower, centre + 1):
            if centre != lower:
                result[i, band] = (i - lower) / (centre - lower)
        for i in range(centre, upper):
            if upper != centre:
                result[i, band] = (upper - i) / (upper - centre)
    return constant(result, tensor_dtype(node.attr("output_datatype", 1)))


def _mel(hertz: float) -> float:
    return 2595 * math.log10(1 + hertz / 700)
