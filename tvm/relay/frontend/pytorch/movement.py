"""PyTorch operators that reshape, move, cut, join and index data."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from tvm.error import OpAttributeUnImplemented
from tvm.ir.expr import RelayExpr
from tvm.relay import op as _op
from tvm.relay.expr import Constant
from tvm.relay.frontend.common import constant, infer_dtype, infer_shape
from tvm.relay.frontend.indexing import from_front, padded

from .dynamic_lists import slices
from .dynamic_shapes import (
    are_same,
    as_sizes,
    broadcast,
    common_size,
    cut,
    first_of,
    has_dynamic,
    index_from_front,
    is_dynamic,
    reshaped,
    size_of,
    sizes_of,
    stacked,
)
from .registry import (
    Rows,
    as_dtype,
    as_ints,
    as_number,
    axes_of,
    is_tensor,
    promoted,
    torch_op,
    torch_ops,
)
from .views import put_at


@torch_op("_shape_as_tensor")
def _shape_as_tensor(x: RelayExpr) -> RelayExpr:
    return stacked(sizes_of(x))


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
    middle = math.prod(joined) if all(isinstance(dim, int) for dim in joined) else -1
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


@torch_op("movedim")
def _movedim(x: RelayExpr, source: Any, destination: Any) -> RelayExpr:
    rank = len(infer_shape(x))
    origin, target = axes_of(as_ints(source), rank), axes_of(as_ints(destination), rank)
    rest = iter([axis for axis in range(rank) if axis not in origin])
    positions = dict(zip(target, origin, strict=True))
    return _op.transpose(x, [positions[i] if i in positions else next(rest) for i in range(rank)])


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


def _dynamic_pieces(x: RelayExpr, sizes: list[Any], dim: int) -> list[RelayExpr]:
    """Pieces of sizes of which some are known at run time only."""
    if len(sizes) == 1:
        return [x]
    edges = list(itertools.accumulate(sizes, initial=0))
    return [cut(x, dim, first, last, 1) for first, last in itertools.pairwise(edges)]


@torch_op("tensor_split")
def _tensor_split(x: RelayExpr, sections: Any, dim: int = 0) -> list[RelayExpr]:
    extent, cuts = infer_shape(x)[dim], as_number(sections)
    if isinstance(cuts, int):
        sizes = [extent // cuts + (i < extent % cuts) for i in range(cuts)]
    else:
        edges = [0, *as_ints(sections), extent]
        sizes = [b - a for a, b in itertools.pairwise(edges)]
    return _pieces(x, sizes, dim)


@torch_op("unbind")
def _unbind(x: RelayExpr, dim: int = 0) -> Any:
    if not isinstance(infer_shape(x)[dim], (int, np.integer)):
        return slices(x, dim)
    parts = _pieces(x, [1] * infer_shape(x)[dim], dim)
    return [_op.squeeze(part, [dim]) for part in parts]


_ALL = 2**31 - 1  # the ends of slices that go on to the end are larger


@torch_op("slice")
def _slice(x: Any, dim: Any = 0, start: Any = None, end: Any = None, step: Any = 1) -> Any:
    if isinstance(x, list):  # slice of a list has no axis
        return x[slice(as_number(dim), as_number(start), as_number(end) or 1)]
    shape = infer_shape(x)
    axis = as_number(dim) % len(shape)
    first, last = as_number(start), as_number(end)
    if not isinstance(shape[axis], int) or is_tensor(first) or is_tensor(last):
        if (first in (None, 0) and not is_tensor(last) and (last is None or last >= _ALL)
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
        place = from_front(_op.cast(first, "int64"), infer_shape(x)[dim])
        return _op.take(x, place + count, dim)
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
        place = as_dtype(position, "int64")
        return _op.take(x, place if position >= 0 else place + size_of(x, dim), dim)
    if not -extent <= position < extent:
        raise OpAttributeUnImplemented(f"select requires an index below {extent}, got {position}")
    return _op.take(x, constant(position % extent, "int64"), dim, mode="fast")


@torch_op("gather")
def _gather(x: RelayExpr, dim: int, index: RelayExpr, *_: Any) -> RelayExpr:
    return _op.gather(x, dim, index)


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


@torch_op("index")
def index_by(x: RelayExpr, indices: list[Any]) -> RelayExpr:
    """Advanced indexing: index tensors broadcast; axes without one are kept."""
    indices = _integer_indices(indices)
    shape = infer_shape(x)
    chosen = [axis for axis, index in enumerate(indices) if index is not None]
    given = [indices[axis] for axis in chosen]
    if len(chosen) == 1:
        return _op.take(x, from_front(given[0], size_of(x, chosen[0])), chosen[0])
    kept = [axis for axis in range(len(shape)) if axis not in chosen]
    positions = _places_together(
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
    whole = _op.broadcast_to(value, (*extents[:before], *together, *extents[before:]))
    middle = list(range(before, before + len(together)))
    rest = [axis for axis in range(len(together) + len(kept)) if axis not in middle]
    order = [*chosen, *kept]
    written = _op.scatter_nd(
        _op.transpose(x, order), _op.stack(stacked, 0), _op.transpose(whole, [*middle, *rest]),
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


@torch_op("select_scatter")
def _select_scatter(x: RelayExpr, source: RelayExpr, dim: int, index: Any) -> RelayExpr:
    axis = dim % len(infer_shape(x))
    position = as_number(index) % infer_shape(x)[axis]
    return put_at(x, _op.expand_dims(source, axis), axis, range(position, position + 1))


@torch_op("slice_scatter")
def _slice_scatter(
    x: RelayExpr, source: RelayExpr, dim: int = 0, start: Any = None, end: Any = None, step: Any = 1
) -> RelayExpr:
    axis = dim % len(infer_shape(x))
    positions = slice(as_number(start), as_number(end), as_number(step))
    return put_at(x, source, axis, range(infer_shape(x)[axis])[positions])


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


def _places_together(indices: list[RelayExpr]) -> RelayExpr:
    """Indices broadcast to one shape and stacked."""
    whole = [_op.cast(index, "int64") for index in indices]
    if any(is_dynamic(index) for index in whole):
        zero = constant(0, "int64")
        total = whole[0] * zero
        for index in whole[1:]:
            total = total + index * zero
        return _op.stack([index + total for index in whole], 0)
    shape = np.broadcast_shapes(*[infer_shape(index) for index in whole])
    return _op.stack([_op.broadcast_to(index, shape) for index in whole], 0)


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
    whole = [(0, 0)] * (len(infer_shape(x)) - len(pairs)) + pairs
    return padded(x, whole, float(as_number(value) or 0.0), _PAD_MODES[mode])


@torch_op("pixel_shuffle")
def _pixel_shuffle(x: RelayExpr, factor: int) -> RelayExpr:
    *batch, c, h, w = infer_shape(x)
    rank = len(batch)
    split = _op.reshape(x, (*batch, c // factor**2, factor, factor, h, w))
    axes = [*range(rank), rank, rank + 3, rank + 1, rank + 4, rank + 2]
    return _op.reshape(_op.transpose(split, axes), (*batch, c // factor**2, h * factor, w * factor))


@torch_op("meshgrid")
def _meshgrid(tensors: list[RelayExpr], indexing: str = "ij") -> list[RelayExpr]:
    grids = _op.meshgrid(tensors, indexing)
    return [grids[i] for i in range(len(tensors))]


@torch_op("one_hot")
def _one_hot(indices: RelayExpr, count: int = -1) -> RelayExpr:
    on, off = constant(1, "int64"), constant(0, "int64")
    if count == -1:  # as many as the largest index says, at run time
        classes = _op.arange(off, _op.cast(_op.max(indices), "int64") + on, on, "int64")
        hits = _op.equal(_op.expand_dims(_op.cast(indices, "int64"), -1), classes)
        return _op.cast(hits, "int64")
    return _op.one_hot(indices, on, off, count, -1, "int64")


_MOVEMENTS: Rows = {
    "size sym_size": lambda x, dim=None: sizes_of(x) if dim is None else size_of(x, as_number(dim)),
    "dim": lambda x: len(infer_shape(x)),
    "numel sym_numel": lambda x: (
        math.prod(sizes_of(x)) if not is_dynamic(x) else _op.prod(stacked(sizes_of(x)))
    ),
    "len": lambda x: size_of(x, 0) if is_tensor(x) else len(x),
    "view_as reshape_as": lambda x, other: reshaped(x, sizes_of(other)),
    "t numpy_T": lambda x: _op.transpose(x) if len(infer_shape(x)) > 1 else x,
    "unsqueeze": lambda x, dim: _op.expand_dims(x, dim % (len(infer_shape(x)) + 1)),
    "expand_as": lambda x, other: _expand(x, sizes_of(other)),
    "chunk unsafe_chunk": lambda x, count, dim=0: _split(
        x, max(1, -(-infer_shape(x)[dim] // count)), dim
    ),
    "index_select": lambda x, dim, index: _op.take(x, index, dim),
    "embedding": lambda weight, indices, *_: _op.take(weight, indices, 0),
    "scatter_add": lambda x, dim, index, source: scatter(x, dim, index, source, "add"),
}
torch_ops(_MOVEMENTS)
