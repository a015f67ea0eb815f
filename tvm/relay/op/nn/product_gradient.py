"""Gradients of products of matrices: products in turn."""

from __future__ import annotations

from collections.abc import Callable

from tvm.ir.expr import RelayExpr
from tvm.relay.analysis.infer import tensor_type_of
from tvm.relay.expr import Call

from ..known_shapes import shape_of
from ..registry import Gradient, ops


def _transposed(matrix: RelayExpr) -> RelayExpr:
    rank = len(shape_of(matrix))
    return ops.transpose(matrix, axes=(*range(rank - 2), rank - 1, rank - 2))


def product_gradient(
    product: Callable[[RelayExpr, RelayExpr], RelayExpr],
) -> Gradient:
    """Of a product of matrices, transposed or not; batches that were broadcast are summed."""

    def gradient(call: Call, grad: RelayExpr) -> list[RelayExpr]:
        a, b = call.args
        attrs = call.attrs
        left = _transposed(a) if attrs.transpose_a else a
        right = _transposed(b) if attrs.transpose_b else b
        to_left = product(grad, _transposed(right))
        to_right = product(_transposed(left), grad)
        to_a = _transposed(to_left) if attrs.transpose_a else to_left
        to_b = _transposed(to_right) if attrs.transpose_b else to_right
        return [ops.collapse_sum_like(to_a, a), ops.collapse_sum_like(to_b, b)]

    return gradient


def _in_rows(x: RelayExpr) -> RelayExpr:
    """Of more axes than two: the leading ones as one."""
    for _ in range(len(tensor_type_of(x).shape) - 2):
        x = ops.reshape(x, newshape=(-3, -2))
    return x


def dense_gradient(call: Call, grad: RelayExpr) -> list[RelayExpr]:
    data, weight = call.args
    rows, given = _in_rows(data), _in_rows(grad)
    return [
        ops.nn.dense(grad, _transposed(weight)),
        ops.nn.dense(_transposed(given), _transposed(rows)),
    ]
