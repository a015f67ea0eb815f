"""Distinct elements and how often they occur: how many there are is known at run time."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tvm.ir.expr import RelayExpr
from tvm.relay import op as _op
from tvm.relay.frontend.common import constant, infer_dtype, infer_shape
from tvm.relay.frontend.indexing import move_axis

from .dynamic_shapes import cut
from .registry import as_dtype, as_number, torch_op, torch_ops


@torch_op("_unique2")
def _unique2(
    x: RelayExpr, in_order: bool = True, with_inverse: bool = False, with_counts: bool = False
) -> list[RelayExpr]:
    return _of_all(x, _distinct_rows, with_inverse, with_counts)


@torch_op("unique_consecutive")
def _unique_consecutive(
    x: RelayExpr, with_inverse: bool = False, with_counts: bool = False, dim: Any = None
) -> list[RelayExpr]:
    if dim is not None:
        return list(_along(x, as_number(dim), _consecutive))
    return _of_all(x, _consecutive, with_inverse, with_counts)


def _of_all(x: RelayExpr, find: Any, with_inverse: bool, with_counts: bool) -> list[RelayExpr]:
    """The distinct elements; what is not asked for is empty, as in PyTorch."""
    flat = _op.reshape(x, (-1,))
    values, inverse, counts = find(flat, flat)
    nothing = constant(np.zeros(0), "int64")
    return [
        values,
        _op.reshape(inverse, infer_shape(x)) if with_inverse else nothing,
        counts if with_counts else nothing,
    ]


@torch_op("bincount")
def _bincount(x: RelayExpr, weights: Any = None, least: Any = 0) -> RelayExpr:
    """How often each number occurs, or the sums of their weights; the largest says how many."""
    kind = "int64"
    if weights is not None:
        kind = "float32" if infer_dtype(weights) == "float32" else "float64"
    number = constant(as_number(least), "int64")
    index = as_dtype(x, "int64")
    if infer_shape(x) != (0,):
        number = _op.maximum(_op.max(index) + constant(1, "int64"), number)
    parts = _op.ones_like(index) if weights is None else weights
    start = _op.zeros(_op.reshape(number, (1,)), kind)
    return _op.scatter_elements(start, index, as_dtype(parts, kind), 0, "add")


def _along(x: RelayExpr, dim: int, find: Any) -> tuple[RelayExpr, RelayExpr, RelayExpr]:
    """The distinct slices along an axis, which each slice is, and how often each occurs."""
    shape = infer_shape(x)
    axis = dim % len(shape)
    slices = move_axis(x, axis, 0)
    rows = _op.reshape(slices, (shape[axis], math.prod(shape) // max(shape[axis], 1)))
    values, inverse, counts = find(slices, rows)
    return move_axis(values, 0, axis), inverse, counts


def _consecutive(x: RelayExpr, rows: RelayExpr) -> tuple[RelayExpr, RelayExpr, RelayExpr]:
    """The first of equal neighbours; ``rows`` says which are equal."""
    count = infer_shape(x)[0]
    if not count:
        nothing = constant(np.zeros(0), "int64")
        return x, nothing, nothing
    differ = _op.not_equal(
        _op.strided_slice(rows, [1], [count], [1], [0]),
        _op.strided_slice(rows, [0], [count - 1], [1], [0]),
    )
    if len(infer_shape(rows)) > 1:
        differ = _op.any(differ, axis=[1])
    begins = _op.concatenate([constant([True], "bool"), differ], 0)
    groups = _op.cumsum(_op.cast(begins, "int64"), 0) - constant(1, "int64")
    positions = _op.cast(_op.squeeze(_op.argwhere(begins), [1]), "int64")
    ends = _op.concatenate([cut(positions, 0, 1, None, 1), constant([count], "int64")], 0)
    return _op.take(x, positions, 0), groups, ends - positions


def _distinct_rows(x: RelayExpr, rows: RelayExpr) -> tuple[RelayExpr, RelayExpr, RelayExpr]:
    """In ascending order: sorted, distinct ones are neighbours."""
    count = infer_shape(x)[0]
    order = constant(np.arange(count), "int64")
    comparable = _op.cast(rows, "int8") if infer_dtype(rows) == "bool" else rows
    wide = len(infer_shape(rows)) > 1
    for column in reversed(range(infer_shape(rows)[1] if wide else 1)):
        keys = _op.take(comparable, constant(column, "int64"), 1) if wide else comparable
        order = _op.take(order, _op.argsort(_op.take(keys, order, 0), 0, True, "int64"), 0)
    values, groups, counts = _consecutive(_op.take(x, order, 0), _op.take(rows, order, 0))
    return values, _op.scatter_elements(groups, order, groups, 0), counts


torch_ops({
    "unique_dim": lambda x, dim, in_order=True, with_inverse=False, with_counts=False: list(
        _along(x, as_number(dim), _distinct_rows)
    ),
})  # fmt: skip
