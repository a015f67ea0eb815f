"""Determinants and inverses of matrices, by LU factors."""

from __future__ import annotations

from tvm.ir.expr import RelayExpr
from tvm.relay import op as _op
from tvm.relay.frontend.common import infer_dtype, infer_shape
from tvm.relay.frontend.dynamic_extents import extent, reshaped
from tvm.relay.frontend.linalg import determinant, inverse

from .registry import OnnxNode, onnx_op


def _wide(x: RelayExpr) -> RelayExpr:
    """A batch of matrices of a type that has factors."""
    size = infer_shape(x)[-1]
    flat = _op.reshape(x, (-1, size, size))
    return flat if infer_dtype(x) == "float64" else _op.cast(flat, "float32")


@onnx_op("Det")
def _det(node: OnnxNode) -> RelayExpr:
    if not isinstance(node.shape(0)[-1], int):
        node.static_shape(0)
    factors, pivots, _ = _op.linalg.lu_factor(_wide(node[0]))
    found = _op.cast(determinant(factors, pivots), node.dtype(0))
    return reshaped(found, [extent(node[0], axis) for axis in range(len(node.shape(0)) - 2)])


@onnx_op("com.microsoft.Inverse")
def _inverse(node: OnnxNode) -> RelayExpr:
    found = _op.cast(inverse(_wide(node[0])), node.dtype(0))
    return _op.reshape(found, node.static_shape(0))
