"""Matrix products of numpy's kind: leading axes broadcast, batches may be dynamic."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tvm.ir.expr import RelayExpr
from tvm.relay import op as _op
from tvm.relay.frontend.common import constant, infer_dtype, infer_shape
from tvm.relay.frontend.dynamic_extents import broadcast, extent, reshaped, with_static_extents

from .common import is_static, static_or


def matmul(a: RelayExpr, b: RelayExpr, transposed: bool = False) -> RelayExpr:
    """The product of numpy's ``matmul``: leading axes broadcast, vectors allowed.

    With ``transposed``, batches are multiplied with a transposed second operand.
    """
    a_shape, b_shape = infer_shape(a), infer_shape(b)
    if a_shape[-1] == 0:  # sums of no products
        return constant(np.matmul(np.empty(a_shape), np.empty(b_shape)), infer_dtype(a))
    if len(a_shape) == 1:
        product = matmul(_op.expand_dims(a, 0), b, transposed)
        return _op.squeeze(product, [len(b_shape) - 2 if len(b_shape) > 1 else 0])
    if len(b_shape) == 1:
        return _op.squeeze(matmul(a, _op.expand_dims(b, 1), transposed), [len(a_shape) - 1])
    if len(b_shape) == 2:
        flat = _merged(a, len(a_shape) - 1)
        product = _op.nn.dense(flat, _op.transpose(b, (1, 0)))
        return _unmerged(product, a, len(a_shape) - 1) if len(a_shape) > 2 else product
    if not is_static([*a_shape[:-2], *b_shape[:-2]]):
        return _dynamic_matmul(a, b)
    batch = np.broadcast_shapes(a_shape[:-2], b_shape[:-2])
    left, right = [_flat_batches(x, batch) for x in (a, b)]
    right = swap_last(right) if transposed else right
    product = _op.nn.batch_matmul(left, right, transpose_a=False, transpose_b=transposed)
    return reshaped(product, [*batch, extent(product, 1), extent(product, 2)])


def _merged(x: RelayExpr, count: int) -> RelayExpr:
    """The first ``count`` dimensions as one."""
    for rank in range(len(infer_shape(x)), len(infer_shape(x)) - count + 1, -1):
        x = _op.reshape(x, [-3] + [0] * (rank - 2))
    return x


def _unmerged(x: RelayExpr, like: RelayExpr, count: int) -> RelayExpr:
    """The first dimension as the first ``count`` of ``like``."""
    shape = [*infer_shape(like)[:count], *infer_shape(x)[1:]]
    if sum([not isinstance(dim, int) for dim in shape]) <= 1:
        return _op.reshape(x, static_or(shape, -1))
    if count == 2 and is_static(shape[:1]) != is_static(shape[1:2]):
        return _op.reshape(x, [-4, *static_or(shape[:2], -1), *[0] * (len(shape) - 2)])
    return _op.reshape_like(x, like, 0, 1, 0, count) if count > 1 else x


def _dynamic_matmul(a: RelayExpr, b: RelayExpr) -> RelayExpr:
    """The product of dynamic batches."""
    shapes = [infer_shape(x)[:-2] for x in (a, b)]
    count = max(len(shape) for shape in shapes)
    pairs = zip(*[[1] * (count - len(shape)) + list(shape) for shape in shapes], strict=True)
    if len(shapes[0]) != len(shapes[1]) or any(_is_one(m) != _is_one(n) for m, n in pairs):
        batch = _op.maximum(*[_leading_shape(x, count) for x in (a, b)])
        a, b = [_with_batch(x, batch) for x in (a, b)]
    product = _op.nn.batch_matmul(
        _merged(a, count), _merged(b, count), transpose_a=False, transpose_b=False
    )
    return _unmerged(product, a, count)


def _is_one(dim: Any) -> bool:
    return isinstance(dim, int) and dim == 1


def _leading_shape(x: RelayExpr, count: int) -> RelayExpr:
    """All dimensions but the last two, behind ones up to ``count``."""
    rank = len(infer_shape(x))
    parts = [constant(np.ones(count - rank + 2, "int64"))] if rank < count + 2 else []
    if rank > 2:
        parts.append(_op.strided_slice(_op.shape_of(x, "int64"), [0], [rank - 2]))
    return _op.concatenate(parts, 0) if len(parts) > 1 else parts[0]


def _with_batch(x: RelayExpr, batch: RelayExpr) -> RelayExpr:
    rank, last = len(infer_shape(x)), infer_shape(x)[-2:]
    ends = _op.strided_slice(_op.shape_of(x, "int64"), [rank - 2], [rank])
    result = _op.broadcast_to(x, _op.concatenate([batch, ends], 0))
    return with_static_extents(result, [*[None] * infer_shape(batch)[0], *last])


def _flat_batches(x: RelayExpr, batch: tuple[int, ...]) -> RelayExpr:
    """Three dimensions: all of ``batch`` in one, unless they are one to be broadcast."""
    own = infer_shape(x)[:-2]
    if math.prod(own) != 1 and own != batch:
        x, own = broadcast(x, [*batch, extent(x, -2), extent(x, -1)]), batch
    if len(own) == 1:
        return x
    return reshaped(x, [math.prod(own), extent(x, -2), extent(x, -1)])


def swap_last(x: RelayExpr) -> RelayExpr:
    """``x`` with its last two axes exchanged."""
    axes = list(range(len(infer_shape(x))))
    return _op.transpose(x, (*axes[:-2], axes[-1], axes[-2]))
