"""Determinants and inverses of matrices, by LU factors."""

from __future__ import annotations

from tvm.ir.expr import RelayExpr
from tvm.relay import op as _op
from tvm.relay.frontend.common import infer_dtype, infer_shape
from tvm.relay.frontend.dynamic_extents import extent, reshaped
from tvm.relay.frontend.linalg import determinant, inverse

from .registry import OnnxNode, onnx_op, onnx_ops


def _wide(x: RelayExpr) -> RelayExpr:
    """A batch of matrices of a type that has factors."""
    size = infer_shape(x)[-1]
    flat = _op.reshape(x, (-1, size, size))
    return flat if infer_dtype(x) == "float64" else _op.cast(flat, "float32")


@onnx_op("Det")
def _det(x: RelayExpr, *, node: OnnxNode) -> RelayExpr:
    if not isinstance(infer_shape(x)[-1], int):
        node.static_shape(0)
    factors, pivots, _ = _op.linalg.lu_factor(_wide(x))
    found = _op.cast(determinant(factors, pivots), infer_dtype(x))
    return reshaped(found, [extent(x, axis) for axis in range(len(infer_shape(x)) - 2)])


onnx_ops({
    "com.microsoft.Inverse": lambda x, node: _op.reshape(
        _op.cast(inverse(_wide(x)), infer_dtype(x)), node.static_shape(0)
    ),
})  # fmt: skip
