"""Samples of images between their elements, told by gathers: for gradients.

Each sample is a weighted sum of neighbours; its slope along the position is that of the weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import product

import numpy as np

from tvm.error import OpNotImplemented
from tvm.ir.expr import RelayExpr
from tvm.ir.type import Type
from tvm.relay.analysis.infer import infer_type_of, tensor_type_of
from tvm.relay.expr import Call, const

from .known_shapes import known_shape, sliced
from .registry import ops

# a neighbour along one axis: its position, and its weight
Tap = tuple[RelayExpr, RelayExpr]
_CUBIC_ALPHA = -0.75


class _Places:
    """Positions along one axis of `extent` elements."""

    def __init__(self, extent: int, dtype: str, padding: str, align: bool) -> None:
        self.extent, self.dtype, self.padding, self.align = extent, dtype, padding, align

    def number(self, value: float) -> RelayExpr:
        return const(value, self.dtype)

    def position(self, coordinate: RelayExpr) -> RelayExpr:
        """In elements, of a coordinate in [-1, 1]."""
        shifted = ops.add(coordinate, self.number(1))
        if self.align:
            return ops.multiply(shifted, self.number((self.extent - 1) / 2))
        wide = ops.subtract(ops.multiply(shifted, self.number(self.extent)), self.number(1))
        return ops.multiply(wide, self.number(0.5))

    def inside(self, position: RelayExpr) -> RelayExpr:
        """Moved into the data as the padding says."""
        if self.padding == "zeros":
            return position
        if self.padding == "reflection":
            position = self._reflected(position)
        return ops.clip(position, a_min=0.0, a_max=float(self.extent - 1))

    def _reflected(self, position: RelayExpr) -> RelayExpr:
        low, span = (0.0, self.extent - 1) if self.align else (-0.5, self.extent)
        if span == 0:
            return ops.multiply(position, self.number(0))
        distance = ops.abs(ops.subtract(position, self.number(low)))
        times = ops.floor(ops.divide(distance, self.number(span)))
        rest = ops.subtract(distance, ops.multiply(times, self.number(span)))
        is_even = ops.less(ops.floor_mod(times, self.number(2)), self.number(1))
        return ops.add(
            ops.where(is_even, rest, ops.subtract(self.number(span), rest)), self.number(low)
        )

    def taps(self, position: RelayExpr, method: str) -> list[Tap]:
        """The neighbours that count."""
        if method == "nearest":
            place = ops.round(self.inside(position))
            return [(place, ops.add(ops.multiply(place, self.number(0)), self.number(1)))]
        if method == "bilinear":
            moved = self.inside(position)
            low = ops.floor(moved)
            part = ops.subtract(moved, low)
            return [(low, ops.subtract(self.number(1), part)), (ops.add(low, self.number(1)), part)]
        low = ops.floor(position)
        part = ops.subtract(position, low)
        return [
            (self.inside(ops.add(low, self.number(k))), self._cubic(part, k)) for k in range(-1, 3)
        ]

    def _cubic(self, part: RelayExpr, k: int) -> RelayExpr:
        """The weight of the neighbour k from the one before the position."""
        distance = ops.abs(ops.subtract(part, self.number(k)))
        a = _CUBIC_ALPHA
        factors = (a + 2, -(a + 3), 0, 1) if k in (0, 1) else (a, -5 * a, 8 * a, -4 * a)
        total = self.number(factors[0])
        for factor in factors[1:]:
            total = ops.add(ops.multiply(total, distance), self.number(factor))
        return total

    def is_inside(self, place: RelayExpr) -> RelayExpr:
        last = self.number(self.extent - 1)
        return ops.logical_and(
            ops.greater_equal(place, self.number(0)), ops.less_equal(place, last)
        )


def _sum_of_neighbours(
    rows: RelayExpr, axes: Sequence[_Places], taps: Sequence[Sequence[Tap]]
) -> RelayExpr:
    """(N, C, P) samples of data (N, C, elements), at taps (N, P) along each axis."""
    n, c, _ = known_shape(rows, "samples")
    terms = []
    for corner in product(*taps):
        flat: RelayExpr = const(0.0, axes[0].dtype)
        weight: RelayExpr = const(1.0, axes[0].dtype)
        for axis, (position, share) in zip(axes, corner, strict=True):
            held = ops.clip(position, a_min=0.0, a_max=float(axis.extent - 1))
            flat = ops.add(ops.multiply(flat, axis.number(axis.extent)), held)
            inside = ops.cast(axis.is_inside(position), dtype=axis.dtype)
            weight = ops.multiply(weight, ops.multiply(share, inside))
        count = known_shape(flat, "samples")[1]
        index = ops.reshape(ops.cast(flat, dtype="int64"), newshape=(n, 1, count))
        values = ops.gather(rows, ops.broadcast_to(index, shape=(n, c, count)), axis=2)
        terms.append(ops.multiply(values, ops.reshape(weight, newshape=(n, 1, count))))
    return reduce(ops.add, terms)


def composed_grid_sample(call: Call, arg_types: Sequence[Type]) -> RelayExpr:
    (data, grid), attrs = call.args, call.attrs
    n, c, *extents = known_shape(data, "image.grid_sample")
    positions = known_shape(grid, "image.grid_sample")[2:]
    dtype = tensor_type_of(data).dtype
    axes = [_Places(e, dtype, attrs.padding_mode, attrs.align_corners) for e in extents]
    taps = []
    for k, axis in enumerate(axes):
        which = len(axes) - 1 - k  # the grid names x first, the last axis of the data
        coordinate = ops.reshape(sliced(grid, 1, which, which + 1), newshape=(n, -1))
        taps.append(axis.taps(axis.position(coordinate), attrs.method))
    rows = ops.reshape(data, newshape=(n, c, int(np.prod(extents))))
    return ops.reshape(_sum_of_neighbours(rows, axes, taps), newshape=(n, c, *positions))


def composed_roi_align(call: Call, arg_types: Sequence[Type]) -> RelayExpr:
    (data, rois), attrs = call.args, call.attrs
    if attrs.sample_ratio < 1 or attrs.mode != "avg":
        raise OpNotImplemented(
            "the gradient of vision.roi_align requires the mode avg and a sample_ratio above 0, "
            f"got {attrs.mode} and {attrs.sample_ratio}"
        )
    is_last = attrs.layout == "NHWC"
    first = ops.transpose(data, axes=(0, 3, 1, 2)) if is_last else data
    _, c, *extents = known_shape(first, "vision.roi_align")
    count, dtype = known_shape(rois, "vision.roi_align")[0], tensor_type_of(data).dtype
    which = ops.cast(ops.reshape(sliced(rois, 1, 0, 1), newshape=(count,)), dtype="int32")
    images = ops.reshape(ops.take(first, which, axis=0), newshape=(count, c, int(np.prod(extents))))
    axes = [_Places(e, dtype, "border", True) for e in extents]
    lines = [_samples_of(call, k, axes[k]) for k in range(2)]
    rows, columns = [known_shape(line, "samples")[1] for line in lines]
    taps = []
    for k, (axis, line) in enumerate(zip(axes, lines, strict=True)):
        shape = (count, rows, 1) if k == 0 else (count, 1, columns)
        wide = ops.broadcast_to(ops.reshape(line, newshape=shape), shape=(count, rows, columns))
        position = ops.reshape(wide, newshape=(count, rows * columns))
        taps.append(_clamped_taps(axis, position))
    found = _sum_of_neighbours(images, axes, taps)
    (height, width), ratio = attrs.pooled_size, attrs.sample_ratio
    bins = ops.reshape(found, newshape=(count, c, height, ratio, width, ratio))
    pooled = ops.mean(bins, axis=(3, 5))
    return ops.transpose(pooled, axes=(0, 2, 3, 1)) if is_last else pooled


def _clamped_taps(axis: _Places, position: RelayExpr) -> list[Tap]:
    """Nothing counts more than one element outside."""
    is_near = ops.logical_and(
        ops.greater_equal(position, axis.number(-1)),
        ops.less_equal(position, axis.number(axis.extent)),
    )
    near = ops.cast(is_near, dtype=axis.dtype)
    return [
        (place, ops.multiply(weight, near)) for place, weight in axis.taps(position, "bilinear")
    ]


def _samples_of(call: Call, which: int, axis: _Places) -> RelayExpr:
    """(regions, bins * samples): positions along height (0) or width (1)."""
    rois, attrs = call.args[1], call.attrs
    bins, ratio = attrs.pooled_size[which], attrs.sample_ratio
    shift = 0.5 if attrs.aligned else 0.0
    start, end = [
        ops.subtract(ops.multiply(sliced(rois, 1, k, k + 1), axis.number(attrs.spatial_scale)), axis.number(shift))
        for k in (2 - which, 4 - which)
    ]  # fmt: skip
    extent = ops.subtract(end, start)
    held = extent if attrs.aligned else ops.maximum(extent, axis.number(1))
    steps = np.arange(bins)[:, None] + (np.arange(ratio) + 0.5) / ratio
    parts = const(steps.reshape(1, -1) / bins, axis.dtype)
    found = ops.add(start, ops.multiply(held, parts))
    infer_type_of(found)
    return found
