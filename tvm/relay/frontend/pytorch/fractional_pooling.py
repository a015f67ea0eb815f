"""Fractional max pooling: windows whose starts a random number for each channel spreads."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from tvm.ir.expr import RelayExpr
from tvm.relay import op as _op
from tvm.relay.frontend.common import constant, infer_dtype, infer_shape, scalar_like

from .pooling import batched
from .registry import spread, torch_op


@torch_op("fractional_max_pool2d", "fractional_max_pool3d")
def _fractional_max_pool(
    x: RelayExpr, kernel: Any, size: Any, samples: RelayExpr
) -> list[RelayExpr]:
    """The maxima of windows, and their positions in an image."""
    # of two axes, the numbers are in the order of width and height
    rank = int(infer_shape(samples)[-1])
    order = [1, 0] if rank == 2 else [0, 1, 2]
    windows, extents = spread(kernel, rank), spread(size, rank)
    return batched(x, rank, lambda data: _maxima(data, windows, extents, samples, order))


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
