"""PyTorch's functions that make tensors, reduce them and arrange their elements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from itertools import accumulate, pairwise
from operator import mul
from typing import Any

from tvm import tir
from tvm.ir.expr import PrimExpr
from tvm.relax import op as _op
from tvm.relax.expr import PrimValue, const

from .base_fx_graph_translator import (
    EMITTERS,
    BaseFXGraphImporter,
    Emitter,
    NoEmitter,
    Sizes,
    dtype_name,
    emitter,
    is_tensor,
    scalar,
)

Importer = BaseFXGraphImporter


def _listed(values: Sequence[Any]) -> list[Any]:
    """Numbers that are given one by one, or as one list."""
    if len(values) == 1 and isinstance(values[0], (list, tuple)):
        return list(values[0])
    return list(values)


def _axis(e: Importer, x: Any, dim: int, more: int = 0) -> int:
    return dim % (len(e.shape_of(x)) + more)


# ---- reductions


def _reduction(function: Callable[..., Any]) -> Emitter:
    def emit(
        e: Importer, x: Any, dim: Any = None, keepdim: bool = False, dtype: Any = None, **options: Any
    ) -> Any:  # fmt: skip
        if dtype is not None:
            x = e.emit(_op.astype(x, dtype_name(dtype)))
        elif not e.dtype_of(x).startswith(("float", "bfloat")):
            raise NoEmitter("sums of integers are of 64 bits")
        return e.emit(function(x, dim if dim != [] else None, keepdims=keepdim))

    return emit


EMITTERS.update({"mean": _reduction(_op.mean), "sum": _reduction(_op.sum)})


def _best(function: Callable[..., Any]) -> Emitter:
    return lambda e, x, dim=None, keepdim=False: e.emit(function(x, dim, keepdim))


EMITTERS.update({"argmax": _best(_op.argmax), "argmin": _best(_op.argmin)})


@emitter("cumsum")
def _cumsum(e: Importer, x: Any, dim: int, dtype: Any = None, out: Any = None) -> Any:
    if out is not None:
        raise ValueError("cumsum requires out=None: results of relax are new tensors")
    kind = None if dtype is None else dtype_name(dtype)
    if kind is None and not e.dtype_of(x).startswith(("float", "bfloat")):
        kind = "int64"
    return e.emit(_op.cumsum(x, dim, kind))


# ---- shapes


@emitter("size")
def _size(e: Importer, x: Any, dim: Any = None) -> Any:
    return e.shape_of(x) if dim is None else e.shape_of(x)[dim]


@emitter("dim")
def _rank(e: Importer, x: Any) -> int:
    return len(e.shape_of(x))


@emitter("numel")
def _count(e: Importer, x: Any) -> Any:
    return reduce(mul, e.shape_of(x), 1)


@emitter("getattr")
def _attribute(e: Importer, x: Any, name: str) -> Any:
    known: dict[str, Callable[[], Any]] = {
        "shape": lambda: e.shape_of(x), "ndim": lambda: len(e.shape_of(x)),
        "dtype": lambda: e.dtype_of(x), "device": lambda: None,
        "T": lambda: e.emit(_op.permute_dims(x)),
    }  # fmt: skip
    if name not in known:
        raise NoEmitter(f"attribute {name} of a tensor")
    return known[name]()


emitter("sym_size")(_size)


@emitter("reshape", "view", "_unsafe_view")
def _reshape(e: Importer, x: Any, *shape: Any) -> Any:
    if len(shape) == 1 and not isinstance(shape[0], (list, tuple, int, PrimExpr)):
        raise NoEmitter("a view of another element type")
    return e.emit(_op.reshape(x, _listed(shape)))


@emitter("flatten")
def _flatten(e: Importer, x: Any, start_dim: int = 0, end_dim: int = -1) -> Any:
    dims = e.shape_of(x)
    start, end = start_dim % len(dims), end_dim % len(dims)
    flat = reduce(mul, dims[start : end + 1])
    return e.emit(_op.reshape(x, [*dims[:start], flat, *dims[end + 1 :]]))


@emitter("squeeze")
def _squeeze(e: Importer, x: Any, dim: Any = None) -> Any:
    if dim is None:
        return e.emit(_op.squeeze(x, None))
    axes = [dim] if isinstance(dim, int) else list(dim)
    dims = e.shape_of(x)
    ones = [a for a in axes if isinstance(dims[a], int) and dims[a] == 1]
    if not ones:
        return x
    return e.emit(_op.squeeze(x, dim if len(ones) == len(axes) else ones))


@emitter("unsqueeze")
def _unsqueeze(e: Importer, x: Any, dim: int) -> Any:
    return e.emit(_op.expand_dims(x, dim))


@emitter("permute", "permute_dims")
def _permute(e: Importer, x: Any, *dims: Any) -> Any:
    return e.emit(_op.permute_dims(x, _listed(dims)))


@emitter("transpose", "swapaxes")
def _transpose(e: Importer, x: Any, dim0: int, dim1: int) -> Any:
    order = list(range(len(e.shape_of(x))))
    order[dim0], order[dim1] = order[dim1], order[dim0]
    return e.emit(_op.permute_dims(x, order))


@emitter("t")
def _matrix_transpose(e: Importer, x: Any) -> Any:
    return e.emit(_op.permute_dims(x, None)) if len(e.shape_of(x)) == 2 else x


@emitter("expand")
def _expand(e: Importer, x: Any, *sizes: Any, implicit: bool = False) -> Any:
    want, have = _listed(sizes), e.shape_of(x)
    added = len(want) - len(have)
    dims = [have[i - added] if isinstance(d, int) and d == -1 else d for i, d in enumerate(want)]
    return e.emit(_op.broadcast_to(x, dims))


@emitter("expand_as")
def _expand_as(e: Importer, x: Any, other: Any) -> Any:
    return e.emit(_op.broadcast_to(x, list(e.shape_of(other))))


@emitter("repeat", "tile")
def _tile(e: Importer, x: Any, *dims: Any) -> Any:
    return e.emit(_op.tile(x, _listed(dims)))


# ---- joining and splitting


@emitter("cat", "concat", "concatenate")
def _concat(e: Importer, tensors: Any, dim: int = 0, axis: Any = None) -> Any:
    if len({e.dtype_of(t) for t in tensors}) > 1:
        raise NoEmitter("tensors of several element types")
    return e.emit(_op.concat(tensors, axis=dim if axis is None else axis))


@emitter("stack")
def _stack(e: Importer, tensors: Any, dim: int = 0) -> Any:
    axis = _axis(e, tensors[0], dim, 1)
    return e.emit(_op.concat([e.emit(_op.expand_dims(t, axis)) for t in tensors], axis=axis))


def _cut(e: Importer, x: Any, axis: int, bounds: Sequence[Any]) -> list[Any]:
    """The parts of a tensor between bounds along an axis, which may be symbolic."""
    return [
        e.emit(_op.strided_slice(x, [axis], [low], [high], [1])) for low, high in pairwise(bounds)
    ]


def _traced_count(e: Importer) -> int:
    """How many results the node at hand has, as tracing found."""
    if not isinstance(e.traced, (list, tuple)):
        raise NoEmitter("parts of a symbolic extent")
    return len(e.traced)


def _parts(e: Importer, x: Any, size: Any, dim: int) -> Any:
    """Parts of a size, of which the last one may be smaller."""
    extent = e.shape_of(x)[dim]
    if not isinstance(extent, int) or not isinstance(size, int):
        bounds = [size * k for k in range(_traced_count(e))]
        return _cut(e, x, _axis(e, x, dim), [*bounds, extent])
    count = -(-extent // size)
    if extent % count == 0 and extent // count == size:
        return e.emit(_op.split(x, count, dim))
    return e.emit(_op.split(x, list(range(size, extent, size)) or 1, dim))


@emitter("split", "split_with_sizes")
def _split(e: Importer, x: Any, split_size: Any, dim: int = 0) -> Any:
    if not isinstance(split_size, (list, tuple)):
        return _parts(e, x, split_size, dim)
    if not Sizes([*split_size, e.shape_of(x)[dim]]).are_known:
        return _cut(e, x, _axis(e, x, dim), [0, *accumulate(split_size)])
    ends = [sum(split_size[: i + 1]) for i in range(len(split_size) - 1)]
    return e.emit(_op.split(x, ends, dim))


@emitter("chunk")
def _chunk(e: Importer, x: Any, chunks: int, dim: int = 0) -> Any:
    return _parts(e, x, -(-e.shape_of(x)[dim] // chunks), dim)


@emitter("tensor_split")
def _tensor_split(e: Importer, x: Any, sections: Any, dim: int = 0) -> Any:
    axis = _axis(e, x, dim)
    extent = e.shape_of(x)[axis]
    if isinstance(extent, int) or not isinstance(sections, int):
        raise NoEmitter("parts of a known extent, or between given bounds")
    # as many parts as leave a rest are one longer
    bounds = [k * (extent // sections) + tir.min(k, extent % sections) for k in range(sections)]
    return _cut(e, x, axis, [*bounds, extent])


@emitter("unbind")
def _unbind(e: Importer, x: Any, dim: int = 0) -> Any:
    count = e.shape_of(x)[dim]
    parts = e.emit(_op.split(x, list(range(1, count + 1)), dim))
    fields = [e.emit(_op.squeeze(e.emit(parts[i]), axis=dim)) for i in range(count)]
    return e.emit(e.as_expr(fields))


# ---- parts


@emitter("select")
def _select(e: Importer, x: Any, dim: int, index: int) -> Any:
    return e.emit(_op.take(x, const(_from_front(e, x, dim, index), "int64"), dim))


def _from_front(e: Importer, x: Any, dim: int, index: Any) -> int:
    extent = e.shape_of(x)[dim]
    if not isinstance(index, int) or (index < 0 and not isinstance(extent, int)):
        raise NoEmitter("an index that is not known")
    return index + extent if index < 0 else index


@emitter("slice")
def _slice(
    e: Importer, x: Any, dim: int = 0, start: Any = None, end: Any = None, step: int = 1
) -> Any:
    axis = _axis(e, x, dim)
    extent = e.shape_of(x)[axis]
    is_open = isinstance(end, int) and end >= _LAST and not isinstance(extent, int)
    stop = extent if end is None or is_open else end
    return e.emit(_op.strided_slice(x, [axis], [start or 0], [stop], [step]))


_LAST = 2**63 - 1  # ATen's way to say the end


@emitter("getitem")
def _getitem(e: Importer, x: Any, index: Any) -> Any:
    """Slices of all axes at once; then axes of integers go, and new ones come."""
    items = list(index) if isinstance(index, (list, tuple)) else [index]
    if any([is_tensor(i) for i in items]):
        return _taken(e, x, items)
    dims = e.shape_of(x)
    used = len([i for i in items if i is not None and i is not Ellipsis])
    if Ellipsis not in items:
        items.append(Ellipsis)
    at = items.index(Ellipsis)
    items[at : at + 1] = [slice(None)] * (len(dims) - used)
    begins, ends, steps = [], [], []
    for extent, item in zip(dims, [i for i in items if i is not None], strict=True):
        begin, end, step = _bounds(item, extent)
        begins.append(begin)
        ends.append(end)
        steps.append(step)
    part = e.emit(_op.strided_slice(x, list(range(len(dims))), begins, ends, steps))
    kept = iter(e.shape_of(part))
    shape: list[Any] = []
    for item in items:
        if item is None:
            shape.append(1)
        elif isinstance(item, slice):
            shape.append(next(kept))
        else:
            next(kept)
    return e.emit(_op.reshape(part, shape))


def _bounds(item: Any, extent: Any) -> tuple[Any, Any, Any]:
    if isinstance(item, slice):
        start = 0 if item.start is None else item.start
        return start, extent if item.stop is None else item.stop, item.step or 1
    if isinstance(item, bool) or not isinstance(item, (int, PrimExpr)):
        raise ValueError(f"Unsupported index type: {type(item)}")
    start = item + extent if isinstance(item, int) and item < 0 else item
    return start, start + 1, 1


def _taken(e: Importer, x: Any, items: list[Any]) -> Any:
    """By one tensor of indices among whole axes."""
    places = [i for i, item in enumerate(items) if is_tensor(item)]
    rest = [item for item in items if not is_tensor(item)]
    if len(places) > 1 or any([item != slice(None) for item in rest]):
        raise NoEmitter("parts by several tensors, or by a tensor and numbers")
    indices = items[places[0]]
    if not e.dtype_of(indices).startswith("int"):
        raise NoEmitter("parts by a mask")
    return e.emit(_op.take(x, indices, places[0]))


# ---- new tensors


def _kind(dtype: Any, value: Any = 0.0) -> str:
    if dtype is not None:
        return dtype_name(dtype)
    if isinstance(value, bool):
        return "bool"
    return "int64" if isinstance(value, int) else "float32"


@emitter("arange")
def _arange(
    e: Importer, start: Any = 0, end: Any = None, step: Any = 1, dtype: Any = None, **options: Any
) -> Any:
    if end is None:
        start, end = 0, start
    is_real = any([isinstance(v, float) for v in (start, end, step)])
    kind = _kind(dtype, 0.0 if is_real else 0)
    return e.emit(_op.arange(PrimValue(start), PrimValue(end), PrimValue(step), dtype=kind))


@emitter("full")
def _full(e: Importer, size: Any, fill_value: Any, dtype: Any = None, **options: Any) -> Any:
    value = scalar(fill_value)
    if is_tensor(value):
        raise NoEmitter("a value that is computed")
    kind = _kind(dtype, value)
    return e.emit(_op.full(size, const(value, kind), kind))


def _filled(value: float) -> Emitter:
    def emit(e: Importer, *size: Any, dtype: Any = None, **options: Any) -> Any:
        kind = _kind(dtype)
        return e.emit(_op.full(_listed(size), const(value, kind), kind))

    return emit


EMITTERS.update({"ones": _filled(1), "zeros": _filled(0)})


@emitter("empty")
def _empty(e: Importer, *size: Any, dtype: Any = None, **options: Any) -> Any:
    return e.emit(_op.zeros(_listed(size), _kind(dtype)))


def _new_filled(value: float) -> Emitter:
    def emit(e: Importer, x: Any, *size: Any, dtype: Any = None, **options: Any) -> Any:
        kind = e.dtype_of(x) if dtype is None else dtype_name(dtype)
        return e.emit(_op.full(_listed(size), const(value, kind), kind))

    return emit


EMITTERS.update({"new_ones": _new_filled(1), "new_zeros": _new_filled(0)})


@emitter("new_full")
def _new_full(
    e: Importer, x: Any, size: Any, fill_value: Any, dtype: Any = None, **options: Any
) -> Any:
    kind = e.dtype_of(x) if dtype is None else dtype
    return _full(e, size, fill_value, kind)


@emitter("fill")
def _fill(e: Importer, x: Any, value: Any) -> Any:
    number = scalar(value)
    if is_tensor(number):
        raise NoEmitter("a value that is computed")
    kind = e.dtype_of(x)
    return e.emit(_op.full(Sizes(e.shape_of(x)), const(number, kind), kind))


@emitter("masked_fill")
def _masked_fill(e: Importer, x: Any, mask: Any, value: Any) -> Any:
    number = scalar(value)
    if is_tensor(number):
        raise NoEmitter("a value that is computed")
    values = e.emit(_op.full_like(x, const(number)))
    return e.emit(_op.where(mask, values, x))


@emitter("masked_scatter")
def _masked_scatter(e: Importer, x: Any, mask: Any, source: Any) -> Any:
    """The elements of a source, in order, where the mask is true."""
    dims, rank = e.shape_of(x), len(e.shape_of(mask))
    one = const(1, "int32")
    if rank == 1:
        index = e.emit(_op.cumsum(mask, 0, dtype="int32"))
        index = e.emit(_op.subtract(index, one))
        found = e.emit(_op.take(source, index, axis=0))
    else:
        flat = e.emit(_op.reshape(mask, [-1]))
        index = e.emit(_op.cumsum(flat, 0, dtype="int32"))
        index = e.emit(_op.subtract(index, one))
        rows = e.emit(_op.reshape(source, [-1, *e.shape_of(source)[rank:]]))
        found = e.emit(_op.reshape(e.emit(_op.take(rows, index, axis=0)), list(dims)))
    if rank != len(dims):
        mask = e.emit(_op.broadcast_to(mask, list(dims)))
    return e.emit(_op.where(mask, found, x))


# ---- images


@emitter("interpolate")
def _interpolate(
    e: Importer, x: Any, size: Any = None, scale_factor: Any = None, mode: str = "nearest",
    align_corners: Any = None, recompute_scale_factor: Any = None, antialias: bool = False,
) -> Any:  # fmt: skip
    dims = e.shape_of(x)
    methods = {"nearest": "nearest_neighbor", "bilinear": "linear", "bicubic": "cubic"}
    if len(dims) != 4 or antialias or recompute_scale_factor or mode not in methods:
        raise NoEmitter(f"interpolation of {len(dims) - 2} axes, {mode}")
    if size is None:
        factors = [scale_factor] * 2 if isinstance(scale_factor, (int, float)) else scale_factor
        size = [int(d * f) for d, f in zip(dims[2:], factors, strict=True)]
    size = [size] * 2 if isinstance(size, int) else list(size)
    if mode == "nearest":
        coordinates = "asymmetric"
    else:
        coordinates = "align_corners" if align_corners else "half_pixel"
    # PyTorch rounds down; where extents divide each other there is nothing to round
    are_known = dims.are_known and Sizes(size).are_known
    is_exact = mode != "nearest" or (
        are_known and all([d % s == 0 for d, s in zip(dims[2:], size, strict=True)])
    )
    return e.emit(
        _op.image.resize2d(
            x, size, layout="NCHW", method=methods[mode],
            coordinate_transformation_mode=coordinates,
            rounding_method="round" if is_exact else "floor",
            cubic_alpha=-0.75 if mode == "bicubic" else -0.5,
        )
    )  # fmt: skip
