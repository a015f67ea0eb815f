"""Sampling images at positions given by a grid."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

from tvm import te, tir
from tvm.error import RuntimeValueError

from .. import tag
from ..utils import cast_scalar, dims, equals
from .resize import cubic_weights

METHODS = ("bilinear", "nearest", "bicubic")
PADDING_MODES = ("zeros", "border", "reflection")
_CUBIC_ALPHA = -0.75


def affine_grid(data: te.Tensor, target_shape: Sequence[int]) -> te.Tensor:
    """The grids that affine maps make of a regular one.

    Parameters
    ----------
    data : te.Tensor
        (batch, 2, 3): the maps from output to input coordinates, both in [-1, 1].
    target_shape : sequence of int
        The height and width of the grids.

    Returns
    -------
    te.Tensor
        (batch, 2, height, width): x, then y.
    """
    height, width = dims(target_shape)

    def along(index: Any, extent: int) -> Any:
        step = 2.0 / (extent - 1) if extent > 1 else 0.0
        return index.astype(data.dtype) * tir.const(step, data.dtype) - tir.const(1.0, data.dtype)

    def element(n: Any, k: Any, y: Any, x: Any) -> Any:
        return data(n, k, 0) * along(x, width) + data(n, k, 1) * along(y, height) + data(n, k, 2)

    return te.compute(
        (dims(data.shape)[0], 2, height, width), element, name="affine_grid", tag=tag.INJECTIVE
    )


def grid_sample(
    data: te.Tensor,
    grid: te.Tensor,
    method: str = "bilinear",
    layout: str = "NCHW",
    padding_mode: str = "zeros",
    align_corners: bool = True,
) -> te.Tensor:
    """Sample images at the positions of a grid.

    Parameters
    ----------
    data : te.Tensor
        The images, NCHW or NCDHW.
    grid : te.Tensor
        (batch, 2, height, width) or (batch, 3, depth, height, width): x, y (and z) in [-1, 1].
    method : str
        "bilinear", "nearest" or, for NCHW, "bicubic".
    layout : str
        "NCHW" or "NCDHW".
    padding_mode : str
        What lies outside: "zeros", the "border"'s elements, or a "reflection" of the inside.
    align_corners : bool
        Whether -1 and 1 are the centres of the corner elements, or their outer edges.
    """
    if layout not in ("NCHW", "NCDHW"):
        raise RuntimeValueError(f"grid_sample requires a layout of NCHW or NCDHW, got {layout!r}")
    rank = len(layout) - 2
    if method not in METHODS[: 3 if rank == 2 else 2]:
        raise RuntimeValueError(f"grid_sample of {layout} does not know the method {method!r}")
    if padding_mode not in PADDING_MODES:
        raise RuntimeValueError(
            f"grid_sample requires a padding_mode of {', '.join(PADDING_MODES)}, got {padding_mode!r}"
        )
    extents = dims(data.shape)[2:]
    sampler = _Sampler(data, padding_mode, align_corners)

    def element(n: Any, c: Any, *place: Any) -> Any:
        # the grid names x first, the last axis of the data
        coordinates = [grid(n, rank - 1 - k, *place) for k in range(rank)]
        positions = [sampler.position(v, extents[k]) for k, v in enumerate(coordinates)]
        return getattr(sampler, method)(n, c, positions)

    shape = [*dims(data.shape)[:2], *dims(grid.shape)[2:]]
    return te.compute(shape, element, name="grid_sample", tag=tag.INJECTIVE)


class _Sampler:
    """Values of one tensor at fractional positions."""

    def __init__(self, data: te.Tensor, padding_mode: str, align_corners: bool) -> None:
        self.data = data
        self.extents = dims(data.shape)[2:]
        self.padding_mode = padding_mode
        self.align_corners = align_corners

    def position(self, coordinate: Any, extent: int) -> Any:
        """The position in elements of a coordinate in [-1, 1]."""
        one, half = tir.const(1.0, coordinate.dtype), tir.const(0.5, coordinate.dtype)
        if self.align_corners:
            return (coordinate + one) * half * cast_scalar(extent - 1, coordinate.dtype)
        return ((coordinate + one) * cast_scalar(extent, coordinate.dtype) - one) * half

    def inside(self, position: Any, extent: int) -> Any:
        """A position moved into the data as the padding mode says."""
        if self.padding_mode == "zeros":
            return position
        if self.padding_mode == "reflection":
            position = self._reflected(position, extent)
        last = cast_scalar(extent - 1, position.dtype)
        return tir.max(tir.min(position, last), tir.const(0.0, position.dtype))

    def _reflected(self, position: Any, extent: int) -> Any:
        # mirrors stand at the corners' centres, or half an element outside
        low, span = (0.0, extent - 1) if self.align_corners else (-0.5, extent)
        if isinstance(span, int) and span == 0:
            return tir.const(0.0, position.dtype)
        start, width = tir.const(low, position.dtype), cast_scalar(span, position.dtype)
        distance = tir.abs(position - start)
        times = tir.floor(distance / width)
        rest = distance - times * width
        is_even = equals(tir.floormod(times.astype("int32"), 2), 0)
        return tir.Select(is_even, rest + start, width - rest + start)

    def element(self, n: Any, c: Any, place: Sequence[Any]) -> Any:
        """The element at an integer position, 0 outside."""
        within = [
            condition
            for p, extent in zip(place, self.extents, strict=True)
            for condition in (p >= 0, p < extent)
        ]
        outside = tir.const(0, self.data.dtype)
        if any(isinstance(w, tir.IntImm) and not w.value for w in within):
            return outside  # of an axis of one element, whose neighbours are constants
        return tir.if_then_else(tir.all(*within), self.data(n, c, *place), outside)

    def nearest(self, n: Any, c: Any, positions: Sequence[Any]) -> Any:
        """The nearest element; halves go to the even one."""
        indices = [
            tir.nearbyint(self.inside(p, e)).astype("int32")
            for p, e in zip(positions, self.extents, strict=True)
        ]
        return self.element(n, c, indices)

    def bilinear(self, n: Any, c: Any, positions: Sequence[Any]) -> Any:
        """The weighted mean of the elements around a position."""
        along = []
        for p, extent in zip(positions, self.extents, strict=True):
            moved = self.inside(p, extent)
            low = tir.floor(moved)
            t, index = moved - low, low.astype("int32")
            along.append([(index, tir.const(1.0, t.dtype) - t), (index + 1, t)])
        return self._sum(n, c, along)

    def bicubic(self, n: Any, c: Any, positions: Sequence[Any]) -> Any:
        """The cubic mean of the sixteen elements around a position."""
        along = []
        for p, extent in zip(positions, self.extents, strict=True):
            low = tir.floor(p)
            taps = []
            for k, weight in enumerate(cubic_weights(p - low, _CUBIC_ALPHA)):
                moved = self.inside(low + tir.const(k - 1, low.dtype), extent)
                taps.append((moved.astype("int32"), weight))
            along.append(taps)
        return self._sum(n, c, along)

    def _sum(self, n: Any, c: Any, along: Sequence[Sequence[tuple[Any, Any]]]) -> Any:
        total: Any = None
        for taps in product(*along):
            value = self.element(n, c, [position for position, _ in taps])
            for _, weight in taps:
                value = value * weight.astype(value.dtype)
            total = value if total is None else total + value
        return total
