"""Gradients of operators that mix the elements along each axis by a matrix of its own.

    result[..., j, ...] = sum over i of matrix[i, j] * data[..., i, ...]

The operator of one axis, called on the identity, tells that axis' matrix; the gradient goes back
through its transpose.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from tvm.error import OpNotImplemented
from tvm.ir.expr import RelayExpr
from tvm.ir.op import Op
from tvm.relay.analysis.infer import infer_type_of
from tvm.relay.expr import Call, const

from .gradients import constant_border_gradient
from .known_shapes import known_shape
from .plain_results import of_plain_result
from .registry import ops

# the matrix of one axis, told by the identity (1, n, n) and which of the spatial axes it is
AxisMatrix = Callable[[Call, RelayExpr, int], RelayExpr]


def _identity(extent: int, dtype: str) -> RelayExpr:
    return const(np.eye(extent)[None], dtype)


def _through(grad: RelayExpr, matrix: RelayExpr, axis: int) -> RelayExpr:
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
            f"the gradient of {call.op.name} requires a layout of whole axes, got {layout}"
        )
    return tuple([layout.index(axis) for axis in "DHW" if axis in layout])


def _gradient(matrix_of: AxisMatrix) -> Callable[[Call, RelayExpr], list[RelayExpr]]:
    def gradient(call: Call, grad: RelayExpr) -> list[RelayExpr]:
        data = call.args[0]
        shape, dtype = known_shape(data, call.op.name), infer_type_of(data).dtype
        grad = ops.cast_like(grad, data)
        for which, axis in enumerate(_axes_of(call)):
            matrix = matrix_of(call, _identity(shape[axis], dtype), which)
            grad = _through(grad, matrix, axis)
        return [grad]

    return gradient


def _resized(call: Call, identity: RelayExpr, which: int) -> RelayExpr:
    attrs = call.attrs
    rank, roi = len(attrs.size), attrs.roi
    named = {name: getattr(attrs, name) for name in _RESIZING}
    ends = None if roi is None else (roi[which], roi[rank + which])
    # what lies outside depends on no element
    return ops.image.resize1d(
        identity, size=(attrs.size[which],), roi=ends, layout="NCW", extrapolation_value=0.0, **named
    )  # fmt: skip


_RESIZING = (
    "method", "coordinate_transformation_mode", "rounding_method", "cubic_alpha", "cubic_exclude",
)  # fmt: skip


def _averaged(call: Call, identity: RelayExpr, which: int) -> RelayExpr:
    attrs = call.attrs
    rank = len(attrs.pool_size)
    return ops.nn.avg_pool1d(
        identity, pool_size=(attrs.pool_size[which],), strides=(attrs.strides[which],),
        padding=(attrs.padding[which], attrs.padding[rank + which]),
        dilation=(attrs.dilation[which],), ceil_mode=attrs.ceil_mode,
        count_include_pad=attrs.count_include_pad, layout="NCW",
    )  # fmt: skip


def _adapted(call: Call, identity: RelayExpr, which: int) -> RelayExpr:
    size = call.attrs.output_size
    own = None if size is None else (size[which] if len(size) > 1 else size[0],)
    return ops.nn.adaptive_avg_pool1d(identity, output_size=own, layout="NCW")


def _bordered(call: Call, grad: RelayExpr) -> list[RelayExpr]:
    """Of a border that repeats the data."""
    data = call.args[0]
    shape, dtype = known_shape(data, call.op.name), infer_type_of(data).dtype
    for axis, (extent, width) in enumerate(zip(shape, call.attrs.pad_width, strict=True)):
        if any(width):
            attrs = call.attrs.replace(pad_width=((0, 0), (0, 0), tuple(width)))
            matrix = Call(call.op, (_identity(extent, dtype), *call.args[1:]), attrs)
            grad = _through(grad, matrix, axis)
    return [grad]


def _pad_gradient(call: Call, grad: RelayExpr) -> list[RelayExpr]:
    if call.attrs.pad_mode == "constant":
        return constant_border_gradient(call, grad)
    return [*_bordered(call, grad), ops.zeros_like(call.args[1])]


_GRADIENTS: Mapping[Op, Callable[[Call, RelayExpr], list[RelayExpr]]] = {
    ops.image.resize1d: _gradient(_resized),
    ops.image.resize2d: _gradient(_resized),
    ops.image.resize3d: _gradient(_resized),
    ops.nn.avg_pool1d: of_plain_result(_gradient(_averaged)),
    ops.nn.avg_pool3d: of_plain_result(_gradient(_averaged)),
    ops.nn.adaptive_avg_pool1d: of_plain_result(_gradient(_adapted)),
    ops.nn.adaptive_avg_pool2d: of_plain_result(_gradient(_adapted)),
    ops.nn.adaptive_avg_pool3d: of_plain_result(_gradient(_adapted)),
    ops.nn.mirror_pad: _bordered,
    ops.nn.pad: _pad_gradient,
}
for _op, _function in _GRADIENTS.items():
    _op.set_facets(gradient=_function)
