"""PyTorch's fused attention operators, written out."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tvm.ir.expr import RelayExpr
from tvm.relay import op as _op
from tvm.relay.frontend.common import constant, infer_dtype, infer_shape, is_static, scalar_like
from tvm.relay.frontend.composites import gelu

from .dynamic_shapes import is_dynamic, reshaped, size_of, sizes_of
from .products import linear, matrix_product
from .random import dropout
from .registry import as_dtype, as_number, torch_op


@torch_op("scaled_dot_product_attention")
def attention(
    query: RelayExpr, key: RelayExpr, value: RelayExpr, mask: Any = None, rate: Any = 0.0,
    is_causal: bool = False, scale: Any = None, enable_gqa: bool = False,
) -> RelayExpr:  # fmt: skip
    """``softmax(Q K^T * scale + mask) V``; a bool mask keeps where it is true."""
    key, value = _for_all_heads(query, key), _for_all_heads(query, value)
    factor = as_number(scale) or 1 / math.sqrt(infer_shape(query)[-1])
    rank = len(infer_shape(key))
    axes = [*range(rank - 2), rank - 1, rank - 2]
    scores = matrix_product(query, _op.transpose(key, axes)) * scalar_like(factor, query)
    if is_causal:
        mask = _causal_mask(scores)
    if mask is not None:
        scores = _masked(scores, mask)
    weights = dropout(_op.nn.softmax(scores, axis=-1), rate, True)
    return matrix_product(weights, value)


def _for_all_heads(query: RelayExpr, x: RelayExpr) -> RelayExpr:
    """Keys or values that groups of heads share, once for each head."""
    heads = [infer_shape(t)[-3] if len(infer_shape(t)) > 2 else 1 for t in (query, x)]
    if not is_static(heads) or 1 in heads or heads[0] == heads[1]:
        return x
    return _op.repeat(x, heads[0] // heads[1], -3)


def _causal_mask(scores: RelayExpr) -> RelayExpr:
    """Each row sees the columns up to its own."""
    if not is_dynamic(scores):
        rows, columns = infer_shape(scores)[-2:]
        return constant(np.tril(np.ones((rows, columns), bool)))
    rows, columns = [
        _op.arange(as_dtype(0, "int64"), as_dtype(size_of(scores, axis), "int64"), dtype="int64")
        for axis in (-2, -1)
    ]  # fmt: skip
    return _op.greater_equal(_op.expand_dims(rows, 1), _op.expand_dims(columns, 0))


def _masked(scores: RelayExpr, mask: RelayExpr) -> RelayExpr:
    if infer_dtype(mask) == "bool":
        return _op.where(mask, scores, scalar_like(float("-inf"), scores))
    return scores + as_dtype(mask, infer_dtype(scores))


@torch_op("_scaled_dot_product_flash_attention_for_cpu")
def _flash_attention(
    query: RelayExpr, key: RelayExpr, value: RelayExpr, rate: Any = 0.0, is_causal: bool = False,
    mask: Any = None, scale: Any = None,
) -> list[Any]:  # fmt: skip
    return [attention(query, key, value, mask, rate, is_causal, scale), None]


@torch_op("_native_multi_head_attention")
def _native_multi_head_attention(
    query: RelayExpr, key: RelayExpr, value: RelayExpr, width: int, heads: int,
    in_weight: RelayExpr, in_bias: RelayExpr, out_weight: RelayExpr, out_bias: RelayExpr,
    mask: Any = None, need_weights: bool = True, average: bool = True, mask_type: Any = None,
) -> list[Any]:  # fmt: skip
    """Projection of the three inputs, attention by heads, output projection."""
    matrices, biases = _op.split(in_weight, 3, 0), _op.split(in_bias, 3, 0)
    q, k, v = [
        _split_heads(linear(x, matrices[i], biases[i]), heads)
        for i, x in enumerate((query, key, value))
    ]
    if mask is not None or need_weights:
        weights = _weights(q, k, mask, mask_type)
        found = matrix_product(weights, v)
    else:
        weights, found = None, attention(q, k, v)
    joined = _op.transpose(found, (0, 2, 1, 3))
    merged = reshaped(joined, [*sizes_of(query)[:2], width])
    if weights is not None and average:
        weights = _op.mean(weights, 1)
    return [linear(merged, out_weight, out_bias), weights if need_weights else None]


def _weights(query: RelayExpr, key: RelayExpr, mask: Any, mask_type: Any) -> RelayExpr:
    """The softmax of the scores; the mask is true, or not zero, at positions to leave out."""
    factor = scalar_like(1 / math.sqrt(infer_shape(query)[-1]), query)
    scores = matrix_product(query, _op.transpose(key, (0, 1, 3, 2))) * factor
    if mask is not None:
        absent = as_dtype(mask, "bool")
        if mask_type == _KEY_PADDING:
            absent = _op.expand_dims(_op.expand_dims(absent, 1), 1)
        scores = _op.where(absent, scalar_like(float("-inf"), scores), scores)
    return _op.nn.softmax(scores, axis=-1)


# torch's kinds of masks: 0 has rows and columns, this one columns of each sample, 2 all axes
_KEY_PADDING = 1


def _split_heads(x: RelayExpr, heads: int) -> RelayExpr:
    batch, length, width = sizes_of(x)
    return _op.transpose(reshaped(x, [batch, length, heads, width // heads]), (0, 2, 1, 3))


@torch_op("_transformer_encoder_layer_fwd")
def _transformer_encoder_layer(
    x: RelayExpr, width: int, heads: int, in_weight: RelayExpr, in_bias: RelayExpr,
    out_weight: RelayExpr, out_bias: RelayExpr, use_gelu: bool, norm_first: bool, eps: float,
    scale1: RelayExpr, shift1: RelayExpr, scale2: RelayExpr, shift2: RelayExpr,
    weight1: RelayExpr, bias1: RelayExpr, weight2: RelayExpr, bias2: RelayExpr,
    mask: Any = None, mask_type: Any = None,
) -> RelayExpr:  # fmt: skip
    """Self-attention and feed-forward with residuals, norms before or after each."""

    def attend(y: RelayExpr) -> RelayExpr:
        result: list[RelayExpr] = _native_multi_head_attention(
            y, y, y, width, heads, in_weight, in_bias, out_weight, out_bias, mask, False,
            mask_type=mask_type,
        )  # fmt: skip
        return result[0]

    def feed_forward(y: RelayExpr) -> RelayExpr:
        hidden = linear(y, weight1, bias1)
        return linear(gelu(hidden) if use_gelu else _op.nn.relu(hidden), weight2, bias2)

    def norm(y: RelayExpr, scale: RelayExpr, shift: RelayExpr) -> RelayExpr:
        return _op.nn.layer_norm(y, scale, shift, axis=-1, epsilon=eps)

    if norm_first:
        x = x + attend(norm(x, scale1, shift1))
        return x + feed_forward(norm(x, scale2, shift2))
    x = norm(x + attend(x), scale1, shift1)
    return norm(x + feed_forward(x), scale2, shift2)
