"""Mixtures of experts of com.microsoft.

Every row goes through every expert, which keeps shapes static; the experts that a row did not
choose have weight zero in the sum.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tvm.ir.expr import RelayExpr
from tvm.relay import op as _op
from tvm.relay.frontend.common import constant, infer_shape, scalar_like
from tvm.relay.frontend.composites import gelu, swish
from tvm.relay.frontend.dynamic_extents import extent, reshaped

from .registry import OnnxNode, onnx_op
from .weight_only_quantized import dequantized, low_bits


@dataclass(frozen=True)
class Layer:
    """A dense layer of each expert: weights (experts, outputs, inputs), biases."""

    weight: RelayExpr
    bias: RelayExpr | None

    def of_rows(self, x: RelayExpr) -> RelayExpr:
        """(experts, rows, outputs), of rows that all experts share: one product."""
        experts, outputs, inputs = infer_shape(self.weight)
        product = _op.nn.dense(x, _op.reshape(self.weight, (experts * outputs, inputs)))
        by_expert = _op.reshape(product, (-1, experts, outputs))
        return self._with_bias(_op.transpose(by_expert, (1, 0, 2)))

    def of_own_rows(self, x: RelayExpr) -> RelayExpr:
        """(experts, rows, outputs), of rows (experts, rows, inputs)."""
        return self._with_bias(_op.nn.batch_matmul(x, self.weight))

    def _with_bias(self, x: RelayExpr) -> RelayExpr:
        return x if self.bias is None else x + _op.expand_dims(self.bias, 1)


@onnx_op("com.microsoft.MoE")
def _experts(node: OnnxNode) -> RelayExpr:
    """Rows, their experts' scores, and up to three layers."""
    layers = [
        Layer(node[i], node[i + 1] if node.has(i + 1) else None) if node.has(i) else None
        for i in (2, 4, 6)
    ]
    return _mixture(
        node, layers, _chosen(node, None, bool(node.attr("normalize_routing_weights", 0)))
    )


@onnx_op("com.microsoft.QMoE")
def _quantized_experts(node: OnnxNode) -> RelayExpr:
    """A mixture whose weights have few bits."""
    if (kind := node.attr("quant_type", "int")) != "int":
        raise node.unsupported(f"weights of the type {kind!r}")
    if node.attr("weights_prepacked", 0) == 1:
        raise node.unsupported("weights in the order of one execution provider")
    layers = [_unpacked(node, i) if node.has(2 + 3 * i) else None for i in range(3)]
    given = node[14] if node.has(14) else None
    is_normal = given is None or bool(node.attr("normalize_routing_weights", 0))
    return _mixture(node, layers, _chosen(node, given, is_normal))


def _unpacked(node: OnnxNode, index: int) -> Layer:
    """The layer ``index`` in floating point."""
    first = 2 + 3 * index
    bits = node.attr(f"fc{index + 1}_expert_weight_bits", node.attr("expert_weight_bits", 4))
    codes = low_bits(node.require_value(first, "the weights"), bits)
    scales = node.require_value(first + 1, "the scales")
    zeros = None
    if node.has(11 + index):
        packed = node.require_value(11 + index, "the zero points")
        found = low_bits(packed, bits)
        zeros = found[..., : scales.shape[-1]]
    weight = constant(dequantized(codes, scales, zeros, bits), node.dtype(0))
    return Layer(weight, node[first + 2] if node.has(first + 2) else None)


def _mixture(node: OnnxNode, layers: list[Layer | None], shares: RelayExpr) -> RelayExpr:
    first, second, third = layers
    if node.attr("use_sparse_mixer", 0):
        raise node.unsupported("the choice of experts by a sparse mixer")
    if first is None or second is None:
        raise node.unsupported("experts without two layers")
    x = node[0]
    rows = _op.reshape(x, (-1, infer_shape(x)[-1]))
    inner = _activated(node, first.of_rows(rows), third.of_rows(rows) if third else None)
    outputs = second.of_own_rows(inner)
    by_expert = _op.expand_dims(_op.transpose(shares, (1, 0)), 2)
    leading = [extent(x, axis) for axis in range(len(infer_shape(x)) - 1)]
    return reshaped(_op.sum(outputs * by_expert, [0]), [*leading, infer_shape(x)[-1]])


def _chosen(node: OnnxNode, weights: RelayExpr | None, is_normal: bool) -> RelayExpr:
    """(rows, experts): the part that each expert has in a row's result, adding up to one or not."""
    scores = node[1]
    experts = infer_shape(scores)[1]
    chosen: Any = _op.topk(scores, node.attr("k", 1), 1, "indices", False, "int32")
    is_chosen = _op.equal(_op.expand_dims(chosen, 2), constant([[[*range(experts)]]], "int32"))
    kept = _op.cast(_op.any(is_chosen, [1]), "bool")
    shares = _op.nn.softmax(scores, axis=-1) if weights is None else weights
    shares = _op.where(kept, shares, _op.zeros_like(shares))
    if is_normal:
        shares = shares / _op.sum(shares, [1], True)
    return shares


def _activated(node: OnnxNode, x: RelayExpr, other: RelayExpr | None) -> RelayExpr:
    kind = node.attr("activation_type", "relu")
    if kind == "swiglu":
        return _gated_swish(node, *_halves(node, x, other))
    functions: dict[str, Callable[[RelayExpr], RelayExpr]] = {
        "relu": _op.nn.relu,
        "gelu": lambda x: gelu(x, "tanh"),
        "silu": swish,
        "identity": lambda x: x,
    }
    if kind not in functions:
        raise node.unsupported(f"the activation {kind!r}")
    result = functions[kind](x)
    return result if other is None else result * other


def _halves(node: OnnxNode, x: RelayExpr, other: RelayExpr | None) -> tuple[RelayExpr, RelayExpr]:
    """What is gated and the gate: of two layers, alternating in one or one behind the other."""
    fusion = node.attr("swiglu_fusion", 0)
    if fusion == 0 and other is not None:
        return x, other
    if fusion not in (1, 2) or other is not None:
        raise node.unsupported("swiglu without a gate")
    if fusion == 1:
        left, right = _op.split(_op.reshape(x, (0, 0, -1, 2)), 2, 3)
        return _op.squeeze(left, [3]), _op.squeeze(right, [3])
    left, right = _op.split(x, 2, 2)
    return left, right


def _gated_swish(node: OnnxNode, x: RelayExpr, linear: RelayExpr) -> RelayExpr:
    limit = node.attr("swiglu_limit", math.inf)
    if math.isfinite(limit):
        x = _op.minimum(x, scalar_like(limit, x))
        linear = _op.clip(linear, -limit, limit)
    gated = swish(x, node.attr("activation_alpha", 1.0))
    return gated * (linear + scalar_like(node.attr("activation_beta", 0.0), x))
