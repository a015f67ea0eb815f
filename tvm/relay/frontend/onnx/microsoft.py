"""Operators of ONNX Runtime (com.microsoft) that its exporters and optimisers leave in models."""

from __future__ import annotations

import numpy as np

from tvm.ir.expr import RelayExpr
from tvm.relay import op as _op
from tvm.relay.frontend.common import constant, scalar_like

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
