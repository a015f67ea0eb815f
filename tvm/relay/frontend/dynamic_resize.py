"""Resizing by dynamic factors or to dynamic extents: each axis by indices and weights.

out[i] = x[low] * (1 - part) + x[low + 1] * part    where low + part is where i lies in x
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from tvm.ir.expr import RelayExpr
from tvm.relay import op as _op
from tvm.relay.frontend.common import constant, infer_dtype, infer_shape
from tvm.relay.frontend.dynamic_extents import as_vector, extent, iota
from tvm.relay.frontend.resize import Resizing

from .indexing import along_axis

COORDINATES = (
    "half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric", "tf_half_pixel_for_nn",
)  # fmt: skip


def resize_by_dynamic_factor(
    x: RelayExpr, axis: int, factor: RelayExpr, how: Resizing
) -> RelayExpr:
    """Resize an axis by a factor (a vector of one number) to the floor of its product."""
    have = _op.cast(as_vector(extent(x, axis)), "float32")
    want = _op.floor(have * factor)
    out = _op.cast(iota(_op.cast(want, "int64")), "float32")
    return _resampled(x, axis, _positions_by_factor(out, have, want, factor, how.coordinates), how)


def resize_to_dynamic_extents(x: RelayExpr, wanted: Sequence[Any], how: Resizing) -> RelayExpr:
    """Resize the last axes to extents (numbers or vectors of one), one axis after the other."""
    for axis, size in enumerate(wanted, len(infer_shape(x)) - len(wanted)):
        have, want = [_op.cast(as_vector(e), "float32") for e in (extent(x, axis), size)]
        out = _op.cast(iota(size), "float32")
        x = _resampled(x, axis, _positions_by_extents(out, have, want, how.coordinates), how)
    return x


def _resampled(x: RelayExpr, axis: int, at: RelayExpr, how: Resizing) -> RelayExpr:
    """The elements of an axis at positions, which may lie outside of it."""
    zero, last = _number(0.0), _op.cast(as_vector(extent(x, axis)), "float32") - _number(1.0)

    def element(position: RelayExpr) -> RelayExpr:
        within = _op.maximum(_op.minimum(position, last), zero)
        return _op.take(x, _op.cast(within, "int64"), axis)

    if how.method == "nearest_neighbor":
        return element(_ROUNDING[how.rounding](at))
    at = _op.maximum(_op.minimum(at, last), zero) if how.method == "linear" else at
    low = _op.floor(at)
    share = _op.reshape(at - low, along_axis(axis, len(infer_shape(x))))
    share = _op.cast(share, infer_dtype(x))
    if how.method == "linear":
        rest = _op.ones_like(share) - share
        return element(low) * rest + element(low + _number(1.0)) * share
    positions = [low + _number(float(i)) for i in range(-1, 3)]
    weights = _cubic_weights(share, how.alpha)
    first, *taps = [element(p) * w for p, w in zip(positions, weights, strict=True)]
    return first + taps[0] + taps[1] + taps[2]


def _cubic_weights(part: RelayExpr, alpha: float) -> list[RelayExpr]:
    """Of the two elements before a position and the two behind it."""
    number = partial(constant, dtype=infer_dtype(part))
    other = number(1.0) - part

    def outer(t: RelayExpr) -> RelayExpr:  # at the distance 1 + t
        return ((number(alpha) * t - number(2 * alpha)) * t + number(alpha)) * t

    def inner(t: RelayExpr) -> RelayExpr:
        return (number(alpha + 2) * t - number(alpha + 3)) * t * t + number(1.0)

    return [outer(part), inner(part), inner(other), outer(other)]


def _positions_by_factor(
    out: RelayExpr, have: RelayExpr, want: RelayExpr, factor: RelayExpr, coordinates: str
) -> RelayExpr:
    """Where the output's elements lie in the input."""
    half, one, zero = _number(0.5), _number(1.0), _number(0.0)
    if coordinates == "align_corners":
        room = have * factor - one
        ratio = _op.where(_op.greater(room, zero), (have - one) / room, _op.zeros_like(room))
        return out * _op.where(_op.greater(want, one), ratio, _op.zeros_like(ratio))
    if coordinates == "asymmetric":
        return out / factor
    if coordinates == "tf_half_pixel_for_nn":
        return (out + half) / factor
    at = (out + half) / factor - half
    if coordinates == "pytorch_half_pixel":
        return _op.where(_op.greater(want, one), at, _op.zeros_like(at))
    return at


def _positions_by_extents(
    out: RelayExpr, have: RelayExpr, want: RelayExpr, coordinates: str
) -> RelayExpr:
    """The same by the extents alone."""
    half, one = _number(0.5), _number(1.0)
    if coordinates == "align_corners":
        return out * ((have - one) / _op.maximum(want - one, one))
    if coordinates == "asymmetric":
        return out * (have / want)
    return (out + half) * (have / want) - half


def _number(value: float) -> RelayExpr:
    return constant([value], "float32")


_ROUNDING: dict[str, Callable[[RelayExpr], RelayExpr]] = {
    "floor": _op.floor,
    "ceil": _op.ceil,
    "round_prefer_floor": lambda at: _op.ceil(at - _number(0.5)),
    "round_prefer_ceil": lambda at: _op.floor(at + _number(0.5)),
}
