"""Fused and auxiliary operators of com.microsoft: biases, positions, spectra, small algebra."""

from __future__ import annotations

import math
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
from .reduction import over_axes_from
from .registry import OnnxNode, onnx_op
from .signals import fourier, half, mirrored, parts_of


@onnx_op("com.microsoft.BiasSoftmax")
def _bias_softmax(node: OnnxNode) -> RelayExpr:
    return over_axes_from(node[0] + node[1], node.attr("axis", -1), _op.nn.softmax)


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


@onnx_op("com.microsoft.TorchEmbedding")
def _torch_embedding(node: OnnxNode) -> RelayExpr:
    return _op.take(node[0], node[1], 0)


@onnx_op("com.microsoft.ScaledSiLU")
def _scaled_silu(node: OnnxNode) -> RelayExpr:
    x = node[0]
    alpha = node.attr("alpha", 1.0)
    return swish(x * _op.cast(node[1], node.dtype(0)) if node.has(1) else scaled(x, alpha))


@onnx_op("com.microsoft.GatedRMSNorm")
def _gated_rms_norm(node: OnnxNode) -> RelayExpr:
    """Groups of the last axis by their root mean square, times an activated gate; in float32."""
    rank, size = len(node.shape(0)), node.static_shape(1)[0]
    x, scale, gate = [_op.cast(node[i], "float32") for i in range(3)]
    grouped = _op.reshape(x, (*[0] * (rank - 1), -1, size))
    normal = rms_norm(grouped, [-1], node.attr("epsilon", 1e-6), scale)
    kind = node.attr("activation", "silu")
    if kind not in ("silu", "swish", "sigmoid"):
        raise node.unsupported(f"the activation {kind!r}")
    open_part = _op.sigmoid(gate) if kind == "sigmoid" else swish(gate)
    return _op.cast(_op.reshape(normal, (*[0] * (rank - 1), -1)) * open_part, node.dtype(0))


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
def _gated_relative_position_bias(node: OnnxNode) -> RelayExpr:
    """Biases of positions, opened and closed by the queries."""
    if node.has(6):
        raise node.unsupported("packed queries")
    q = split_heads(node[0] + node[1], node.attr("num_heads"))
    mixed = matmul(q, node[3]) + node[4]
    summed = _op.sum(_op.reshape(mixed, (0, 0, 0, 2, -1)), [4])
    update, reset = _op.split(_op.sigmoid(summed), 2, 3)
    one, two = scalar_like(1.0, q), scalar_like(2.0, q)
    return (update * (reset * node[5] - one) + two) * node[2]


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


@onnx_op("com.microsoft.ComplexMul", "com.microsoft.ComplexMulConj")
def _complex_mul(node: OnnxNode) -> RelayExpr:
    (a, b), (c, d) = [_op.split(node[i], 2, -1) for i in range(2)]
    if node.op_type == "ComplexMulConj":
        d = _op.negative(d)
    return _op.concatenate([a * c - b * d, a * d + b * c], -1)


# ---- numbers and windows


@onnx_op("com.microsoft.ReduceSumInteger")
def _reduce_sum_integer(node: OnnxNode) -> RelayExpr:
    wide = "uint32" if node.dtype(0).startswith("u") else "int32"
    axes, keep = node.attr("axes"), bool(node.attr("keepdims", 1))
    return _op.sum(_op.cast(node[0], wide), list(axes) if axes else None, keep)


@onnx_op("com.microsoft.MatMulInteger16")
def _matmul_integer16(node: OnnxNode) -> RelayExpr:
    return matmul(_op.cast(node[0], "int32"), _op.cast(node[1], "int32"))


@onnx_op("com.microsoft.UnfoldTensor")
def _unfold_tensor(node: OnnxNode) -> RelayExpr:
    """All slices of a size along an axis; their elements become the last axis."""
    shape, size = node.static_shape(0), node.attr("size")
    return windows_along(node[0], node.attr("dim", -1) % len(shape), size, node.attr("step", 1))


@onnx_op("com.microsoft.CropAndResize")
def _crop_and_resize(node: OnnxNode) -> RelayExpr:
    size = [int(v) for v in node.require_value(3, "the size of crops")]
    modes = {"bilinear": "bilinear", "nearest": "nearest_neighbor"}
    return _op.image.crop_and_resize(
        node[0], node[1], _op.cast(node[2], "int32"), size, "NCHW",
        modes[node.attr("mode", "bilinear")], node.attr("extrapolation_value", 0.0),
    )  # fmt: skip


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
