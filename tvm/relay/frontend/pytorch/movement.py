"""PyTorch operators that reshape, move, cut, join and index data."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from tvm.error import OpAttributeUnImplemented
from tvm.ir.expr import RelayExpr
from tvm.relay import op as _op
from tvm.relay.frontend.common import constant, infer_shape, is_static
from tvm.relay.frontend.indexing import SLICE_END, from_front, padded, windows_along
from tvm.relay.frontend.matmul import swap_last

from .dynamic_lists import slices
from .dynamic_shapes import (
    as_sizes,
    broadcast,
    cut,
    has_dynamic,
    index_from_front,
    is_dynamic,
    reshaped,
    size_of,
    sizes_of,
    stacked,
)
from .registry import (
    CONVERTERS,
    as_dtype,
    as_ints,
    as_number,
    axes_of,
    is_tensor,
    promoted,
    torch_op,
    torch_ops,
)


@torch_op("view", "reshape", "_unsafe_view", "_reshape_alias")
def _view(x: RelayExpr, shape: Any, *_: Any) -> RelayExpr:
    wanted = as_sizes(shape)
    if has_dynamic(wanted):
        return reshaped(x, wanted)
    # a 0 means "the same as before" to relay, and an empty dimension to torch
    return _op.reshape(x, _resolved(infer_shape(x), wanted) if 0 in wanted else wanted)


def _resolved(shape: tuple[Any, ...], wanted: list[int]) -> list[int]:
    rest = int(np.prod([dim for dim in wanted if dim != -1]))
    return [int(np.prod(shape)) // max(rest, 1) if dim == -1 else dim for dim in wanted]


@torch_op("flatten")
def _flatten(x: RelayExpr, start: int = 0, end: int = -1) -> RelayExpr:
    shape = infer_shape(x)
    if not shape:
        return _op.reshape(x, (1,))
    first, last = start % len(shape), end % len(shape)
    joined, sizes = shape[first : last + 1], sizes_of(x)
    middle = math.prod(joined) if is_static(joined) else -1
    return reshaped(x, [*sizes[:first], middle, *sizes[last + 1 :]])


@torch_op("unflatten")
def _unflatten(x: RelayExpr, dim: int, sizes: Any) -> RelayExpr:
    shape = infer_shape(x)
    axis = dim % len(shape)
    own, parts = sizes_of(x), as_sizes(sizes)
    parts = parts if is_dynamic(x) else _resolved((shape[axis],), parts)
    return reshaped(x, [*own[:axis], *parts, *own[axis + 1 :]])


@torch_op("permute")
def _permute(x: RelayExpr, dims: Any) -> RelayExpr:
    rank = len(infer_shape(x))
    if not rank:
        return x
    return _op.transpose(x, [axis % rank for axis in as_ints(dims)])


@torch_op("transpose", "swapaxes", "swapdims")
def _transpose(x: RelayExpr, a: int, b: int) -> RelayExpr:
    axes = list(range(len(infer_shape(x))))
    if not axes:
        return x
    axes[a], axes[b] = axes[b], axes[a]
    return _op.transpose(x, axes)


@torch_op("squeeze")
def _squeeze(x: RelayExpr, dim: Any = None) -> RelayExpr:
    shape = infer_shape(x)
    if isinstance(dim, (list, tuple)) and not dim:
        return x
    axes = [axis for axis in axes_of(dim, len(shape)) if shape[axis] == 1]
    return _op.squeeze(x, axes) if axes else x


@torch_op("expand", "broadcast_to")
def _expand(x: RelayExpr, sizes: Any, *_: Any) -> RelayExpr:
    shape, wanted = infer_shape(x), as_sizes(sizes)
    if is_dynamic(x) or has_dynamic(wanted):
        own = [*[1] * (len(wanted) - len(shape)), *sizes_of(x)]
        return broadcast(
            x, [o if not is_tensor(w) and w == -1 else w for o, w in zip(own, wanted, strict=True)]
        )
    padded = (1,) * (len(wanted) - len(shape)) + shape
    target = [have if want == -1 else want for have, want in zip(padded, wanted, strict=True)]
    return x if tuple(target) == shape else _op.broadcast_to(x, target)


@torch_op("repeat")
def _repeat(x: RelayExpr, repeats: Any) -> RelayExpr:
    counts = as_sizes(repeats)
    return _op.tile(x, stacked(counts) if has_dynamic(counts) else counts)


@torch_op("cat", "concat")
def _cat(tensors: list[RelayExpr], dim: int = 0) -> RelayExpr:
    parts = [t for t in tensors if infer_shape(t) != (0,)] or tensors[:1]
    return _op.concatenate(promoted(*parts), dim) if len(parts) > 1 else parts[0]


@torch_op("stack")
def stack(tensors: list[RelayExpr], dim: int = 0) -> RelayExpr:
    """Tensors along a new axis."""
    return _op.stack(promoted(*tensors), dim)


def _pieces(x: RelayExpr, sizes: list[int], dim: int) -> list[RelayExpr]:
    if len(sizes) == 1:
        return [x]
    parts = _op.split(x, tuple(np.cumsum(sizes[:-1]).tolist()), dim)
    return [parts[i] for i in range(len(sizes))]


@torch_op("split", "split_with_sizes", "unsafe_split", "unsafe_split_with_sizes")
def _split(x: RelayExpr, sizes: Any, dim: int = 0) -> list[RelayExpr]:
    extent, size = infer_shape(x)[dim], as_number(sizes)
    if isinstance(size, int):
        return _pieces(x, [min(size, extent - i) for i in range(0, extent, size)], dim)
    wanted = as_sizes(sizes)
    return _dynamic_pieces(x, wanted, dim) if has_dynamic(wanted) else _pieces(x, wanted, dim)


@torch_op("tensor_split")
def _tensor_split(x: RelayExpr, sections: Any, dim: int = 0) -> list[RelayExpr]:
    extent, cuts = infer_shape(x)[dim], as_number(sections)
    if isinstance(cuts, int):
        sizes = [extent // cuts + (i < extent % cuts) for i in range(cuts)]
    else:
        edges = [0, *as_ints(sections), extent]
        sizes = [b - a for a, b in itertools.pairwise(edges)]
    return _pieces(x, sizes, dim)


def _dynamic_pieces(x: RelayExpr, sizes: list[Any], dim: int) -> list[RelayExpr]:
    """Pieces of sizes of which some are known at run time only."""
    if len(sizes) == 1:
        return [x]
    edges = list(itertools.accumulate(sizes, initial=0))
    return [cut(x, dim, first, last, 1) for first, last in itertools.pairwise(edges)]


@torch_op("unbind")
def _unbind(x: RelayExpr, dim: int = 0) -> Any:
    if not isinstance(infer_shape(x)[dim], (int, np.integer)):
        return slices(x, dim)
    parts = _pieces(x, [1] * infer_shape(x)[dim], dim)
    return [_op.squeeze(part, [dim]) for part in parts]


@torch_op("slice")
def _slice(x: Any, dim: Any = 0, start: Any = None, end: Any = None, step: Any = 1) -> Any:
    if isinstance(x, list):  # slice of a list has no axis
        return x[slice(as_number(dim), as_number(start), as_number(end) or 1)]
    shape = infer_shape(x)
    axis = as_number(dim) % len(shape)
    first, last = as_number(start), as_number(end)
    if not isinstance(shape[axis], int) or is_tensor(first) or is_tensor(last):
        if (first in (None, 0) and not is_tensor(last) and (last is None or last >= SLICE_END)
                and as_number(step) == 1):  # fmt: skip
            return x
        return cut(x, axis, first, last, as_number(step))
    bounds = slice(first, last, as_number(step)).indices(shape[axis])
    if bounds == (0, shape[axis], 1):
        return x
    begin, finish, stride = bounds
    return _op.strided_slice(x, [begin], [max(finish, begin)], [stride], [axis])


@torch_op("narrow", "narrow_copy")
def _narrow(x: RelayExpr, dim: int, start: Any, length: Any) -> RelayExpr:
    if is_tensor(first := as_number(start)):
        count = constant(np.arange(as_number(length)), "int64")
        start_index = from_front(_op.cast(first, "int64"), infer_shape(x)[dim])
        return _op.take(x, start_index + count, dim)
    count, extent = as_number(length), infer_shape(x)[dim]
    if is_tensor(count) or not isinstance(extent, int):
        end = as_dtype(first, "int64") + as_dtype(count, "int64")
        return cut(x, dim % len(infer_shape(x)), first, end, 1)
    begin = first % max(extent, 1)
    part: RelayExpr = _slice(x, dim, begin, begin + count)
    return part


@torch_op("select")
def _select(x: RelayExpr, dim: Any, index: Any) -> RelayExpr:
    position, extent = as_number(index), infer_shape(x)[dim]
    if is_tensor(position):
        return _op.take(x, index_from_front(position, size_of(x, dim)), dim)
    if not isinstance(extent, int):
        start_index = as_dtype(position, "int64")
        return _op.take(x, start_index if position >= 0 else start_index + size_of(x, dim), dim)
    if not -extent <= position < extent:
        raise OpAttributeUnImplemented(f"select requires an index below {extent}, got {position}")
    return _op.take(x, constant(position % extent, "int64"), dim, mode="fast")


@torch_op("flip")
def _flip(x: RelayExpr, dims: Any) -> RelayExpr:
    for axis in as_ints(dims):
        x = _op.reverse(x, axis % len(infer_shape(x)))
    return x


@torch_op("roll")
def _roll(x: RelayExpr, shifts: Any, dims: Any) -> RelayExpr:
    shape = infer_shape(x)
    axes = as_ints(dims)
    flat = x if axes else _op.reshape(x, (-1,))
    for shift, axis in zip(as_ints(shifts), axes or [0], strict=True):
        extent = infer_shape(flat)[axis]
        if extent and shift % extent:
            tail, head = _pieces(flat, [extent - shift % extent, shift % extent], axis)
            flat = _op.concatenate([head, tail], axis)
    return flat if axes else _op.reshape(flat, shape)


_PAD_MODES = {"constant": "constant", "reflect": "reflect", "circular": "wrap", "replicate": "edge"}


@torch_op("pad", "constant_pad_nd")
def _pad(x: RelayExpr, widths: Any, mode: Any = "constant", value: Any = None) -> RelayExpr:
    if not isinstance(mode, str):  # constant_pad_nd(x, widths, value)
        mode, value = "constant", mode
    if mode not in _PAD_MODES:
        raise OpAttributeUnImplemented(f"pad requires a mode of {[*_PAD_MODES]}, got {mode!r}")
    flat = as_ints(widths)
    pairs = list(zip(flat[::2], flat[1::2], strict=True))[::-1]
    pairs_by_axis = [(0, 0)] * (len(infer_shape(x)) - len(pairs)) + pairs
    return padded(x, pairs_by_axis, float(as_number(value) or 0.0), _PAD_MODES[mode])


@torch_op("one_hot")
def _one_hot(indices: RelayExpr, count: int = -1) -> RelayExpr:
    on, off = constant(1, "int64"), constant(0, "int64")
    if count == -1:  # as many as the largest index says, at run time
        classes = _op.arange(off, _op.cast(_op.max(indices), "int64") + on, on, "int64")
        hits = _op.equal(_op.expand_dims(_op.cast(indices, "int64"), -1), classes)
        return _op.cast(hits, "int64")
    return _op.one_hot(indices, on, off, count, -1, "int64")


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


@torch_op("unfold")
def _unfold(x: RelayExpr, dim: int, size: int, step: int) -> RelayExpr:
    """Windows along an axis, their elements along a new last one."""
    if not infer_shape(x):
        return _op.reshape(x, (size,))
    return windows_along(x, dim % len(infer_shape(x)), size, step)


@torch_op("combinations")
def _combinations(x: RelayExpr, count: int = 2, repeats: bool = False) -> RelayExpr:
    pick = itertools.combinations_with_replacement if repeats else itertools.combinations
    rows = list(pick(range(infer_shape(x)[0]), count))
    return _op.take(x, constant(np.array(rows).reshape(len(rows), count), "int64"), 0)


torch_ops({
    "size sym_size": lambda x, dim=None: sizes_of(x) if dim is None else size_of(x, as_number(dim)),
    "dim": lambda x: len(infer_shape(x)),
    "numel sym_numel": lambda x: (
        math.prod(sizes_of(x)) if not is_dynamic(x) else _op.prod(stacked(sizes_of(x)))
    ),
    "len": lambda x: size_of(x, 0) if is_tensor(x) else len(x),
    "view_as reshape_as": lambda x, other: reshaped(x, sizes_of(other)),
    "t numpy_T": lambda x: _op.transpose(x) if len(infer_shape(x)) > 1 else x,
    "mT mH adjoint": swap_last,
    "trace": lambda x: _op.sum(_diagonal(x)),
    "unsqueeze": lambda x, dim: _op.expand_dims(x, dim % (len(infer_shape(x)) + 1)),
    "expand_as": lambda x, other: _expand(x, sizes_of(other)),
    "chunk unsafe_chunk": lambda x, count, dim=0: _split(
        x, max(1, -(-infer_shape(x)[dim] // count)), dim
    ),
    "_shape_as_tensor": lambda x: stacked(sizes_of(x)),
    "meshgrid": lambda tensors, indexing="ij": [
        _op.meshgrid(tensors, indexing)[i] for i in range(len(tensors))
    ],
})  # fmt: skip

# copies of views share the converters of the views
for _name in (
    "diagonal", "expand", "permute", "split_with_sizes", "split", "squeeze", "t", "transpose",
    "unbind", "unfold", "unsqueeze", "view", "slice", "select",
):  # fmt: skip
    CONVERTERS[f"aten::{_name}_copy"] = CONVERTERS[f"aten::{_name}"]
