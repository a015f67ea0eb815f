"""Counts of values in intervals of one or several axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tvm.ir.expr import RelayExpr
from tvm.relay import op as _op
from tvm.relay.expr import Constant
from tvm.relay.frontend.common import constant, infer_dtype, infer_shape, scalar_like

from .registry import as_ints, as_number, is_tensor, torch_op, torch_ops


@torch_op("_histogramdd_bin_edges")
def _histogram_edges(
    x: RelayExpr, counts: Any, limits: Any = None, weight: Any = None, density: Any = False
) -> list[RelayExpr]:
    """Equal intervals of each axis, of the range of the data if none is given."""
    sizes = as_ints(counts)
    rows = _op.reshape(x, (-1, len(sizes)))
    bounds = [as_number(limit) for limit in limits] if limits else None
    edges = []
    for axis, size in enumerate(sizes):
        if bounds is not None:
            low, high = [scalar_like(float(v), x) for v in bounds[2 * axis : 2 * axis + 2]]
        else:
            column = _op.take(rows, constant(axis, "int64"), 1)
            low, high = _op.min(column), _op.max(column)
        half = scalar_like(0.5, x)
        is_point = _op.equal(low, high)
        low, high = _op.where(is_point, low - half, low), _op.where(is_point, high + half, high)
        edges.append(_linear(low, high, size + 1))
    return edges


def _linear(low: RelayExpr, high: RelayExpr, count: int) -> RelayExpr:
    """Equal steps from one number to another, counted from the nearer end as torch does."""
    dtype = infer_dtype(low)
    step = (high - low) / constant(count - 1, dtype)
    positions = np.arange(count)
    ahead = low + step * constant(positions, dtype)
    behind = high - step * constant(count - 1 - positions, dtype)
    return _op.where(constant(positions < count // 2), ahead, behind)


@torch_op("_histogramdd_from_bin_tensors")
def _histogram_of_edges(
    x: RelayExpr, edges: Sequence[RelayExpr], weight: Any = None, density: Any = False
) -> RelayExpr:
    """The weights of the rows of data in the boxes that edges make."""
    rows = _op.reshape(x, (-1, len(edges)))
    sizes = [int(infer_shape(edge)[0]) - 1 for edge in edges]
    position, inside = constant(0, "int64"), constant(True)
    for axis, (edge, size) in enumerate(zip(edges, sizes, strict=True)):
        column = _op.take(rows, constant(axis, "int64"), 1)
        # the last interval has both of its ends
        found = _op.searchsorted(edge, column, True, "int64") - constant(1, "int64")
        at_end = _op.equal(column, _op.take(edge, constant(size, "int64"), 0))
        found = _op.where(at_end, constant(size - 1, "int64"), found)
        known = _op.logical_and(
            _op.greater_equal(found, constant(0, "int64")), _op.less(found, constant(size, "int64"))
        )
        inside = _op.logical_and(inside, known)
        position = position * constant(size, "int64") + found
    amounts = (
        constant(np.ones(()), infer_dtype(x)) if weight is None else _op.reshape(weight, (-1,))
    )
    amounts = _op.where(inside, amounts, scalar_like(0, x))
    position = _op.where(inside, position, constant(0, "int64"))
    start = constant(np.zeros(int(np.prod(sizes))), infer_dtype(x))
    counts = _op.reshape(_op.scatter_elements(start, position, amounts, 0, reduction="add"), sizes)
    return _per_volume(counts, edges) if as_number(density) else counts


def _per_volume(counts: RelayExpr, edges: Sequence[RelayExpr]) -> RelayExpr:
    counts = counts / _op.sum(counts)
    for axis, edge in enumerate(edges):
        size = int(infer_shape(edge)[0]) - 1
        widths = _op.strided_slice(edge, [1], [size + 1]) - _op.strided_slice(edge, [0], [size])
        counts = counts / _op.reshape(widths, (-1, *[1] * (len(edges) - 1 - axis)))
    return counts


@torch_op("histogram")
def _histogram(x: RelayExpr, bins: Any, *options: Any) -> list[RelayExpr]:
    """Counts of intervals, by their number (with a range) or their edges."""
    if is_tensor(bins) and (infer_shape(bins) or not isinstance(bins, Constant)):
        weight, density = (*options, None, False)[:2]
        edges = [bins]
    else:
        limits, weight, density = (*options, None, None, False)[:3]
        edges = _histogram_edges(x, [bins], limits)
    return [_histogram_of_edges(_op.reshape(x, (-1, 1)), edges, weight, density), edges[0]]


torch_ops({
    "_histogramdd_from_bin_cts": lambda x, counts, limits=None, weight=None, density=False: (
        _histogram_of_edges(x, _histogram_edges(x, counts, limits), weight, density)
    ),
})  # fmt: skip
