"""Sequences of different lengths without their padding: the rows of all items in one matrix.

``token_offset`` (batch, length) lists the positions of the rows in the padded batch, those of the
padding behind them.
"""

from __future__ import annotations

import numpy as np

from tvm.ir.expr import RelayExpr
from tvm.relay import op as _op
from tvm.relay.frontend.common import constant, infer_dtype, infer_shape
from tvm.relay.frontend.matmul import matmul

from .attention import (
    attend,
    lowest,
    mask_of,
    split_heads,
    split_qkv,
    with_biases,
)
from .registry import OnnxNode, onnx_op, onnx_ops


def padded(rows: RelayExpr, offsets: RelayExpr, batch: int, length: int) -> RelayExpr:
    """(batch, length, size) of packed rows, zeros where there are none."""
    count, size = infer_shape(rows)
    zero = _op.zeros((1, size), infer_dtype(rows))
    position = _op.argsort(_op.reshape(offsets, (-1,)), dtype="int32")
    position = _op.minimum(position, constant(count, "int32"))
    found = _op.take(_op.concatenate([rows, zero], 0), position, 0)
    return _op.reshape(found, (batch, length, size))


def without_padding(x: RelayExpr, offsets: RelayExpr, count: int) -> RelayExpr:
    """The first ``count`` rows that the offsets name."""
    rows = _op.reshape(x, (-1, infer_shape(x)[-1]))
    return _op.take(rows, _op.strided_slice(_op.reshape(offsets, (-1,)), [0], [count]), 0)


@onnx_op("com.microsoft.RemovePadding")
def _remove_padding(node: OnnxNode) -> list[RelayExpr]:
    """The packed rows, their offsets, the sums of the lengths, and the greatest length."""
    batch, length, _ = node.static_shape(0)
    lengths = _op.cast(node[1], "int32")
    positions = constant(np.arange(length)[None], "int32")
    is_padding = _op.greater_equal(positions, _op.expand_dims(lengths, 1))
    flags = _op.reshape(_op.cast(is_padding, "int32"), (-1,))
    # keys in order of position, the padding's behind all others
    keys = flags * constant(batch * length, "int32") + constant(np.arange(batch * length), "int32")
    offsets = _op.argsort(keys, dtype="int32")
    sums = _op.concatenate([constant([0], "int32"), _op.cumsum(lengths, 0)], 0)
    rows = _op.reshape(node[0], (-1, infer_shape(node[0])[-1]))
    found = node.value(1)
    if found is not None:
        total = _op.strided_slice(offsets, [0], [int(np.sum(found))])
    else:
        end = _op.strided_slice(sums, [batch], [batch + 1])
        total = _op.strided_slice(offsets, constant([0], "int32"), end, constant([1], "int32"))
    result = _op.take(rows, total, 0)
    grid = _op.reshape(offsets, (batch, length))
    return [result, grid, sums, _op.max(lengths, [0], True)][: node.output_count]


@onnx_op("com.microsoft.PackedAttention")
def _packed_attention(node: OnnxNode) -> RelayExpr:
    """Self-attention from one product, of packed rows."""
    x = matmul(node[0], node[1]) + node[2]
    return _attend_packed(node, split_qkv(node, x), 3, node[5] if node.has(5) else None)


@onnx_op("com.microsoft.PackedMultiHeadAttention")
def _packed_multi_head_attention(node: OnnxNode) -> RelayExpr:
    """Attention of packed queries, keys and values, or of all three by heads in one tensor."""
    if node.has(1):
        parts = [node[i] for i in range(3)]
    else:
        rows = node.shape(0)[0]
        parts = [_op.reshape(part, (rows, -1)) for part in _op.split(node[0], 3, 2)]
    if node.has(3):
        parts = with_biases(parts, node[3])
    return _attend_packed(node, parts, 4, node[6] if node.has(6) else None)


def _attend_packed(
    node: OnnxNode, parts: list[RelayExpr], offsets: int, bias: RelayExpr | None
) -> RelayExpr:
    """``offsets`` is the input's index, that of the sums of the lengths follows it."""
    batch, length = node.static_shape(offsets)
    count = infer_shape(parts[0])[0]
    q, k, v = [
        split_heads(padded(part, node[offsets], batch, length), node.attr("num_heads"))
        for part in parts
    ]
    sums = node[offsets + 1]
    lengths = _op.strided_slice(sums, [1], [batch + 1]) - _op.strided_slice(sums, [0], [batch])
    kept = _op.less(
        constant(np.arange(length)[None], infer_dtype(sums)), _op.expand_dims(lengths, 1)
    )
    mask = mask_of(_op.expand_dims(kept, 1, 2), q, lowest(q))
    result = attend(node, q, k, v, [bias, mask])
    return without_padding(result, node[offsets], count)


onnx_ops({
    "com.microsoft.RestorePadding": lambda node: padded(node[0], node[1], *node.static_shape(1)),
})  # fmt: skip
