"""PyTorch operators that a few others make up: indices, diagonals, products, distances."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tvm.error import OpAttributeUnImplemented
from tvm.ir.expr import RelayExpr
from tvm.relay import op as _op
from tvm.relay.frontend.common import constant, infer_shape, scalar_like
from tvm.relay.frontend.einsum import einsum
from tvm.relay.frontend.indexing import windows_along
from tvm.relay.frontend.matmul import swap_last

from .dynamic_shapes import broadcast, is_dynamic, sizes_of
from .movement import scatter, stack
from .nn import matrix_product
from .registry import Rows, as_number, promoted, torch_op, torch_ops


@torch_op("outer", "ger")
def _outer(a: RelayExpr, b: RelayExpr) -> RelayExpr:
    left, right = promoted(a, b)
    return _op.expand_dims(left, 1) * right


def _weighed_sum(x: RelayExpr, product: RelayExpr, beta: Any = 1, alpha: Any = 1) -> RelayExpr:
    """``beta * x + alpha * product``; with a beta of 0, NaN in ``x`` does not count."""
    if as_number(alpha) != 1:
        product = product * scalar_like(as_number(alpha), product)
    if as_number(beta) == 0:
        return product
    return (x if as_number(beta) == 1 else x * scalar_like(as_number(beta), x)) + product


@torch_op("vstack", "row_stack")
def _vstack(tensors: list[RelayExpr]) -> RelayExpr:
    if len(infer_shape(tensors[0])) == 1:
        return stack(tensors, 0)
    return _op.concatenate(promoted(*tensors), 0)


@torch_op("diagonal")
def _diagonal(x: RelayExpr, offset: int = 0, first: int = 0, second: int = 1) -> RelayExpr:
    """The two axes go to the front, and index pairs pick from them."""
    shape = infer_shape(x)
    rows, columns = first % len(shape), second % len(shape)
    rest = [axis for axis in range(len(shape)) if axis not in (rows, columns)]
    count = max(0, min(shape[rows] + min(offset, 0), shape[columns] - max(offset, 0)))
    steps = np.arange(count)
    pairs = np.stack([steps - min(offset, 0), steps + max(offset, 0)])
    picked = _op.gather_nd(_op.transpose(x, [rows, columns, *rest]), constant(pairs, "int64"))
    return _op.transpose(picked, [*range(1, len(rest) + 1), 0])


@torch_op("diagonal_scatter")
def _diagonal_scatter(
    x: RelayExpr, source: RelayExpr, offset: int = 0, first: int = 0, second: int = 1
) -> RelayExpr:
    """``x`` with another diagonal."""
    if is_dynamic(x):
        raise OpAttributeUnImplemented("diagonal_scatter requires sizes known at import")
    shape = infer_shape(x)
    rows, columns = first % len(shape), second % len(shape)
    positions = np.arange(math.prod(shape)).reshape(shape).diagonal(offset, rows, columns)
    flat = _op.scatter_elements(
        _op.reshape(x, (math.prod(shape),)), constant(positions.reshape(-1), "int64"),
        _op.reshape(source, (positions.size,)), 0, "update",
    )  # fmt: skip
    return _op.reshape(flat, shape)


@torch_op("unfold")
def _unfold(x: RelayExpr, dim: int, size: int, step: int) -> RelayExpr:
    """Windows along an axis, their elements along a new last one."""
    if not infer_shape(x):
        return _op.reshape(x, (size,))
    return windows_along(x, dim % len(infer_shape(x)), size, step)


@torch_op("pixel_unshuffle")
def _pixel_unshuffle(x: RelayExpr, factor: int) -> RelayExpr:
    *batch, c, h, w = infer_shape(x)
    rank = len(batch)
    split = _op.reshape(x, (*batch, c, h // factor, factor, w // factor, factor))
    axes = [*range(rank), rank, rank + 2, rank + 4, rank + 1, rank + 3]
    moved = _op.transpose(split, axes)
    return _op.reshape(moved, (*batch, c * factor**2, h // factor, w // factor))


@torch_op("channel_shuffle", "native_channel_shuffle")
def _channel_shuffle(x: RelayExpr, groups: int) -> RelayExpr:
    n, c, *spatial = infer_shape(x)
    split = _op.reshape(x, (n, groups, c // groups, *spatial))
    moved = _op.transpose(split, (0, 2, 1, *range(3, 3 + len(spatial))))
    return _op.reshape(moved, (n, c, *spatial))


def _whole_slices(x: RelayExpr, dim: int, index: RelayExpr, source: RelayExpr) -> RelayExpr:
    """Indices of slices along an axis as indices of elements."""
    along = [1] * len(infer_shape(source))
    along[dim] = -1
    return broadcast(_op.reshape(index, along), sizes_of(source))


@torch_op("index_add")
def _index_add(
    x: RelayExpr, dim: int, index: RelayExpr, source: RelayExpr, alpha: Any = 1
) -> RelayExpr:
    if as_number(alpha) != 1:
        source = source * scalar_like(as_number(alpha), source)
    return scatter(x, dim, _whole_slices(x, dim, index, source), source, "add")


@torch_op("index_copy")
def _index_copy(x: RelayExpr, dim: int, index: RelayExpr, source: RelayExpr) -> RelayExpr:
    return scatter(x, dim, _whole_slices(x, dim, index, source), source)


@torch_op("broadcast_tensors")
def _broadcast_tensors(tensors: list[RelayExpr]) -> list[RelayExpr]:
    shape = np.broadcast_shapes(*[infer_shape(t) for t in tensors])
    return [_op.broadcast_to(t, shape) for t in tensors]


_COMPOSED: Rows = {
    "einsum": lambda equation, operands, *_: einsum(equation, promoted(*operands)),
    "addmv": lambda x, matrix, vector, *factors: _weighed_sum(
        x, matrix_product(matrix, vector), *factors
    ),
    "addr": lambda x, a, b, *factors: _weighed_sum(x, _outer(a, b), *factors),
    "addbmm": lambda x, a, b, *factors: _weighed_sum(
        x, _op.sum(matrix_product(a, b), axis=[0]), *factors
    ),
    "hstack": lambda tensors: _op.concatenate(
        promoted(*tensors), 0 if len(infer_shape(tensors[0])) == 1 else 1
    ),
    "mT mH adjoint": swap_last,
    "trace": lambda x: _op.sum(_diagonal(x)),
}
torch_ops(_COMPOSED)
