"""PyTorch operators that pick elements by masks, counts and segments, known at run time only."""

from __future__ import annotations

from typing import Any

import numpy as np

from tvm.error import OpAttributeUnImplemented
from tvm.ir.expr import RelayExpr
from tvm.relay import op as _op
from tvm.relay.frontend.common import constant, infer_dtype, infer_shape, scalar_like

from .indexing import index_by, mask_positions, scatter_reduce
from .registry import CONVERTERS, as_dtype, as_number, torch_op, torch_ops


@torch_op("nonzero", "argwhere")
def _nonzero(x: RelayExpr) -> RelayExpr:
    """One row of indices for each element that is not zero."""
    if infer_shape(x) == ():
        rows = _op.argwhere(_op.reshape(x, (1,)))
        return _op.cast(_op.strided_slice(rows, [0], [0], [1], [1]), "int64")
    return _op.cast(_op.argwhere(x), "int64")


@torch_op("nonzero_static")
def _nonzero_static(x: RelayExpr, size: Any, fill: Any = -1) -> RelayExpr:
    """The first rows of `nonzero`: the elements of smallest rank, found by sorting."""
    shape, count = infer_shape(x), as_number(size)
    total = int(np.prod(shape))
    if not total:
        return constant(np.full((count, len(shape)), as_number(fill)), "int64")
    flat = _op.reshape(_op.not_equal(x, scalar_like(0, x)), (total,))
    order = _op.argsort(_op.where(flat, constant(np.arange(total), "int64"),
                                  constant(np.full(total, total), "int64")), 0, True, "int64")  # fmt: skip
    found = _op.sum(_op.cast(flat, "int64"))
    positions = constant(np.minimum(np.arange(count), max(total - 1, 0)), "int64")
    index = np.indices(shape).reshape(len(shape), total).T
    rows = _op.take(constant(index, "int64"), _op.take(order, positions, 0), 0)
    present = _op.less(constant(np.arange(count)[:, None], "int64"), found)
    return _op.where(present, rows, constant(as_number(fill), "int64"))


@torch_op("masked_select")
def _masked_select(x: RelayExpr, mask: RelayExpr) -> RelayExpr:
    shape = np.broadcast_shapes(infer_shape(x), infer_shape(mask))
    given = x, as_dtype(mask, "bool")
    data, chosen = [_op.reshape(_op.broadcast_to(v, shape), (-1,)) for v in given]
    return index_by(data, [chosen])


@torch_op("repeat_interleave")
def _repeat_interleave(
    x: RelayExpr, repeats: Any, dim: Any = None, output_size: Any = None
) -> RelayExpr:
    """Each element as often as is said: the result's positions are sought in the running counts."""
    if dim is None:
        x, dim = _op.reshape(x, (-1,)), 0
    if isinstance(as_number(repeats), int):
        return _op.repeat(x, as_number(repeats), dim)
    return _op.take(x, _repeated_positions(repeats, infer_shape(x)[dim], output_size), dim)


def _repeated_positions(repeats: RelayExpr, extent: int, total: Any) -> RelayExpr:
    counts = _op.broadcast_to(_op.cast(repeats, "int64"), (extent,))
    ends = _op.cumsum(counts, axis=0)
    if total is not None:
        positions = constant(np.arange(as_number(total)), "int64")
    else:
        positions = _op.arange(constant(0, "int64"), _op.sum(counts), dtype="int64")
    return _op.searchsorted(ends, positions, True, "int64")


# ---- segments


_BAG_MODES = ("sum", "mean", "amax")


@torch_op("embedding_bag")
def _embedding_bag(
    weight: RelayExpr, indices: RelayExpr, offsets: RelayExpr, scaled: Any = False, mode: Any = 0,
    sparse: Any = False, factors: Any = None, include_last: Any = False, padding: Any = None,
) -> list[Any]:  # fmt: skip
    """Sums, means or maxima of the rows that bags name; bags start at offsets."""
    count = infer_shape(indices)[0]
    bags = infer_shape(offsets)[0] - bool(include_last)
    starts = _op.cast(offsets, "int64")
    starts = _op.strided_slice(starts, [0], [bags], [1]) if include_last else starts
    rows_of = constant(np.arange(count), "int64")
    owner = _op.searchsorted(starts, rows_of, True, "int64") - constant(1, "int64")
    rows = _op.take(weight, indices, 0)
    if factors is not None:
        rows = rows * _op.expand_dims(factors, 1)
    shape = (bags, infer_shape(weight)[1])
    skipped = as_number(padding)
    if skipped is not None:  # rows of padding belong to a bag that is dropped
        dropped = _op.equal(_op.cast(indices, "int64"),
                            constant(skipped % infer_shape(weight)[0], "int64"))  # fmt: skip
        owner = _op.where(dropped, constant(bags, "int64"), owner)
    start = constant(np.zeros((bags + 1, shape[1])), infer_dtype(rows))
    positions = _op.broadcast_to(_op.expand_dims(owner, 1), (count, shape[1]))
    found = scatter_reduce(start, 0, positions, rows, _BAG_MODES[as_number(mode)], False)
    return [_op.strided_slice(found, [0, 0], list(shape), [1, 1]), owner, None, None]


@torch_op("_embedding_bag", "_embedding_bag_forward_only")
def _embedding_bag_of_core(*args: Any) -> list[Any]:
    """Here a padding of -1 says that there is none."""
    *leading, padding = args
    leading.append(None if as_number(padding) == -1 else padding)
    return _embedding_bag(*leading)


@torch_op("segment_reduce")
def _segment_reduce(
    x: RelayExpr, reduce: str, lengths: Any = None, indices: Any = None, offsets: Any = None,
    axis: Any = 0, unsafe: Any = False, initial: Any = None,
) -> RelayExpr:  # fmt: skip
    """Reductions of the rows of segments; an empty one gives ``initial``."""
    if indices is not None:
        raise OpAttributeUnImplemented("segment_reduce is supported by lengths or offsets")
    shape, depth = infer_shape(x), as_number(axis)
    batches, rows, rest = int(np.prod(shape[:depth])), shape[depth], shape[depth + 1 :]
    ends, count = _segment_ends(lengths, offsets, batches)
    positions = constant(np.tile(np.arange(rows), (batches, 1)), "int64")
    # one row more in each batch takes what belongs to no segment
    first_rows = constant(np.arange(batches)[:, None] * (count + 1), "int64")
    owner = _op.searchsorted(ends, positions, True, "int64") + first_rows
    flat = _op.reshape(x, (batches * rows, *rest))
    owner = _op.reshape(owner, (batches * rows, *[1] * len(rest)))
    found = _reduced_segments(
        flat, _op.broadcast_to(owner, (batches * rows, *rest)), batches * (count + 1), reduce,
        as_number(initial),
    )  # fmt: skip
    found = _op.reshape(found, (*shape[:depth], count + 1, *rest))
    return _op.strided_slice(found, [0], [count], [1], [depth])


def _segment_ends(lengths: Any, offsets: Any, batches: int) -> tuple[RelayExpr, int]:
    """Where the segments of each batch end, and how many there are."""
    if lengths is not None:
        count = infer_shape(lengths)[-1]
        flat = _op.reshape(_op.cast(lengths, "int64"), (batches, count))
        return _op.cumsum(flat, axis=1), count
    count = infer_shape(offsets)[-1] - 1
    flat = _op.reshape(_op.cast(offsets, "int64"), (batches, count + 1))
    return _op.strided_slice(flat, [1], [count + 1], [1], [1]), count


def _reduced_segments(
    x: RelayExpr, owner: RelayExpr, count: int, reduce: str, initial: Any
) -> RelayExpr:
    empty = {"max": -np.inf, "min": np.inf, "prod": 1.0}.get(reduce, 0.0)
    first = empty if initial is None else initial
    shape = (count, *infer_shape(x)[1:])
    start = constant(np.full(shape, first), infer_dtype(x))
    way = {"max": "amax", "min": "amin", "mean": "sum"}.get(reduce, reduce)
    found = scatter_reduce(start, 0, owner, x, way, True)
    if reduce != "mean":
        return found
    zeros = constant(np.zeros(shape), infer_dtype(x))
    hits = _op.scatter_elements(zeros, owner, _op.ones_like(x), 0, "add")
    none = _op.equal(hits, scalar_like(0.0, x))
    missing = scalar_like(np.nan if initial is None else first, x)
    return _op.where(none, missing, found / hits)


@torch_op("embedding_renorm")
def _embedding_renorm(weight: RelayExpr, indices: RelayExpr, limit: Any, p: Any) -> RelayExpr:
    """The rows that are named, made as short as the limit."""
    norm = CONVERTERS["aten::linalg_vector_norm"](weight, as_number(p), [1], True, None)
    size = scalar_like(float(as_number(limit)), weight)
    short = weight * (size / (norm + scalar_like(1e-7, weight)))
    flat = _op.reshape(indices, (-1,))
    rows = constant(np.arange(infer_shape(weight)[0])[:, None], infer_dtype(indices))
    named = _op.any(_op.equal(rows, _op.expand_dims(flat, 0)), axis=[1], keepdims=True)
    return _op.where(_op.logical_and(named, _op.greater(norm, size)), short, weight)


torch_ops({
    "nonzero_numpy": lambda x: mask_positions(_op.reshape(x, (1,)) if infer_shape(x) == () else x),
    "repeat_interleave.Tensor": lambda repeats, output_size=None: _repeated_positions(
        repeats, infer_shape(repeats)[0], output_size
    ),
})  # fmt: skip
