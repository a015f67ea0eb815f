"""PyTorch operators that read and write elements by indices: gather, scatter, advanced indexing."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tvm.error import OpAttributeUnImplemented
from tvm.ir.expr import RelayExpr
from tvm.relay import op as _op
from tvm.relay.expr import Constant
from tvm.relay.frontend.common import constant, extremes, infer_dtype, infer_shape, scalar_like
from tvm.relay.frontend.indexing import along_axis, from_front

from .dynamic_shapes import (
    are_same,
    broadcast,
    common_size,
    first_of,
    is_dynamic,
    size_of,
    sizes_of,
)
from .registry import CONVERTERS, as_dtype, as_number, category, torch_op, torch_ops
from .views import put_selected, put_slice


@torch_op("take_along_dim")
def _take_along_dim(x: RelayExpr, index: RelayExpr, dim: int | None = None) -> RelayExpr:
    """Torch's decomposition requires static shapes, as it broadcasts in C++."""
    if dim is None:
        return _op.take(_op.reshape(x, (-1,)), _op.reshape(index, (-1,)), 0)
    axis = dim % len(infer_shape(x))
    data, positions = sizes_of(x), sizes_of(index)
    together = [common_size(a, b) for a, b in zip(data, positions, strict=True)]
    data = [*together[:axis], data[axis], *together[axis + 1 :]]
    positions = [*together[:axis], positions[axis], *together[axis + 1 :]]
    return _op.gather(broadcast(x, data), axis, broadcast(index, positions))


@torch_op("index", "_unsafe_index")
def index_by(x: RelayExpr, indices: list[Any]) -> RelayExpr:
    """Advanced indexing: index tensors broadcast; axes without one are kept."""
    indices = _integer_indices(indices)
    shape = infer_shape(x)
    chosen = [axis for axis, index in enumerate(indices) if index is not None]
    given = [indices[axis] for axis in chosen]
    if len(chosen) == 1:
        return _op.take(x, from_front(given[0], size_of(x, chosen[0])), chosen[0])
    kept = [axis for axis in range(len(shape)) if axis not in chosen]
    positions = _broadcast_indices(
        [from_front(i, size_of(x, axis)) for i, axis in zip(given, chosen, strict=True)]
    )
    picked = _op.gather_nd(_op.transpose(x, [*chosen, *kept]), positions)
    if chosen != list(range(chosen[0], chosen[-1] + 1)) or chosen[0] == 0:
        return picked
    # adjacent index tensors stand in the place of the axes that they index
    count, first = len(infer_shape(positions)) - 1, chosen[0]
    axes = list(range(count + len(kept)))
    front = axes[count : count + first]
    return _op.transpose(picked, [*front, *axes[:count], *axes[count + first :]])


@torch_op("index_put", "_index_put_impl")
def put_by_index(
    x: RelayExpr, indices: list[Any], value: RelayExpr, accumulate: bool = False, *_: Any
) -> RelayExpr:
    """``x`` with values at index tuples; a mask keeps the shape and needs no index."""
    value = as_dtype(value, infer_dtype(x))
    if len(indices) == 1 and infer_dtype(indices[0]) in ("bool", "uint8"):
        return _put_masked(x, as_dtype(indices[0], "bool"), value, accumulate)
    indices = _integer_indices(indices)
    shape = infer_shape(x)
    chosen = [axis for axis, index in enumerate(indices) if index is not None]
    kept = [axis for axis in range(len(shape)) if axis not in chosen]
    given = [from_front(indices[axis], shape[axis]) for axis in chosen]
    together = np.broadcast_shapes(*[infer_shape(index) for index in given])
    stacked = [_op.broadcast_to(index, together).astype("int64") for index in given]
    # as many kept axes stand before those of adjacent indices as before the axes they index
    before = chosen[0] if chosen == list(range(chosen[0], chosen[-1] + 1)) else 0
    extents = [shape[axis] for axis in kept]
    values = _op.broadcast_to(value, (*extents[:before], *together, *extents[before:]))
    middle = list(range(before, before + len(together)))
    rest = [axis for axis in range(len(together) + len(kept)) if axis not in middle]
    order = [*chosen, *kept]
    written = _op.scatter_nd(
        _op.transpose(x, order), _op.stack(stacked, 0), _op.transpose(values, [*middle, *rest]),
        "add" if accumulate else "update",
    )  # fmt: skip
    return _op.transpose(written, np.argsort(order).tolist())


def _put_masked(x: RelayExpr, mask: RelayExpr, value: RelayExpr, accumulate: bool) -> RelayExpr:
    """The k-th slice of the mask takes the k-th value, or all the same one."""
    axes, rest = len(infer_shape(mask)), len(infer_shape(x)) - len(infer_shape(mask))
    if len(infer_shape(value)) > rest and infer_shape(value)[0] != 1:
        rank = _op.cumsum(_op.cast(_op.reshape(mask, (-1,)), "int64"), axis=0)
        positions = _op.maximum(rank - constant(1, "int64"), constant(0, "int64"))
        value = _op.take(value, _op.reshape(positions, infer_shape(mask)), 0, mode="clip")
    elif len(infer_shape(value)) > rest:
        value = _op.squeeze(value, [0])
    chosen = _op.reshape(mask, (*infer_shape(mask), *[1] * rest)) if axes else mask
    return _op.where(chosen, x + value if accumulate else value, x)


@torch_op("scatter")
def scatter(x: RelayExpr, dim: int, index: RelayExpr, source: Any, reduce: Any = None) -> RelayExpr:
    """``x`` with a source at indices along an axis, combined with what is there."""
    if any(are_same(extent, 0) for extent in infer_shape(index)):
        return x  # torch takes no indices of any rank
    ways = {None: "update", "add": "add", "multiply": "mul"}
    source = as_dtype(source, infer_dtype(x))
    if not infer_shape(source):
        source = broadcast(source, sizes_of(index))
    for axis, extent in enumerate(infer_shape(index)):
        if not are_same(extent, infer_shape(source)[axis]):
            source = first_of(source, axis, size_of(index, axis))
    return _op.scatter_elements(x, index, source, dim % len(infer_shape(x)), ways[reduce])


def _integer_indices(indices: list[Any]) -> list[Any]:
    """Masks as one index for each of their axes; others as they are."""
    result: list[Any] = []
    for index in indices:
        is_mask = index is not None and infer_dtype(index) in ("bool", "uint8")
        result.extend(mask_positions(index) if is_mask else [index])
    return result


def mask_positions(mask: RelayExpr) -> list[RelayExpr]:
    """Where a mask holds: a row of indices for each axis; how many is known at run time."""
    if isinstance(mask, Constant):
        return [constant(positions, "int64") for positions in np.nonzero(mask.data.numpy())]
    rows = _op.cast(_op.argwhere(mask), "int64")
    return [_op.take(rows, constant(i, "int64"), 1) for i in range(len(infer_shape(mask)))]


def _broadcast_indices(indices: list[RelayExpr]) -> RelayExpr:
    """Indices broadcast to one shape and stacked."""
    as_int64 = [_op.cast(index, "int64") for index in indices]
    if any(is_dynamic(index) for index in as_int64):
        zero = constant(0, "int64")
        total = as_int64[0] * zero
        for index in as_int64[1:]:
            total = total + index * zero
        return _op.stack([index + total for index in as_int64], 0)
    shape = np.broadcast_shapes(*[infer_shape(index) for index in as_int64])
    return _op.stack([_op.broadcast_to(index, shape) for index in as_int64], 0)


@torch_op("take")
def _take(x: RelayExpr, index: RelayExpr) -> RelayExpr:
    flat = _op.reshape(x, (-1,))
    return _op.take(flat, from_front(index, infer_shape(flat)[0]), 0)


@torch_op("put")
def _put(x: RelayExpr, index: RelayExpr, source: RelayExpr, accumulate: bool = False) -> RelayExpr:
    shape = infer_shape(x)
    flat = _op.reshape(x, (-1,))
    positions = _op.reshape(from_front(index, infer_shape(flat)[0]), (-1,))
    written = scatter(flat, 0, positions, _op.reshape(source, (-1,)), "add" if accumulate else None)
    return _op.reshape(written, shape)


_REDUCE = {"sum": "add", "prod": "mul", "amax": "max", "amin": "min", "mean": "add"}


@torch_op("scatter_reduce")
def scatter_reduce(
    x: RelayExpr, dim: int, index: RelayExpr, source: RelayExpr, reduce: str,
    include_self: bool = True,
) -> RelayExpr:  # fmt: skip
    """``x`` with a source reduced into it at indices along an axis."""
    axis, dtype = dim % len(infer_shape(x)), infer_dtype(x)
    if dtype == "bool":
        numbers = as_dtype(x, "int32"), dim, index, as_dtype(source, "int32")
        return as_dtype(scatter_reduce(*numbers, reduce, include_self), "bool")
    extents = infer_shape(index)
    if infer_shape(source) != extents:
        source = _op.strided_slice(source, [0] * len(extents), extents, [1] * len(extents))
    ones = constant(np.ones(extents), dtype)
    zeros = _op.zeros_like(x)
    hits = _op.scatter_elements(zeros, index, ones, axis, "add")
    missed = _op.equal(hits, scalar_like(0, x))
    start = x if include_self else _op.where(missed, x, scalar_like(_neutral(reduce, dtype), x))
    result = _op.scatter_elements(start, index, source, axis, _REDUCE[reduce])
    if reduce != "mean":
        return result
    count = hits + scalar_like(1, x) if include_self else _op.maximum(hits, scalar_like(1, x))
    return result / count if category(dtype) == 2 else _op.floor_divide(result, count)


def _neutral(reduce: str, dtype: str) -> Any:
    low, high = extremes(dtype)
    return {"sum": 0, "mean": 0, "prod": 1, "amax": low, "amin": high}[reduce]


@torch_op("index_reduce")
def _index_reduce(
    x: RelayExpr, dim: int, index: RelayExpr, source: RelayExpr, reduce: str,
    include_self: bool = True,
) -> RelayExpr:  # fmt: skip
    indices = _element_indices(dim, index, source)
    return scatter_reduce(x, dim, indices, source, _FULL_NAMES.get(reduce, reduce), include_self)


_FULL_NAMES = {"multiply": "prod"}


@torch_op("masked_scatter")
def _masked_scatter(x: RelayExpr, mask: RelayExpr, source: RelayExpr) -> RelayExpr:
    """The k-th element of the mask takes the k-th of the source."""
    shape = np.broadcast_shapes(infer_shape(x), infer_shape(mask))
    chosen = _op.reshape(_op.broadcast_to(mask, shape), (-1,))
    data = _op.reshape(_op.broadcast_to(x, shape), (-1,))
    rank = _op.cumsum(_op.cast(chosen, "int64"), axis=0) - constant(1, "int64")
    picked = _op.take(_op.reshape(source, (-1,)), _op.maximum(rank, constant(0, "int64")), 0)
    return _op.reshape(_op.where(chosen, picked, data), shape)


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


def _element_indices(dim: int, index: RelayExpr, source: RelayExpr) -> RelayExpr:
    """Indices of slices along an axis as indices of elements."""
    along = along_axis(dim, len(infer_shape(source)))
    return broadcast(_op.reshape(index, along), sizes_of(source))


@torch_op("index_add")
def _index_add(
    x: RelayExpr, dim: int, index: RelayExpr, source: RelayExpr, alpha: Any = 1
) -> RelayExpr:
    if as_number(alpha) != 1:
        source = source * scalar_like(as_number(alpha), source)
    return scatter(x, dim, _element_indices(dim, index, source), source, "add")


@torch_op("as_strided_scatter")
def _as_strided_scatter(
    x: RelayExpr, source: RelayExpr, sizes: Any, strides: Any, offset: Any = None
) -> RelayExpr:
    """``x`` with other values at addresses."""
    shape = infer_shape(x)
    total = int(np.prod(shape))
    addresses = constant(np.arange(total), "int64")
    positions = CONVERTERS["aten::as_strided"](addresses, sizes, strides, offset)
    flat = _op.reshape(x, (total,))
    values = _op.reshape(as_dtype(source, infer_dtype(x)), (-1,))
    return _op.reshape(put_by_index(flat, [_op.reshape(positions, (-1,))], values), shape)


torch_ops({
    "select_scatter": put_selected,
    "slice_scatter": put_slice,
    "gather": lambda x, dim, index, *_: _op.gather(x, dim, index),
    "index_select": lambda x, dim, index: _op.take(x, index, dim),
    "embedding": lambda weight, indices, *_: _op.take(weight, indices, 0),
    "scatter_add": lambda x, dim, index, source: scatter(x, dim, index, source, "add"),
    "index_copy": lambda x, dim, index, source: scatter(
        x, dim, _element_indices(dim, index, source), source
    ),
})  # fmt: skip
