"""Operators of ONNX Runtime (com.microsoft) that its exporters and optimisers leave in models."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import reduce

from tvm.ir.expr import RelayExpr
from tvm.relay import op as _op
from tvm.relay.frontend.common import constant, scalar_like
from tvm.relay.frontend.composites import added, gelu, hard_sigmoid, swish
from tvm.relay.frontend.dynamic_extents import broadcast, extent, iota
from tvm.relay.frontend.matmul import matmul

from .math import fused_matmul, gemm
from .nn import biased_conv, channels_last
from .pooling import pool_of
from .registry import OnnxNode, onnx_op, onnx_ops

onnx_ops({
    "com.microsoft.FusedGemm": lambda node: _activated(node, gemm(node)),
    "com.microsoft.FusedMatMulActivation": lambda node: _activated(node, fused_matmul(node)),
    "com.microsoft.FusedConv": lambda node: _activated(node, _with_residual(node, biased_conv(node))),
    "com.microsoft.NhwcFusedConv com.microsoft.NhwcConv": lambda node: _activated(
        node, _with_residual(node, channels_last(node, biased_conv))
    ),
    "com.microsoft.NhwcMaxPool": lambda node: channels_last(
        replace(node, op_type="MaxPool"), pool_of
    ),
    "com.microsoft.BiasAdd": lambda x, bias, skip: x + bias + skip,
    "com.microsoft.GatedAdd": lambda x, other, gate: x + other * gate,
    "com.microsoft.GemmFastGelu": lambda a, b, bias=None: gelu(added(matmul(a, b), bias), "tanh"),
    "com.microsoft.BiasSplitGelu": lambda x, bias: _split_gelu(*_op.split(x + bias, 2, 2)),
    "com.microsoft.ExpandDims": lambda node: _op.expand_dims(
        node[0], int(node.require_scalar(1, "the axis"))
    ),
})  # fmt: skip


def _split_gelu(left: RelayExpr, right: RelayExpr) -> RelayExpr:
    return left * gelu(right)


def _with_residual(node: OnnxNode, x: RelayExpr) -> RelayExpr:
    """A convolution and what may be added to it."""
    return x + node[3] if node.has(3) else x


def _activated(node: OnnxNode, x: RelayExpr) -> RelayExpr:
    name, params = node.attr("activation", ""), node.attr("activation_params", [])
    if name == "LeakyRelu":
        params = params[:1] or [node.attr("activation_alpha", 0.01)]
    function, count = _ACTIVATIONS.get(name, (None, 0))
    if function is None or (count and len(params) != count):
        raise node.unsupported(f"the activation {name!r}")
    return function(x, *params[:count])


# by name, with how many parameters each takes
_ACTIVATIONS: dict[str, tuple[Callable[..., RelayExpr], int]] = {
    "": (lambda x: x, 0), "Relu": (_op.nn.relu, 0), "Sigmoid": (_op.sigmoid, 0),
    "Tanh": (_op.tanh, 0), "LeakyRelu": (_op.nn.leaky_relu, 1), "Clip": (_op.clip, 2),
    "HardSigmoid": (hard_sigmoid, 2),
}  # fmt: skip


def _embedded(
    node: OnnxNode, positions: RelayExpr, rows: Callable[[int, RelayExpr], RelayExpr]
) -> RelayExpr:
    """The sum of word, position and segment embeddings, which are the rows of inputs 2 to 4."""
    total = rows(2, node[0]) + rows(3, positions)
    return total + rows(4, node[1]) if node.has(1) and node.has(4) else total


@onnx_op("com.microsoft.EmbedLayerNormalization")
def _embed_layer_norm(node: OnnxNode) -> list[RelayExpr]:
    """Word, position and segment embeddings, summed and normalised."""
    positions = node[8] if node.has(8) else _positions(node)
    total = _embedded(node, positions, lambda i, indices: _op.take(node[i], indices, 0))
    epsilon = node.attr("epsilon", 1e-12)
    result = _op.nn.layer_norm(total, node[5], node[6], axis=-1, epsilon=epsilon)
    return [result, _word_counts(node, 7), total][: node.output_count]


@onnx_op("com.microsoft.QEmbedLayerNormalization")
def _quantized_embed_layer_norm(node: OnnxNode) -> list[RelayExpr]:
    """The same with tables, weight and bias in eight bits: their scales are six inputs behind
    them, their zero points eleven."""

    def real(x: RelayExpr, index: int) -> RelayExpr:
        moved = _op.cast(x, "int32") - _op.cast(node[index + 11], "int32")
        return _op.cast(moved, node.dtype(index + 6)) * node[index + 6]

    total = _embedded(
        node, _positions(node), lambda i, indices: real(_op.take(node[i], indices, 0), i)
    )
    epsilon = node.attr("epsilon", 1e-12)
    weight, bias = real(node[5], 5), real(node[6], 6)
    result = _op.nn.layer_norm(total, weight, bias, axis=-1, epsilon=epsilon)
    return [result, _word_counts(node, 7)][: node.output_count]


def _positions(node: OnnxNode) -> RelayExpr:
    """The positions of the words of input 0, (1, length)."""
    return _op.expand_dims(iota(extent(node[0], 1)), 0)


def _word_counts(node: OnnxNode, mask: int) -> RelayExpr:
    """How many words of each item the mask, if there is one, lets through."""
    if node.has(mask):
        return _op.sum(node[mask].astype("int32"), [1])
    return broadcast(constant([0], "int32"), [extent(node[0], 0)])


@onnx_op("com.microsoft.SkipSimplifiedLayerNormalization")
def _skip_rms_norm(
    x: RelayExpr, skip: RelayExpr, gamma: RelayExpr, bias: RelayExpr | None = None,
    epsilon: float = 1e-5,
) -> list[RelayExpr]:  # fmt: skip
    total = added(x + skip, bias)
    mean = _op.mean(total * total, [-1], True)
    scale = _op.rsqrt(mean + scalar_like(epsilon, total))
    return [total * scale * gamma, mean, scale, total]


@onnx_op("com.microsoft.GroupNorm", "com.microsoft.SkipGroupNorm")
def _group_norm(node: OnnxNode) -> list[RelayExpr]:
    """Normalisation of groups of channels, which are last unless the node says otherwise."""
    x, is_last = node[0], bool(node.attr("channels_last", 1))
    if node.op_type == "SkipGroupNorm":
        skip = node[3]
        if len(node.shape(3)) == 2:
            skip = _op.expand_dims(skip, 1 if is_last else 2, 2)
        x = x + skip
        if node.has(4):
            x = x + (node[4] if is_last else _op.expand_dims(node[4], 1, 2))
    first = _op.transpose(x, (0, 3, 1, 2)) if is_last else x
    normal = _op.nn.group_norm(
        first, node[1], node[2], node.attr("groups"), 1, node.attr("epsilon", 1e-5)
    )
    if node.attr("activation", 0):
        normal = swish(normal)
    result = _op.transpose(normal, (0, 2, 3, 1)) if is_last else normal
    return [result, x][: node.output_count]


@onnx_op("com.microsoft.CDist")
def _cdist(a: RelayExpr, b: RelayExpr, metric: str = "sqeuclidean", *, node: OnnxNode) -> RelayExpr:
    """Distances of all rows of one matrix to all of another."""
    if metric not in ("euclidean", "sqeuclidean"):
        raise node.unsupported(f"the metric {metric!r}")
    gaps = _op.expand_dims(a, 1) - _op.expand_dims(b, 0)
    squares = _op.sum(gaps * gaps, [2])
    return _op.sqrt(squares) if metric == "euclidean" else squares


@onnx_op("com.microsoft.IsAllFinite")
def _is_all_finite(
    *inputs: RelayExpr, isnan_only: bool = False, isinf_only: bool = False
) -> RelayExpr:
    tests = [_op.isnan, _op.isinf]
    if isnan_only != isinf_only:
        tests = tests[:1] if isnan_only else tests[1:]
    wrong = [_op.any(test(x)) for x in inputs for test in tests]
    return _op.logical_not(reduce(_op.logical_or, wrong))
