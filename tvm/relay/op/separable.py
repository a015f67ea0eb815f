"""Gradients of operators that mix the elements along each axis by a matrix of its own.

    result[..., j, ...] = sum over i of matrix[i, j] * data[..., i, ...]

The operator of one axis, called on the identity, tells that axis' matrix; the gradient goes back
through its transpose.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tvm.error import OpNotImplemented
from tvm.ir.expr import RelayExpr
from tvm.relay.analysis.infer import tensor_type_of
from tvm.relay.expr import Call, const

from .known_shapes import known_shape
from .registry import Gradient, ops

# the matrix of one axis, told by the identity (1, n, n) and which of the spatial axes it is
AxisMatrix = Callable[[Call, RelayExpr, int], RelayExpr]


def identity_matrix(extent: int, dtype: str) -> RelayExpr:
    return const(np.eye(extent)[None], dtype)


def through(grad: RelayExpr, matrix: RelayExpr, axis: int) -> RelayExpr:
    """The gradient along one axis, of `matrix` (1, extent of the data, extent of the result)."""
    _, have, want = known_shape(matrix, "a matrix")
    shape = known_shape(grad, "a gradient")
    rank = len(shape)
    to_last = (*range(axis), *range(axis + 1, rank), axis)
    back = (*range(axis), rank - 1, *range(axis, rank - 1))
    rows = ops.reshape(ops.transpose(grad, axes=to_last), newshape=(-1, want))
    found = ops.nn.dense(rows, ops.reshape(matrix, newshape=(have, want)))
    rest = (*shape[:axis], *shape[axis + 1 :])
    return ops.transpose(ops.reshape(found, newshape=(*rest, have)), axes=back)


def _axes_of(call: Call) -> tuple[int, ...]:
    layout = call.attrs.layout
    if not layout.isupper():
        raise OpNotImplemented(
            f"the gradient of {call.operator.name} requires an unblocked layout, got {layout}"
        )
    return tuple([layout.index(axis) for axis in "DHW" if axis in layout])


def separable_gradient(matrix_of: AxisMatrix) -> Gradient:
    """The gradient back through the matrix of each axis in turn."""

    def gradient(call: Call, grad: RelayExpr) -> list[RelayExpr]:
        data = call.args[0]
        shape, dtype = known_shape(data, call.operator.name), tensor_type_of(data).dtype
        grad = ops.cast_like(grad, data)
        for which, axis in enumerate(_axes_of(call)):
            matrix = matrix_of(call, identity_matrix(shape[axis], dtype), which)
            grad = through(grad, matrix, axis)
        return [grad]

    return gradient
