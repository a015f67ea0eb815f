"""Gradients of operators that move elements to positions that their own call on the elements' numbers tells."""

from __future__ import annotations

import numpy as np

from tvm.ir.expr import RelayExpr
from tvm.relay.analysis.infer import tensor_type_of
from tvm.relay.expr import Call, const

from .known_shapes import known_shape
from .registry import ops


def element_numbers(shape: tuple[int, ...]) -> RelayExpr:
    """The elements' positions in row-major order."""
    return const(np.arange(int(np.prod(shape)), dtype="int64").reshape(shape))


def added_elements(grad: RelayExpr, positions: RelayExpr, shape: tuple[int, ...]) -> RelayExpr:
    """Sums of the elements of a gradient that stand for each position of a tensor of this shape."""
    total = _added(grad, positions, int(np.prod(shape)))
    return ops.reshape(total, newshape=shape, allowzero=True)


def _added(grad: RelayExpr, positions: RelayExpr, count: int) -> RelayExpr:
    none = ops.zeros(shape=(count,), dtype=tensor_type_of(grad).dtype)
    return ops.scatter_elements(none, _flat(positions), _flat(grad), axis=0, reduction="add")


def _flat(expr: RelayExpr) -> RelayExpr:
    return ops.reshape(expr, newshape=(-1,))


def scattered_back(data: RelayExpr, order: RelayExpr, grad: RelayExpr, axis: int) -> RelayExpr:
    """The gradient of data whose elements were put in an order along an axis."""
    none = ops.zeros_like(data)
    return ops.scatter_elements(none, order, grad, axis=axis, reduction="add")


def replaced_gradient(call: Call, grad: RelayExpr) -> list[RelayExpr]:
    """Of data, a part of which the second argument replaces; the others do not count."""
    to_data, to_values = replaced_parts(call, grad, call.args[1])
    return [to_data, to_values, *[ops.zeros_like(argument) for argument in call.args[2:]]]


def replaced_parts(call: Call, grad: RelayExpr, values: RelayExpr) -> tuple[RelayExpr, RelayExpr]:
    """Of data, a part of which these values replace: what stands there belongs to the values."""
    shape, given = [known_shape(x, call.operator.name) for x in (call.args[0], values)]
    count = int(np.prod(given))
    own = const(np.full(shape, -1, "int64"))
    rest = [element_numbers(given) if arg is values else arg for arg in call.args[1:]]
    positions = Call(call.op, (own, *rest), call.attrs)
    is_own = ops.less(positions, const(0, "int64"))
    # the elements of the data are added behind those of the values
    total = _added(grad, ops.where(is_own, const(count, "int64"), positions), count + 1)
    to_values = ops.strided_slice(total, begin=(0,), end=(count,))
    return (
        ops.where(is_own, grad, ops.zeros_like(grad)),
        ops.reshape(to_values, newshape=given, allowzero=True),
    )
