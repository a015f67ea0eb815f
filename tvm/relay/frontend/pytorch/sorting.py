"""PyTorch operators that order elements: sorting, ranks, quantiles, running extrema, search."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tvm.ir.expr import RelayExpr
from tvm.relay import op as _op
from tvm.relay.frontend.common import constant, extremes, infer_dtype, infer_shape, scalar_like
from tvm.relay.frontend.dynamic_extents import positions_along
from tvm.relay.frontend.indexing import along_axis
from tvm.relay.op.annotation import stop_fusion

from .dynamic_shapes import first_of
from .registry import (
    CONVERTERS,
    as_dtype,
    as_number,
    category,
    promoted,
    torch_op,
    torch_ops,
)


def sorted_with_indices(x: RelayExpr, dim: int, descending: bool) -> list[RelayExpr]:
    """The elements in order along an axis, and where they were; NaN is the largest."""
    order = _op.argsort(_sortable(x), dim, not descending, "int64")
    return [_op.gather(x, dim % len(infer_shape(x)), order), order]


def _sortable(x: RelayExpr) -> RelayExpr:
    """Bool as integers, NaN as infinity, so that all elements compare."""
    dtype = infer_dtype(x)
    if dtype == "bool":
        return _op.cast(x, "int8")
    if category(dtype) < 2:
        return x
    return _op.where(_op.isnan(x), scalar_like(float("inf"), x), x)


@torch_op("argsort")
def _argsort(x: RelayExpr, *args: Any) -> RelayExpr:
    """``argsort(x, dim, descending)`` and ``argsort(x, stable, dim, descending)``."""
    dim, descending = args[-2:] if len(args) > 1 else (*args, -1, False)[:2]
    return sorted_with_indices(x, dim, descending)[1]


CONVERTERS["aten::argsort.stable"] = CONVERTERS["aten::argsort"]


@torch_op("topk")
def _topk(
    x: RelayExpr, count: Any, dim: int = -1, largest: bool = True, in_order: bool = True
) -> list[RelayExpr]:
    axis = dim % len(infer_shape(x))
    order = _op.argsort(_sortable(x), axis, not largest, "int64")
    chosen = first_of(order, axis, as_number(count))
    return [_op.gather(x, axis, chosen), chosen]


def _ranked(x: RelayExpr, rank: int, dim: int, keepdim: bool) -> list[RelayExpr]:
    """The element of a rank along an axis, and where it was."""
    axis = dim % len(infer_shape(x))
    order = _op.argsort(_sortable(x), axis, True, "int64")
    index = _op.take(order, constant([rank], "int64"), axis)
    return _without(axis, keepdim, _op.gather(x, axis, index), index)


def _without(axis: int, keepdim: bool, *results: RelayExpr) -> list[RelayExpr]:
    return [r if keepdim else _op.squeeze(r, [axis]) for r in results]


@torch_op("median")
def _median(x: RelayExpr, dim: Any = None, keepdim: bool = False) -> Any:
    flat = _op.reshape(x, (-1,)) if dim is None else x
    axis = 0 if dim is None else dim % len(infer_shape(x))
    found = _ranked(flat, (infer_shape(flat)[axis] - 1) // 2, axis, keepdim)
    if category(infer_dtype(x)) == 2:
        found = _first_nan(flat, axis, keepdim, *found)
    return found[0] if dim is None else found


def _first_nan(
    x: RelayExpr, axis: int, keepdim: bool, value: RelayExpr, index: RelayExpr
) -> list[RelayExpr]:
    """NaN and its index, where there is one."""
    missing = _op.isnan(x)
    nan_index = _op.argmax(_op.cast(missing, "int32"), axis=axis, keepdims=keepdim)
    some = _op.any(missing, axis=[axis], keepdims=keepdim)
    return [
        _op.where(some, scalar_like(float("nan"), x), value),
        _op.where(some, _op.cast(nan_index, "int64"), index),
    ]


@torch_op("nanmedian")
def _nanmedian(x: RelayExpr, dim: Any = None, keepdim: bool = False) -> Any:
    flat = _op.reshape(x, (-1,)) if dim is None else x
    axis = 0 if dim is None else dim % len(infer_shape(x))
    order = _op.argsort(_sortable(flat), axis, True, "int64")
    present = _op.cast(_op.logical_not(_op.isnan(flat)), "int64")
    count = _op.sum(present, axis=[axis], keepdims=True)
    one, zero = constant(1, "int64"), constant(0, "int64")
    rank = _op.maximum(_op.floor_divide(count - one, constant(2, "int64")), zero)
    index = _op.gather(order, axis, rank)
    found = _without(axis, keepdim, _op.gather(flat, axis, index), index)
    return found[0] if dim is None else found


@torch_op("mode")
def _mode(x: RelayExpr, dim: int = -1, keepdim: bool = False) -> list[RelayExpr]:
    """The smallest of the most frequent values, and its last index."""
    axis = dim % len(infer_shape(x))
    rows, columns = _op.expand_dims(x, axis + 1), _op.expand_dims(x, axis)
    counts = _op.sum(_op.cast(_op.equal(rows, columns), "int64"), axis=[axis + 1])
    frequent = _op.equal(counts, _op.max(counts, axis=[axis], keepdims=True))
    largest = scalar_like(extremes(infer_dtype(x))[1], x)
    value = _op.min(_op.where(frequent, x, largest), axis=[axis], keepdims=True)
    index = _op.max(_op.where(_op.equal(x, value), positions_along(x, axis), constant(0, "int64")), axis=[axis],
                    keepdims=True)  # fmt: skip
    return _without(axis, keepdim, value, index)


def _running(compare: Callable[..., RelayExpr]) -> Callable[..., list[RelayExpr]]:
    def convert(x: RelayExpr, dim: int) -> list[RelayExpr]:
        """Extrema of all prefixes: step by step in doubling distances."""
        axis = dim % len(infer_shape(x))
        extent = infer_shape(x)[axis]
        values, index = x, _op.broadcast_to(positions_along(x, axis), infer_shape(x))
        distance = 1
        while distance < extent:
            before = constant(np.maximum(np.arange(extent) - distance, 0), "int64")
            earlier, earlier_index = _op.take(values, before, axis), _op.take(index, before, axis)
            better = compare(earlier, values)
            if category(infer_dtype(x)) == 2:
                unordered = _op.logical_and(_op.isnan(earlier), _op.logical_not(_op.isnan(values)))
                better = _op.logical_or(better, unordered)
            values = _op.where(better, earlier, values)
            index = stop_fusion(_op.where(better, earlier_index, index))
            values = stop_fusion(values)
            distance *= 2
        return [values, index]

    return convert


CONVERTERS["aten::cummax"] = _running(_op.greater)
CONVERTERS["aten::cummin"] = _running(_op.less)


@torch_op("searchsorted")
def _searchsorted(
    boundaries: RelayExpr, values: Any, out_int32: bool = False, right: bool = False,
    side: Any = None, sorter: Any = None,
) -> RelayExpr:  # fmt: skip
    dtype = "int32" if out_int32 else "int64"
    if sorter is not None:
        axis = len(infer_shape(boundaries)) - 1
        boundaries = _op.gather(boundaries, axis, sorter)
    edges, sought = promoted(boundaries, values)
    if infer_shape(sought) == ():
        found = _searchsorted(edges, _op.reshape(sought, (1,)), out_int32, right, side)
        return _op.reshape(found, ())
    return _op.searchsorted(edges, sought, bool(right) or side == "right", dtype)


@torch_op("isin")
def _isin(x: Any, tests: Any, assume_unique: bool = False, invert: bool = False) -> RelayExpr:
    elements, candidates = promoted(x, tests)
    rank = len(infer_shape(elements))
    flat = _op.reshape(candidates, (*[1] * rank, -1))
    found = _op.any(_op.equal(_op.expand_dims(elements, rank), flat), axis=[rank])
    return _op.logical_not(found) if invert else found


@torch_op("logcumsumexp")
def _logcumsumexp(x: RelayExpr, dim: int) -> RelayExpr:
    """The logarithm of running sums, pairs combined in doubling distances."""
    rank = len(infer_shape(x))
    axis = dim % rank
    extent = infer_shape(x)[axis]
    distance = 1
    while distance < extent:
        before = constant(np.maximum(np.arange(extent) - distance, 0), "int64")
        inside = constant((np.arange(extent) >= distance).reshape(along_axis(axis, rank)))
        absent = scalar_like(-float("inf"), x)
        earlier = _op.where(inside, _op.take(x, before, axis), absent)
        high, low = _op.maximum(x, earlier), _op.minimum(x, earlier)
        gap = _op.where(_op.equal(high, low), scalar_like(0.0, x), low - high)
        joined = high + _op.log(scalar_like(1.0, x) + _op.exp(gap))
        x = stop_fusion(_op.where(_op.equal(high, absent), high, joined))
        distance *= 2
    return x


@torch_op("histc")
def _histc(x: RelayExpr, bins: Any = 100, low: Any = 0, high: Any = 0) -> RelayExpr:
    """Counts of equal intervals; the range of the data if none is given."""
    if 0 in infer_shape(x):
        return constant(np.zeros(as_number(bins)), infer_dtype(x))
    flat = _op.reshape(x, (-1,))
    first, last = float(as_number(low)), float(as_number(high))
    start, end = scalar_like(first, x), scalar_like(last, x)
    if first == last:
        start, end = _op.min(flat), _op.max(flat)
        same = _op.equal(start, end)
        one = scalar_like(1.0, x)
        start, end = _op.where(same, start - one, start), _op.where(same, end + one, end)
    count = as_number(bins)
    inside = _op.logical_and(_op.greater_equal(flat, start), _op.less_equal(flat, end))
    position = _op.floor((flat - start) * scalar_like(float(count), x) / (end - start))
    index = _op.cast(_op.clip(position, 0.0, float(count - 1)), "int64")
    wanted = constant(np.arange(count).reshape(1, -1), "int64")
    hits = _op.logical_and(_op.equal(_op.expand_dims(index, 1), wanted), _op.expand_dims(inside, 1))
    return _op.sum(as_dtype(hits, infer_dtype(x)), axis=[0])


torch_ops({
    "sort": lambda x, dim=-1, descending=False: sorted_with_indices(x, dim, descending),
    "sort.stable": lambda x, stable=None, dim=-1, descending=False: sorted_with_indices(
        x, dim, descending
    ),
    "msort": lambda x: sorted_with_indices(x, 0, False)[0] if infer_shape(x) else x,
    "kthvalue": lambda x, k, dim=-1, keepdim=False: _ranked(x, as_number(k) - 1, dim, keepdim),
    "bucketize": lambda values, boundaries, out_int32=False, right=False: _searchsorted(
        boundaries, values, out_int32, right
    ),
})  # fmt: skip
