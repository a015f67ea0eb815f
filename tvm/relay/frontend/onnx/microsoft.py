"""Operators of ONNX Runtime (com.microsoft) that its exporters and optimisers leave in models."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tvm.ir.expr import RelayExpr
from tvm.relay import op as _op
from tvm.relay.frontend.common import constant, infer_dtype, infer_shape, scalar_like

from .math import matmul
from .nn import convolve
from .registry import OnnxNode, onnx_op


@onnx_op("com.microsoft.QuickGelu")
def _quick_gelu(node: OnnxNode) -> RelayExpr:
    x = node[0]
    return x * _op.sigmoid(x * scalar_like(node.attr("alpha", 1.702), x))


@onnx_op("com.microsoft.FusedGemm")
def _fused_gemm(node: OnnxNode) -> RelayExpr:
    a = _op.transpose(node[0], (1, 0)) if node.attr("transA", 0) else node[0]
    b = node[1] if node.attr("transB", 0) else _op.transpose(node[1], (1, 0))
    result = _op.nn.dense(a, b) * scalar_like(node.attr("alpha", 1.0), a)
    if node.has(2):
        result = result + node[2] * scalar_like(node.attr("beta", 1.0), a)
    return _activated(node, result)


@onnx_op("com.microsoft.FusedConv")
def _fused_conv(node: OnnxNode) -> RelayExpr:
    """A convolution, its bias, something added and an activation."""
    result = convolve(node, node[0], node[1])
    result = _op.nn.bias_add(result, node[2]) if node.has(2) else result
    return _activated(node, result + node[3] if node.has(3) else result)


def _activated(node: OnnxNode, x: RelayExpr) -> RelayExpr:
    name, params = node.attr("activation", ""), node.attr("activation_params", [])
    plain = {"": lambda x: x, "Relu": _op.nn.relu, "Sigmoid": _op.sigmoid, "Tanh": _op.tanh}
    if name in plain:
        return plain[name](x)
    if name == "LeakyRelu":
        return _op.nn.leaky_relu(x, params[0] if params else node.attr("activation_alpha", 0.01))
    if name == "Clip" and len(params) == 2:
        return _op.clip(x, params[0], params[1])
    if name == "HardSigmoid" and len(params) == 2:
        scaled = x * scalar_like(params[0], x) + scalar_like(params[1], x)
        return _op.clip(scaled, 0.0, 1.0)
    raise node.unsupported(f"the activation {name!r}")


@onnx_op("com.microsoft.EmbedLayerNormalization")
def _embed_layer_norm(node: OnnxNode) -> list[RelayExpr]:
    """Word, position and segment embeddings, summed and normalised."""
    _, length = node.static_shape(0)
    total = _op.take(node[2], node[0], 0)
    positions = node[8] if node.has(8) else constant(np.arange(length)[None], "int64")
    total = total + _op.take(node[3], positions, 0)
    if node.has(1) and node.has(4):
        total = total + _op.take(node[4], node[1], 0)
    result = _op.nn.layer_norm(
        total, node[5], node[6], axis=-1, epsilon=node.attr("epsilon", 1e-12)
    )
    counts = _op.zeros((node.static_shape(0)[0],), "int32")
    if node.has(7):
        counts = _op.sum(node[7].astype("int32"), [1])
    return [result, counts, total][: node.output_count]


@onnx_op("com.microsoft.SkipSimplifiedLayerNormalization")
def _skip_rms_norm(node: OnnxNode) -> list[RelayExpr]:
    total = node[0] + node[1]
    total = total + node[3] if node.has(3) else total
    mean = _op.mean(total * total, [-1], True)
    scale = _op.rsqrt(mean + scalar_like(node.attr("epsilon", 1e-5), total))
    return [total * scale * node[2], mean, scale, total][: max(node.output_count, 1)]


def _heads(x: RelayExpr, count: int) -> RelayExpr:
    """(batch, length, hidden) as (batch, heads, length, size)."""
    batch, length, hidden = infer_shape(x)
    return _op.transpose(_op.reshape(x, (batch, length, count, hidden // count)), (0, 2, 1, 3))


def _joined(x: RelayExpr) -> RelayExpr:
    batch, heads, length, size = infer_shape(x)
    return _op.reshape(_op.transpose(x, (0, 2, 1, 3)), (batch, length, heads * size))


def _attend(
    node: OnnxNode, q: RelayExpr, k: RelayExpr, v: RelayExpr, masks: list[RelayExpr]
) -> RelayExpr:
    """Attention of heads; masks are added to the scores."""
    size = infer_shape(q)[-1]
    scale = node.attr("scale", 0.0) or 1 / math.sqrt(size)
    scores = matmul(q, _op.transpose(k, (0, 1, 3, 2))) * scalar_like(scale, q)
    for mask in masks:
        scores = scores + mask
    return matmul(_op.nn.softmax(scores, axis=-1), v)


def _causal(rows: int, columns: int, like: RelayExpr) -> RelayExpr:
    """Positions of the future, far below all scores."""
    mask = np.triu(np.full((rows, columns), -3.4e38), columns - rows + 1)
    return constant(mask, infer_dtype(like))


def _key_mask(node: OnnxNode, index: int, columns: int, like: RelayExpr) -> RelayExpr | None:
    """A mask of keys: lengths of the batch's items, or one number a key (0: masked)."""
    if not node.has(index):
        return None
    shape = node.static_shape(index)
    low, zero = scalar_like(node.attr("mask_filter_value", -10000.0), like), scalar_like(0.0, like)
    mask = node[index]
    if len(shape) == 1:
        places = constant(np.arange(columns)[None], node.dtype(index))
        kept = _op.less(places, _op.expand_dims(mask, 1))
    else:
        kept = _op.not_equal(mask, scalar_like(0, mask))
    kept = _op.expand_dims(kept, 1) if len(infer_shape(kept)) == 3 else kept
    while len(infer_shape(kept)) < 4:
        kept = _op.expand_dims(kept, 1)
    return _op.where(kept, zero, low)


@onnx_op("com.microsoft.Attention")
def _attention(node: OnnxNode) -> list[RelayExpr]:
    """Self-attention from one product for queries, keys and values."""
    if node.has(4) or node.attr("do_rotary", 0):
        raise node.unsupported("a past state or rotary embeddings")
    heads = node.attr("num_heads")
    x = matmul(node[0], node[1])
    x = x + node[2] if node.has(2) else x
    hidden = infer_shape(x)[-1]
    sizes = node.attr("qkv_hidden_sizes") or [hidden // 3] * 3
    q, k, v = [
        _heads(part, heads) for part in _op.split(x, tuple(np.cumsum(sizes[:2]).tolist()), 2)
    ]
    length = infer_shape(q)[2]
    masks = [_key_mask(node, 3, length, q)]
    if node.attr("unidirectional", 0):
        masks.append(_causal(length, length, q))
    masks.append(node[5] if node.has(5) else None)
    return [_joined(_attend(node, q, k, v, [m for m in masks if m is not None]))]


@onnx_op("com.microsoft.MultiHeadAttention")
def _multi_head_attention(node: OnnxNode) -> list[RelayExpr]:
    """Attention of projected queries, keys and values."""
    if node.has(6) or node.has(7) or len(node.static_shape(0)) != 3:
        raise node.unsupported("a past state or packed inputs")
    heads, parts = node.attr("num_heads"), [node[0], node[1], node[2]]
    if node.has(3):
        sizes = np.cumsum([infer_shape(part)[-1] for part in parts[:2]]).tolist()
        biases = _op.split(node[3], tuple(sizes), 0)
        parts = [part + bias for part, bias in zip(parts, biases, strict=True)]
    q = _heads(parts[0], heads)
    k, v = [p if len(infer_shape(p)) == 4 else _heads(p, heads) for p in parts[1:]]
    length = infer_shape(k)[2]
    masks: list[Any] = [_key_mask(node, 4, length, q), node[5] if node.has(5) else None]
    if node.attr("unidirectional", 0):
        masks.append(_causal(infer_shape(q)[2], length, q))
    result = _joined(_attend(node, q, k, v, [m for m in masks if m is not None]))
    return [result, k, v][: node.output_count]


@onnx_op("com.microsoft.RotaryEmbedding")
def _rotary_embedding(node: OnnxNode) -> RelayExpr:
    """Pairs of numbers turned by angles that grow with the position."""
    x, shape = node[0], node.static_shape(0)
    half = node.static_shape(2)[1]
    heads = node.attr("num_heads", 0) or (shape[-1] // (2 * half) if len(shape) == 3 else 0)
    by_heads = x if len(shape) == 4 else _heads(x, heads)
    batch, count, length, size = infer_shape(by_heads)
    if 2 * half != size:
        raise node.unsupported("a part of the numbers turned")
    positions = node[1]
    if node.static_shape(1) in ((), (1,)):
        start = _op.reshape(positions, (1, 1))
        positions = _op.broadcast_to(start + constant(np.arange(length)[None], "int64"),
                                     (batch, length))  # fmt: skip
    cosine, sine = [_op.expand_dims(_op.take(node[i], positions, 0), 1) for i in (2, 3)]
    if node.attr("interleaved", 0):
        pairs = _op.reshape(by_heads, (batch, count, length, half, 2))
        a, b = [_op.squeeze(part, [4]) for part in _op.split(pairs, 2, 4)]
        turned = _op.stack([a * cosine - b * sine, a * sine + b * cosine], 4)
        turned = _op.reshape(turned, (batch, count, length, size))
    else:
        a, b = _op.split(by_heads, 2, 3)
        turned = _op.concatenate([a * cosine - b * sine, b * cosine + a * sine], 3)
    return turned if len(shape) == 4 else _joined(turned)
