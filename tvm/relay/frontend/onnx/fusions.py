"""Fused and auxiliary operators of com.microsoft: biases, positions, spectra, small algebra."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from tvm.ir.expr import RelayExpr
from tvm.relay import op as _op
from tvm.relay.frontend.common import constant, infer_dtype, infer_shape, scalar_like
from tvm.relay.frontend.composites import scaled, swish
from tvm.relay.frontend.dynamic_extents import extent, iota
from tvm.relay.frontend.indexing import windows_along
from tvm.relay.frontend.matmul import matmul
from tvm.relay.frontend.normalization import rms_norm

from .attention import split_heads
from .nn import conv_transpose_of
from .random import dropout
from .registry import OnnxNode, onnx_op, onnx_ops
from .signals import fourier, half, mirrored, parts_of


@onnx_op("com.microsoft.BiasDropout")
def _bias_dropout(node: OnnxNode) -> list[RelayExpr]:
    """Something added before and something behind a dropout."""
    given = [node[0] + node[1], *node.inputs[3:]]
    first, *mask = dropout(replace(node, inputs=given))
    return [first + node[2] if node.has(2) else first, *mask]


@onnx_op("com.microsoft.BitmaskDropout")
def _bitmask_dropout(node: OnnxNode) -> list[RelayExpr]:
    if node.output_count > 1:
        raise node.unsupported("the output of its mask as bits")
    return dropout(node)


_INTERPOLATION = {"bilinear": "bilinear", "nearest": "nearest_neighbor"}
onnx_ops({
    "com.microsoft.TorchEmbedding": lambda weight, indices: _op.take(weight, indices, 0),
    "com.microsoft.ScaledSiLU": lambda x, scale=None, alpha=1.0: swish(
        scaled(x, alpha) if scale is None else x * _op.cast(scale, infer_dtype(x))
    ),
    "com.microsoft.MatMulInteger16": lambda a, b: matmul(
        _op.cast(a, "int32"), _op.cast(b, "int32")
    ),
    "com.microsoft.ReduceSumInteger": lambda x, keepdims=True, *, axes=None: _op.sum(
        _op.cast(x, "uint32" if infer_dtype(x).startswith("u") else "int32"), axes or None, keepdims
    ),
    # all slices of a size along an axis; their elements become the last axis
    "com.microsoft.UnfoldTensor": lambda x, dim=-1, step=1, *, size, node: windows_along(
        x, dim % len(node.static_shape(0)), size, step
    ),
    "com.microsoft.CropAndResize": (
        lambda x, boxes, batches, _, mode="bilinear", extrapolation_value=0.0, *, node:
        _op.image.crop_and_resize(
            x, boxes, _op.cast(batches, "int32"), node.ints("the size of crops", 3), "NCHW",
            _INTERPOLATION[mode], extrapolation_value,
        )
    ),
})  # fmt: skip


@onnx_op("com.microsoft.GatedRMSNorm")
def _gated_rms_norm(
    x: RelayExpr, scale: RelayExpr, gate: RelayExpr, activation: str = "silu",
    epsilon: float = 1e-6, *, node: OnnxNode,
) -> RelayExpr:  # fmt: skip
    """Groups of the last axis by their root mean square, times an activated gate; in float32."""
    outer, size = [0] * (len(infer_shape(x)) - 1), node.static_shape(1)[0]
    wide, scale, gate = [_op.cast(v, "float32") for v in (x, scale, gate)]
    normal = rms_norm(_op.reshape(wide, (*outer, -1, size)), [-1], epsilon, scale)
    if activation not in ("silu", "swish", "sigmoid"):
        raise node.unsupported(f"the activation {activation!r}")
    opened = _op.sigmoid(gate) if activation == "sigmoid" else swish(gate)
    return _op.cast(_op.reshape(normal, (*outer, -1)) * opened, infer_dtype(x))


# ---- positions


@onnx_op("com.microsoft.RelativePositionBias")
def _relative_position_bias(node: OnnxNode) -> RelayExpr:
    """(1, heads, queries, keys): a number of a table for each head and range of distances.

    The table says (bucket_count, heads) of its shape, its numbers lie the other way round.
    """
    bucket_count, heads = node.static_shape(0)
    lengths = [node.value_or_expr(i, "the length") for i in (1, 2)]
    queries, keys = [x if isinstance(x, RelayExpr) else int(x.reshape(())) for x in lengths]
    is_both = bool(node.attr("is_bidirectional", 0))
    buckets = relative_position_buckets(
        queries, keys, bucket_count, node.attr("max_distance"), is_both
    )
    return _op.expand_dims(_op.take(_op.reshape(node[0], (heads, bucket_count)), buckets, 1), 0)


def relative_position_buckets(
    queries: Any, keys: Any, bucket_count: int, furthest: int, is_both: bool
) -> RelayExpr:
    """The range that each distance falls in: single ones first, then ever longer ones."""
    distance = iota(keys) - _op.expand_dims(iota(queries), 1)
    zero = constant(0, "int64")
    offset = None
    if is_both:
        bucket_count //= 2
        offset = _op.cast(_op.greater(distance, zero), "int64") * constant(bucket_count, "int64")
        distance = _op.abs(distance)
    else:
        distance = _op.negative(_op.minimum(distance, zero))
    single = bucket_count // 2
    share = _op.cast(_op.maximum(distance, constant(1, "int64")), "float64") / constant(
        float(single), "float64"
    )
    steps = _op.log(share) * constant(
        (bucket_count - single) / math.log(furthest / single), "float64"
    )
    long = _op.cast(steps, "int64") + constant(single, "int64")
    long = _op.minimum(long, constant(bucket_count - 1, "int64"))
    found = _op.where(_op.less(distance, constant(single, "int64")), distance, long)
    return found if offset is None else found + offset


@onnx_op("com.microsoft.GatedRelativePositionBias")
def _gated_relative_position_bias(
    x: RelayExpr, bias: RelayExpr, table: RelayExpr, weight: RelayExpr, shift: RelayExpr,
    factor: RelayExpr, offsets: RelayExpr | None = None, *, num_heads: int, node: OnnxNode,
) -> RelayExpr:  # fmt: skip
    """Biases of positions, opened and closed by the queries."""
    if offsets is not None:
        raise node.unsupported("packed queries")
    q = split_heads(x + bias, num_heads)
    mixed = matmul(q, weight) + shift
    update, reset = _op.split(_op.sigmoid(_op.sum(_op.reshape(mixed, (0, 0, 0, 2, -1)), [4])), 2, 3)
    one, two = scalar_like(1.0, q), scalar_like(2.0, q)
    return (update * (reset * factor - one) + two) * table


# ---- spectra


@onnx_op("com.microsoft.Rfft")
def _rfft(node: OnnxNode) -> RelayExpr:
    _check_spectrum(node)
    length = extent(node[0], -1)
    return _op.stack(list(fourier(node[0], None, length, False, half(length))), -1)


@onnx_op("com.microsoft.Irfft")
def _irfft(node: OnnxNode) -> RelayExpr:
    _check_spectrum(node)
    real, imaginary = parts_of(node[0])
    assert imaginary is not None
    length = 2 * (infer_shape(real)[-1] - 1)
    return fourier(*mirrored(real, imaginary, length), length, True, length)[0]


def _check_spectrum(node: OnnxNode) -> None:
    wanted = {"signal_ndim": 1, "onesided": 1, "normalized": 0}
    for name, value in wanted.items():
        if (found := node.attr(name, value)) != value:
            raise node.unsupported(f"{name} = {found}")


def _complex_product(a: RelayExpr, b: RelayExpr, turned: Callable[..., RelayExpr]) -> RelayExpr:
    (a, b), (c, d) = [_op.split(x, 2, -1) for x in (a, b)]
    d = turned(d)
    return _op.concatenate([a * c - b * d, a * d + b * c], -1)


onnx_ops({
    "com.microsoft.ComplexMul": lambda a, b: _complex_product(a, b, lambda x: x),
    "com.microsoft.ComplexMulConj": lambda a, b: _complex_product(a, b, _op.negative),
})  # fmt: skip


# ---- numbers and windows


@onnx_op("com.microsoft.ConvTransposeWithDynamicPads")
def _conv_transpose_with_pads(node: OnnxNode) -> RelayExpr:
    """A transposed convolution whose padding is an input, which has to be constant."""
    attrs = dict(node.attrs)
    if node.has(2):
        attrs["pads"] = [int(v) for v in node.require_value(2, "the padding")]
    inputs = [node[0], node[1], node[3] if node.has(3) else None]
    return conv_transpose_of(replace(node, inputs=inputs, attrs=attrs))


@onnx_op("com.microsoft.NGramRepeatBlock")
def _ngram_repeat_block(node: OnnxNode) -> RelayExpr:
    """Scores, those of tokens that would repeat a group of tokens lowered to minus infinity."""
    ids, scores, size = node[0], node[1], node.attr("ngram_size")
    length = node.static_shape(0)[1]
    count = length - size + 1
    if count <= 0:
        return scores

    def tokens(begin: int, end: int) -> RelayExpr:
        return _op.strided_slice(ids, [begin], [end], axes=[1])

    last = tokens(size - 1, length)
    low = constant(np.float32(-np.inf), infer_dtype(scores))
    lowered = _op.full(low, infer_shape(last), infer_dtype(scores))
    for i in range(size - 1):
        same = _op.equal(tokens(i, i + count), tokens(count + i, count + i + 1))
        lowered = _op.where(same, lowered, _op.negative(low))
    return _op.scatter_elements(scores, _op.cast(last, "int64"), lowered, 1, "min")
