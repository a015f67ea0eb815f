"""Resizing by a factor that the extents do not tell: each axis by tables of indices and weights.

out[i] = sum of x[index[i, k]] * weight[i, k] over k
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tvm.ir.expr import RelayExpr
from tvm.relay import op as _op
from tvm.relay.frontend.common import constant, infer_dtype, infer_shape

from .indexing import along_axis

Array = np.ndarray

_ROUNDING: dict[str, Callable[[Array], Array]] = {
    "floor": np.floor,
    "ceil": np.ceil,
    "round_prefer_floor": lambda x: np.ceil(x - 0.5),
    "round_prefer_ceil": lambda x: np.floor(x + 0.5),
}


@dataclass(frozen=True)
class Resizing:
    """How an axis is resized."""

    method: str  # nearest_neighbor, linear, cubic or lanczos
    coordinates: str
    rounding: str = "floor"  # of the nearest neighbour
    alpha: float = -0.75  # the coefficient of cubic interpolation
    antialias: bool = False  # when shrinking, an element is made of all that it covers
    exclude_outside: bool = False  # what lies outside has no weight
    extrapolation: float = 0.0  # the value outside of a crop


def is_exact(have: Sequence[int], want: Sequence[int], factors: Sequence[float]) -> bool:
    """Whether the extents alone tell the factors."""
    return all(h * f == w for h, w, f in zip(have, want, factors, strict=True))


def has_ties(have: Sequence[int], want: Sequence[int]) -> bool:
    """Whether positions may lie in the middle of two elements."""
    return any(w % h and h % w for h, w in zip(have, want, strict=True))


_RESIZE = (_op.image.resize1d, _op.image.resize2d, _op.image.resize3d)


def resize_images(x: RelayExpr, size: Any, how: Resizing) -> RelayExpr:
    """Resize all axes of (batch, channels, ...) but the first two."""
    rank = len(infer_shape(x)) - 2
    return _RESIZE[rank - 1](
        x, size, layout=("NCW", "NCHW", "NCDHW")[rank - 1], method=how.method,
        coordinate_transformation_mode=how.coordinates, rounding_method=how.rounding,
        cubic_alpha=how.alpha,
    )  # fmt: skip


def resize_axes(
    x: RelayExpr, axes: Sequence[int], want: Sequence[int], factors: Sequence[float], how: Resizing
) -> RelayExpr:
    """Resize axes one after the other."""
    for axis, size, factor in zip(axes, want, factors, strict=True):
        x = resize_axis(x, axis, size, factor, how)
    return x


def resize_axis(
    x: RelayExpr, axis: int, want: int, factor: float, how: Resizing,
    region: tuple[float, float] = (0.0, 1.0),
) -> RelayExpr:  # fmt: skip
    """Resize one axis; ``region`` is the part that "tf_crop_and_resize" shows."""
    have = infer_shape(x)[axis]
    at = source_positions(have, want, factor, how.coordinates, region)
    if how.method == "nearest_neighbor":
        result = _op.take(x, _indices(_ROUNDING[how.rounding](at), have), axis)
    else:
        result = _interpolated(x, axis, at, factor, how)
    outside = (at < 0) | (at > have - 1)
    if how.coordinates != "tf_crop_and_resize" or not outside.any():
        return result
    is_outside = constant(outside.reshape(along_axis(axis, len(infer_shape(x)))))
    return _op.where(is_outside, constant(how.extrapolation, infer_dtype(x)), result)


def source_positions(
    have: int, want: int, factor: float, coordinates: str,
    region: tuple[float, float] = (0.0, 1.0),
) -> Array:  # fmt: skip
    """Where the output's elements lie in the input."""
    out, scale = np.arange(want, dtype="float32"), np.float32(factor)
    if coordinates == "align_corners":
        # the extent by the factor, which may be a fraction, not the rounded one
        room = have * factor - 1
        return np.asarray(out * np.float32((have - 1) / room if room > 0 and want > 1 else 0))
    if coordinates == "asymmetric":
        return np.asarray(out / scale)
    if coordinates == "tf_half_pixel_for_nn":
        return np.asarray((out + np.float32(0.5)) / scale)
    if coordinates == "tf_crop_and_resize":
        start, end = region
        if want == 1:
            return np.full(1, 0.5 * (start + end) * (have - 1), "float32")
        step = (end - start) * (have - 1) / (want - 1)
        return np.asarray(start * (have - 1) + out * step, "float32")
    if coordinates == "pytorch_half_pixel" and want == 1:
        return np.full(1, 0.0, "float32")
    # divided, as halves have to stay halves: they are rounded
    at: Array = (out + np.float32(0.5)) / scale - np.float32(0.5)
    if coordinates == "half_pixel_symmetric":
        at = at + np.float32(have / 2 * (1 - want / (have * factor)))
    return at


def _interpolated(x: RelayExpr, axis: int, at: Array, factor: float, how: Resizing) -> RelayExpr:
    shape = infer_shape(x)
    taps, weights = _taps(at, factor if how.antialias else 1.0, how)
    if how.exclude_outside:
        weights = np.where((taps >= 0) & (taps < shape[axis]), weights, 0)
        weights = weights / weights.sum(1, keepdims=True)
    total = None
    for position, weight in zip(taps.T, weights.T, strict=True):
        picked = _op.take(x, _indices(position, shape[axis]), axis)
        part = picked * constant(weight.reshape(along_axis(axis, len(shape))), infer_dtype(x))
        total = part if total is None else total + part
    assert total is not None
    return total


def _taps(at: Array, factor: float, how: Resizing) -> tuple[Array, Array]:
    """For each output the elements it is made of and their weights, (outputs, taps) both."""
    scale = min(factor, 1.0)
    reach = {"linear": 1, "cubic": 2, "lanczos": 3}[how.method]
    start = int(np.floor(-reach / scale)) + 1
    offsets = np.arange(start, 2 - start if how.method != "linear" or scale < 1 else 2)
    low = np.floor(at)
    distance = np.abs(offsets - (at - low)[:, None]) * scale
    if how.method == "linear":
        weights = np.clip(1 - distance, 0, 1)
    elif how.method == "cubic":
        weights = _cubic(distance, how.alpha)
    else:
        weights = np.where(distance < 3, np.sinc(distance) * np.sinc(distance / 3), 0)
    if scale < 1:
        weights = weights / weights.sum(1, keepdims=True)
    return low[:, None] + offsets, weights


def _cubic(d: Array, alpha: float) -> Array:
    """The cubic convolution kernel at distance ``d``."""
    near = ((alpha + 2) * d - (alpha + 3)) * d * d + 1
    far = ((alpha * d - 5 * alpha) * d + 8 * alpha) * d - 4 * alpha
    return np.where(d <= 1, near, np.where(d < 2, far, 0))


def _indices(values: Array, extent: int) -> RelayExpr:
    return constant(np.clip(values, 0, extent - 1).astype("int64"))
