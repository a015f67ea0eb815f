"""PyTorch's functions that put elements at positions, for all sizes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm.relax import op as _op
from tvm.relax.expr import const
from tvm.relax.struct_info import TensorStructInfo
from tvm.relay.frontend.common import extremes
from tvm.te.tensor_ops import broadcast_shape

from .base_fx_graph_translator import EMITTERS, NoEmitter, Sizes, dtype_name, emitter
from .pointwise import Importer


def _cast(e: Importer, x: Any, dtype: str) -> Any:
    return x if e.dtype_of(x) == dtype else e.emit(_op.astype(x, dtype))


# ---- by index


@emitter("index_put", "_unsafe_index_put", "_index_put_impl")
def _index_put(
    e: Importer, x: Any, indices: Sequence[Any], values: Any, accumulate: bool = False, *_: Any
) -> Any:
    """The indexed axes first, then the others, as `index_put` has them; and back."""
    values = _cast(e, values, e.dtype_of(x))
    given = [index for index in indices if index is not None]
    if any([e.dtype_of(index) in ("bool", "uint8") for index in given]):
        if len(given) > 1 or indices[0] is None:
            raise NoEmitter("masks beside other indices")
        return _put_masked(e, x, _cast(e, given[0], "bool"), values, accumulate)
    dims = e.shape_of(x)
    chosen = [axis for axis, index in enumerate(indices) if index is not None]
    order = [*chosen, *[axis for axis in range(len(dims)) if axis not in chosen]]
    if order == sorted(order):
        return e.emit(_op.index_put(x, given, values, accumulate))
    # adjacent indices leave as many axes of the values before theirs as there are in the tensor
    before = chosen[0] if chosen == list(range(chosen[0], chosen[-1] + 1)) else 0
    if before:
        together: list[Any] = []
        for index in given:
            together = list(broadcast_shape(together, index.struct_info.dimensions))
        rest = [dims[axis] for axis in order[len(chosen) :]]
        target = [*rest[:before], *together, *rest[before:]]
        values = e.emit(_op.broadcast_to(values, target))
        middle = list(range(before, before + len(together)))
        others = [axis for axis in range(len(target)) if axis not in middle]
        values = e.emit(_op.permute_dims(values, [*middle, *others]))
    moved = e.emit(_op.permute_dims(x, order))
    written = e.emit(_op.index_put(moved, given, values, accumulate))
    return e.emit(_op.permute_dims(written, [order.index(axis) for axis in range(len(order))]))


def _put_masked(e: Importer, x: Any, mask: Any, values: Any, accumulate: bool) -> Any:
    """One value for all elements of the mask, or the k-th value for the k-th of them."""
    rank, shape = len(e.shape_of(mask)), e.shape_of(values)
    rest = len(e.shape_of(x)) - rank
    if not e.shape_of(mask).are_known:
        dims = x.struct_info.dimensions[:rank]  # which PyTorch requires of a mask
        mask = e.block_builder.match_cast(mask, TensorStructInfo(dims, "bool"))
    condition = mask if not rest else e.emit(_op.expand_dims(mask, list(range(-rest, 0))))
    if len(shape) > rest and shape[0] == 1:
        values = e.emit(_op.squeeze(values, 0))
    elif len(shape) > rest:
        count = e.emit(_op.cumsum(e.emit(_op.reshape(mask, [-1])), 0, dtype="int64"))
        index = e.emit(_op.subtract(count, const(1, "int64")))
        index = e.emit(_op.maximum(index, const(0, "int64")))
        index = e.emit(_op.reshape(index, list(e.shape_of(mask))))
        values = e.emit(_op.index_tensor(values, [index]))
    new = e.emit(_op.add(x, values)) if accumulate else values
    return e.emit(_op.where(condition, new, x))


@emitter("take")
def _take(e: Importer, x: Any, index: Any) -> Any:
    return e.emit(_op.index_tensor(e.emit(_op.reshape(x, [-1])), [index]))


@emitter("slice_scatter")
def _slice_scatter(
    e: Importer, x: Any, src: Any, dim: int = 0, start: Any = None, end: Any = None, step: int = 1
) -> Any:
    axis = dim % len(e.shape_of(x))
    extent = e.shape_of(x)[axis]
    is_open = end is None or (isinstance(end, int) and end >= 2**63 - 1)
    src = _cast(e, src, e.dtype_of(x))
    return e.emit(_op.slice_scatter(x, src, start or 0, extent if is_open else end, step, axis))


# ---- reductions


_WAYS = {"sum": "add", "prod": "mul", "amax": "max", "amin": "min", "mean": "add"}


@emitter("scatter_reduce")
def _scatter_reduce(
    e: Importer, x: Any, dim: int, index: Any, src: Any, reduce: str, *, include_self: bool = True
) -> Any:
    sizes, kind = e.shape_of(index), e.dtype_of(x)
    if Sizes([*e.shape_of(x), *sizes]).are_known or kind == "bool":
        raise NoEmitter("reductions into tensors of known sizes")
    axis = dim % len(sizes)
    axes = list(range(len(sizes)))
    if len(axes) != len(e.shape_of(src)):
        raise NoEmitter("a source of another rank")
    src = e.emit(_op.strided_slice(src, axes, [0] * len(axes), list(sizes)))
    ones = e.emit(_op.ones(list(sizes), kind))
    start = x
    if not include_self:
        lowest, highest = extremes(kind)
        nothing = {"prod": 1, "amax": lowest, "amin": highest}.get(reduce, 0)
        none = e.emit(_op.zeros_like(x))
        counts = e.emit(_op.scatter_elements(none, index, ones, axis, "add"))
        start = e.emit(
            _op.where(e.emit(_op.greater(counts, const(0, kind))), const(nothing, kind), x)
        )
    found = e.emit(_op.scatter_elements(start, index, src, axis, _WAYS[reduce]))
    if reduce != "mean":
        return found
    if include_self:
        counts = e.emit(_op.scatter_elements(e.emit(_op.ones_like(x)), index, ones, axis, "add"))
    counts = e.emit(_op.maximum(counts, const(1, kind)))
    divide = _op.divide if kind.startswith(("float", "bfloat")) else _op.floor_divide
    return e.emit(divide(found, counts))


# ---- matrices


@emitter("eye")
def _eye(e: Importer, n: Any, m: Any = None, *, dtype: Any = None, **options: Any) -> Any:
    return e.emit(_op.eye(n, m, 0, "float32" if dtype is None else dtype_name(dtype)))


@emitter("trace")
def _trace(e: Importer, x: Any) -> Any:
    if e.shape_of(x).are_known:
        raise NoEmitter("matrices of known sizes")
    return e.emit(_op.sum(EMITTERS["diagonal"](e, x)))


# ---- blocks of pixels


@emitter("pixel_shuffle")
def _pixel_shuffle(e: Importer, x: Any, upscale_factor: int) -> Any:
    return e.emit(_op.nn.pixel_shuffle(x, upscale_factor))


def _regrouped(e: Importer, x: Any, shape: list[Any], order: list[int], result: list[Any]) -> Any:
    blocks = e.emit(_op.permute_dims(e.emit(_op.reshape(x, shape)), order))
    return e.emit(_op.reshape(blocks, result))


@emitter("pixel_unshuffle")
def _pixel_unshuffle(e: Importer, x: Any, downscale_factor: int) -> Any:
    *lead, channels, rows, columns = e.shape_of(x)
    factor, rank = downscale_factor, len(lead)
    rows, columns = rows // factor, columns // factor
    return _regrouped(
        e, x, [*lead, channels, rows, factor, columns, factor],
        [*range(rank), *[rank + i for i in (0, 2, 4, 1, 3)]],
        [*lead, channels * factor**2, rows, columns],
    )  # fmt: skip


@emitter("channel_shuffle", "native_channel_shuffle")
def _channel_shuffle(e: Importer, x: Any, groups: int) -> Any:
    images, channels, *rest = sizes = e.shape_of(x)
    return _regrouped(
        e, x, [images, groups, channels // groups, *rest],
        [0, 2, 1, *range(3, len(sizes) + 1)], list(sizes),
    )  # fmt: skip
