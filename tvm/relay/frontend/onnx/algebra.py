"""Determinants and inverses of small matrices, by elimination."""

from __future__ import annotations

import numpy as np

from tvm.ir.expr import RelayExpr
from tvm.relay import op as _op
from tvm.relay.frontend.common import constant, infer_dtype, infer_shape, scalar_like
from tvm.relay.frontend.extents import extent, reshaped

from .registry import OnnxNode, onnx_op


@onnx_op("Det")
def _det(node: OnnxNode) -> RelayExpr:
    """Determinants by elimination: the largest element of a column is its pivot."""
    size = node.shape(0)[-1]
    if not isinstance(size, int):
        node.static_shape(0)
    rest = _op.reshape(node[0], (-1, size, size))
    one, zero = scalar_like(1.0, rest), scalar_like(0.0, rest)
    result: RelayExpr = one
    for step in range(size):
        left = size - step
        column = _op.strided_slice(rest, [0, 0], [left, 1], axes=[1, 2])
        at = _op.argmax(_op.abs(_op.squeeze(column, [2])), axis=1)
        chosen = _op.expand_dims(_op.one_hot(at, one, zero, left, -1, node.dtype(0)), 2)
        row = _op.sum(chosen * rest, [1], True)
        first = _op.strided_slice(rest, [0, 0], [1, left], axes=[1, 2])
        swapped = rest + chosen * (first - row)
        pivot = _op.strided_slice(row, [0, 0], [1, 1], axes=[1, 2])
        sign = _op.where(_op.equal(at, scalar_like(0, at)), one, _op.negative(one))
        result = result * _op.squeeze(pivot, [1, 2]) * sign
        if left == 1:
            break
        below = _op.strided_slice(swapped, [1, 0], [left, 1], axes=[1, 2])
        inner = _op.strided_slice(swapped, [1, 1], [left, left], axes=[1, 2])
        tail = _op.strided_slice(row, [0, 1], [1, left], axes=[1, 2])
        safe = _op.where(_op.equal(pivot, zero), one, pivot)
        rest = inner - below / safe * tail
    return reshaped(result, [extent(node[0], axis) for axis in range(len(node.shape(0)) - 2)])


@onnx_op("com.microsoft.Inverse")
def _inverse(node: OnnxNode) -> RelayExpr:
    shape = node.static_shape(0)
    size = shape[-1]
    return _op.reshape(inverse(_op.reshape(node[0], (-1, size, size))), shape)


def inverse(x: RelayExpr) -> RelayExpr:
    """The inverses of (batch, n, n) by elimination: the largest element of a column below those
    used already is its pivot."""
    batch, size, _ = infer_shape(x)
    one, zero = scalar_like(1.0, x), scalar_like(0.0, x)
    unit = constant(np.broadcast_to(np.eye(size), (batch, size, size)), infer_dtype(x))
    rest: RelayExpr = _op.concatenate([x, unit], 2)
    for step in range(size):
        column = _op.strided_slice(rest, [step], [step + 1], axes=[2])
        used = constant(np.where(np.arange(size) < step, -1.0, 0.0)[None], infer_dtype(x))
        size_of = _op.abs(_op.squeeze(column, [2]))
        at = _op.argmax(_op.where(_op.less(used, zero), used, size_of), axis=1)
        chosen = _op.expand_dims(_op.one_hot(at, one, zero, size, -1, infer_dtype(x)), 2)
        own = constant((np.arange(size) == step)[None, :, None], infer_dtype(x))
        row = _op.sum(chosen * rest, [1], True)
        current = _op.strided_slice(rest, [step], [step + 1], axes=[1])
        swapped = rest + chosen * (current - row)
        row = row / _op.strided_slice(row, [step], [step + 1], axes=[2])
        factors = _op.strided_slice(swapped, [step], [step + 1], axes=[2])
        rest = (swapped - factors * row) * (one - own) + row * own
    return _op.strided_slice(rest, [size], [2 * size], axes=[2])
