"""PyTorch pooling: means and maxima of windows, with the positions of the maxima."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from tvm.ir.expr import RelayExpr
from tvm.relay import op as _op
from tvm.relay.frontend.common import constant, extremes, infer_dtype, infer_shape, scalar_like
from tvm.relay.frontend.windows import pool

from .registry import as_ints, as_number, spread, torch_op
from .tree import mapped

T = TypeVar("T")
Numbers = tuple[int, ...]  # one for each pooled axis

_ADAPTIVE_AVG = (
    _op.nn.adaptive_avg_pool1d, _op.nn.adaptive_avg_pool2d, _op.nn.adaptive_avg_pool3d,
)  # fmt: skip
_ADAPTIVE_MAX = (
    _op.nn.adaptive_max_pool1d, _op.nn.adaptive_max_pool2d, _op.nn.adaptive_max_pool3d,
)  # fmt: skip


def _window(
    x: RelayExpr, kernel: Any, strides: Any, padding: Any
) -> tuple[Numbers, Numbers, Numbers]:
    """Extents, strides and padding for each pooled axis; torch gives lists to all operators."""
    rank = len(as_ints(kernel))
    if not isinstance(kernel, (list, tuple)):
        rank = len(infer_shape(x)) - 2 or rank
    size = spread(kernel, rank)
    return size, spread(strides, rank, size), spread(padding, rank)


def _batched(x: RelayExpr, rank: int, apply: Callable[[RelayExpr], T]) -> T:
    """Images without a batch axis get one for the operator."""
    if len(infer_shape(x)) != rank + 1:
        return apply(x)
    result = apply(_op.expand_dims(x, 0))
    alone: T = mapped(result, lambda image: _op.squeeze(image, [0]))
    return alone


@torch_op("max_pool1d", "max_pool2d", "max_pool3d")
def _max_pool(
    x: RelayExpr, kernel: Any, strides: Any = None, padding: Any = 0, dilation: Any = 1,
    ceil_mode: bool = False,
) -> RelayExpr:  # fmt: skip
    size, steps, pads = _window(x, kernel, strides, padding)
    gaps, up = spread(dilation, len(size)), bool(ceil_mode)
    return _batched(
        x, len(size), lambda data: pool("max", data, size, steps, pads, gaps, ceil_mode=up)
    )


@torch_op("avg_pool1d", "avg_pool2d", "avg_pool3d")
def _avg_pool(
    x: RelayExpr, kernel: Any, strides: Any = None, padding: Any = 0, ceil_mode: bool = False,
    count_include_pad: bool = True, divisor: Any = None,
) -> RelayExpr:  # fmt: skip
    size, steps, pads = _window(x, kernel, strides, padding)
    if divisor is not None:
        return _batched(x, len(size), lambda data: _sums(data, size, steps, pads, ceil_mode) / scalar_like(
            float(as_number(divisor)), data))  # fmt: skip
    options: Any = {"ceil_mode": bool(ceil_mode), "count_include_pad": bool(count_include_pad)}
    return _batched(x, len(size), lambda data: pool("avg", data, size, steps, pads, **options))


def _sums(
    x: RelayExpr, size: Sequence[int], steps: Sequence[int], pads: Sequence[int], ceil_mode: bool
) -> RelayExpr:
    picked, inside = _windows(x, _strided(x, size, steps, pads, [1] * len(size), ceil_mode))
    return _op.sum(_op.where(inside, picked, scalar_like(0.0, x)), axis=[-1])


def _strided(
    x: RelayExpr, size: Sequence[int], steps: Sequence[int], pads: Sequence[int],
    spacing: Sequence[int], ceil_mode: bool,
) -> list[np.ndarray[Any, Any]]:  # fmt: skip
    """For each pooled axis, the positions that each window looks at; some are outside."""
    tables = []
    for extent, k, step, pad, gap in zip(
        infer_shape(x)[-len(size) :], size, steps, pads, spacing, strict=True
    ):
        room = extent + 2 * pad - gap * (k - 1) - 1
        count = (-(-room // step) if ceil_mode else room // step) + 1
        if ceil_mode and (count - 1) * step >= extent + pad:
            count -= 1  # the last window starts inside the data
        tables.append(np.arange(count)[:, None] * step - pad + np.arange(k) * gap)
    return tables


def _adaptive(x: RelayExpr, size: Sequence[int]) -> list[np.ndarray[Any, Any]]:
    """Windows of nearly equal size that cover each axis; short ones end outside."""
    tables = []
    for extent, count in zip(infer_shape(x)[-len(size) :], size, strict=True):
        starts = np.arange(count) * extent // count
        ends = -(-(np.arange(count) + 1) * extent // count)
        positions = starts[:, None] + np.arange(max(1, (ends - starts).max(initial=1)))
        tables.append(np.where(positions < ends[:, None], positions, -1))
    return tables


def _windows(x: RelayExpr, tables: Sequence[np.ndarray[Any, Any]]) -> tuple[RelayExpr, RelayExpr]:
    """The elements of each window along a new last axis, and which of them are inside."""
    shape, rank = infer_shape(x), len(tables)
    spatial = shape[-rank:]
    flat = _op.reshape(x, (*shape[:-rank], math.prod(spatial)))
    index, inside = _flat_positions(tables, spatial)
    picked = _op.take(flat, constant(np.where(inside, index, 0), "int64"), len(shape) - rank)
    return picked, constant(inside)


def _flat_positions(
    tables: Sequence[np.ndarray[Any, Any]], spatial: Sequence[int]
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """(outputs..., window) tables of positions in flattened images, and which are inside."""
    rank = len(tables)
    index, inside = np.zeros((1,) * 2 * rank, "int64"), np.ones((1,) * 2 * rank, bool)
    for axis, (table, extent) in enumerate(zip(tables, spatial, strict=True)):
        form = [1] * 2 * rank
        form[axis], form[rank + axis] = table.shape
        positions = table.reshape(form)
        index = index * extent + positions
        inside = inside & (positions >= 0) & (positions < extent)
    counts = [table.shape[0] for table in tables]
    together = np.broadcast_shapes(index.shape, inside.shape)
    index, inside = np.broadcast_to(index, together), np.broadcast_to(inside, together)
    return index.reshape(*counts, -1), inside.reshape(*counts, -1)


def _argmax_positions(x: RelayExpr, tables: Sequence[np.ndarray[Any, Any]]) -> RelayExpr:
    """Where the maxima of windows are in the flattened image."""
    picked, inside = _windows(x, tables)
    known = _op.where(inside, picked, scalar_like(extremes(infer_dtype(x))[0], x))
    rank = len(infer_shape(known)) - 1
    chosen = _op.argmax(known, axis=rank, keepdims=True)
    index, _ = _flat_positions(tables, infer_shape(x)[-len(tables) :])
    table = _op.broadcast_to(constant(index, "int64"), infer_shape(known))
    return _op.squeeze(_op.gather(table, rank, _op.cast(chosen, "int64")), [rank])


@torch_op(
    "max_pool1d_with_indices", "max_pool2d_with_indices", "max_pool3d_with_indices",
)  # fmt: skip
def _max_pool_with_indices(
    x: RelayExpr, kernel: Any, strides: Any = None, padding: Any = 0, dilation: Any = 1,
    ceil_mode: bool = False,
) -> list[RelayExpr]:  # fmt: skip
    window = _window(x, kernel, strides, padding)
    tables = _strided(x, *window, spread(dilation, len(window[0])), bool(ceil_mode))
    maxima = _max_pool(x, kernel, strides, padding, dilation, ceil_mode)
    return [maxima, _argmax_positions(x, tables)]


@torch_op("adaptive_max_pool1d", "adaptive_max_pool2d", "adaptive_max_pool3d")
def _adaptive_max_pool(x: RelayExpr, size: Any) -> list[RelayExpr]:
    wanted = _adaptive_size(x, size)
    apply = _ADAPTIVE_MAX[len(wanted) - 1]
    maxima = _batched(x, len(wanted), lambda data: apply(data, output_size=wanted))
    return [maxima, _argmax_positions(x, _adaptive(x, wanted))]


@torch_op(
    "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "_adaptive_avg_pool2d",
    "_adaptive_avg_pool3d",
)  # fmt: skip
def _adaptive_avg_pool(x: RelayExpr, size: Any) -> RelayExpr:
    wanted = _adaptive_size(x, size)
    if wanted == (1, 1):
        return _batched(x, 2, _op.nn.global_avg_pool2d)
    apply = _ADAPTIVE_AVG[len(wanted) - 1]
    return _batched(x, len(wanted), lambda data: apply(data, output_size=wanted))


def _adaptive_size(x: RelayExpr, size: Any) -> tuple[int, ...]:
    """The wanted extents; None keeps one."""
    items = size if isinstance(size, (list, tuple)) else [size] * max(len(infer_shape(x)) - 2, 1)
    spatial = infer_shape(x)[-len(items) :]
    return tuple([
        dim if item is None else as_ints(item)[0] for dim, item in zip(spatial, items, strict=True)
    ])  # fmt: skip


# ---- fractional pooling: windows whose starts a random number for each channel spreads


@torch_op("fractional_max_pool2d", "fractional_max_pool3d")
def _fractional_max_pool(
    x: RelayExpr, kernel: Any, size: Any, samples: RelayExpr
) -> list[RelayExpr]:
    """The maxima of windows, and their positions in an image."""
    # of two axes, the numbers are in the order of width and height
    rank = int(infer_shape(samples)[-1])
    order = [1, 0] if rank == 2 else [0, 1, 2]
    windows, extents = spread(kernel, rank), spread(size, rank)
    return _batched(x, rank, lambda data: _maxima(data, windows, extents, samples, order))


def _maxima(
    x: RelayExpr, windows: Sequence[int], extents: Sequence[int], samples: RelayExpr,
    order: Sequence[int],
) -> list[RelayExpr]:  # fmt: skip
    rank = len(windows)
    batch, channels, *image = infer_shape(x)
    starts = []
    for axis in range(rank):
        sample = _op.take(samples, constant(order[axis], "int64"), 2)
        found = _starts(sample, image[axis], extents[axis], windows[axis])
        along = [extents[axis] if i == axis else 1 for i in range(rank)]
        starts.append(_op.reshape(found, (batch, channels, *along)))
    flat = _op.reshape(x, (batch, channels, -1))
    best: Any = None
    positions: Any = None
    for offsets in itertools.product(*[range(window) for window in windows]):
        at = constant(0, "int64")
        for start, offset, extent in zip(starts, offsets, image, strict=True):
            at = at * constant(extent, "int64") + start + constant(offset, "int64")
        at = _op.reshape(at, (batch, channels, -1))
        value = _op.gather(flat, 2, at)
        if best is None:
            best, positions = value, at
            continue
        is_more = _op.logical_or(_op.greater(value, best), _op.isnan(value))
        best, positions = _op.where(is_more, value, best), _op.where(is_more, at, positions)
    shape = (batch, channels, *extents)
    return [_op.reshape(best, shape), _op.reshape(positions, shape)]


def _starts(sample: RelayExpr, extent: int, count: int, window: int) -> RelayExpr:
    """Where the windows of an axis begin; the last one ends with the image."""
    last = constant(np.full((*infer_shape(sample), 1), extent - window), "int64")
    if count == 1:
        return last
    sample = _op.expand_dims(sample, 2)
    step = scalar_like((extent - window) / (count - 1), sample)
    numbers = constant(np.arange(count - 1), infer_dtype(sample))
    found = _op.cast((sample + numbers) * step, "int64") - _op.cast(sample * step, "int64")
    return _op.concatenate([found, last], 2)
