"""Resizing by dynamic factors or to dynamic extents: each axis by indices and weights.

out[i] = x[low] * (1 - part) + x[low + 1] * part    where low + part is where i lies in x

The tables of `resize` are computed at run time here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from tvm.error import OpAttributeUnImplemented
from tvm.ir.expr import RelayExpr
from tvm.relay import op as _op
from tvm.relay.frontend.common import constant, infer_dtype, infer_shape
from tvm.relay.frontend.dynamic_extents import extent, iota
from tvm.relay.frontend.resize import Resizing

from .indexing import along_axis

Extents = tuple[Any, Any]


def resize_dynamic_axis(
    x: RelayExpr, axis: int, factor: Any, want: Any, how: Resizing, region: Extents = (0.0, 1.0)
) -> RelayExpr:
    """Resize an axis by a factor to an extent, numbers or vectors of one, one of which may be None.

    ``region`` is the part, from and to, that "tf_crop_and_resize" shows.
    """
    have = _float(extent(x, axis))
    if want is None:
        size = _op.floor(have * _float(factor))
        count: Any = _op.cast(size, "int64")
    else:
        size, count = _float(want), want
    scale = size / have if factor is None else _float(factor)
    whole = size if factor is None else have * scale  # before it was rounded to an extent
    out = _op.cast(iota(count), "float32")
    if how.coordinates == "tf_crop_and_resize":
        at = _positions_in_region(out, have, size, *[_float(bound) for bound in region])
    else:
        at = _positions(out, have, size, scale, whole, how.coordinates)
    result = _resampled(x, axis, at, scale, how)
    if how.coordinates != "tf_crop_and_resize":
        return result
    outside = _op.logical_or(_op.less(at, _number(0.0)), _op.greater(at, have - _number(1.0)))
    outside = _op.reshape(outside, along_axis(axis, len(infer_shape(x))))
    return _op.where(outside, constant(how.extrapolation, infer_dtype(x)), result)


def resize_to_dynamic_extents(x: RelayExpr, wanted: Sequence[Any], how: Resizing) -> RelayExpr:
    """Resize the last axes to extents (numbers or vectors of one), one axis after the other."""
    for axis, size in enumerate(wanted, len(infer_shape(x)) - len(wanted)):
        have, want = _float(extent(x, axis)), _float(size)
        out = _op.cast(iota(size), "float32")
        at = _positions_by_extents(out, have, want, how.coordinates)
        x = _resampled(x, axis, at, want / have, how)
    return x


def _resampled(
    x: RelayExpr, axis: int, at: RelayExpr, factor: RelayExpr, how: Resizing
) -> RelayExpr:
    """The elements of an axis at positions, which may lie outside of it."""
    if how.antialias:
        return _smoothed(x, axis, at, factor, how)
    zero, last = _number(0.0), _float(extent(x, axis)) - _number(1.0)

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
    if how.exclude_outside:
        weights = _inside_alone(x, axis, positions, weights)
    first, *taps = [element(p) * w for p, w in zip(positions, weights, strict=True)]
    return first + taps[0] + taps[1] + taps[2]


def _inside_alone(
    x: RelayExpr, axis: int, positions: list[RelayExpr], weights: list[RelayExpr]
) -> list[RelayExpr]:
    """The weights with none for positions outside; the others have the sum of one again."""
    rank, last = len(infer_shape(x)), _float(extent(x, axis)) - _number(1.0)
    kept = []
    for at, weight in zip(positions, weights, strict=True):
        is_inside = _is_within(at, last)
        is_inside = _op.reshape(is_inside, along_axis(axis, rank))
        kept.append(_op.where(is_inside, weight, _op.zeros_like(weight)))
    total = kept[0] + kept[1] + kept[2] + kept[3]
    return [weight / total for weight in kept]


def _is_within(at: RelayExpr, last: RelayExpr) -> RelayExpr:
    return _op.logical_and(_op.greater_equal(at, _number(0.0)), _op.less_equal(at, last))


def _smoothed(
    x: RelayExpr, axis: int, at: RelayExpr, factor: RelayExpr, how: Resizing
) -> RelayExpr:
    """Each element made of all that it covers when shrinking: how many, the run knows."""
    if how.method not in _REACH:
        raise OpAttributeUnImplemented(
            f"a resize with antialias requires extents known at import for the method {how.method}"
        )
    scale, rank = _op.minimum(factor, _number(1.0)), len(infer_shape(x))
    start = _op.floor(_number(-_REACH[how.method]) / scale) + _number(1.0)
    count = _op.cast(_number(2.0) - start - start, "int64")
    offsets = _op.expand_dims(_op.cast(iota(count), "float32") + start, 0)
    low, last = _op.expand_dims(_op.floor(at), 1), _float(extent(x, axis)) - _number(1.0)
    distance = _op.abs(offsets - (_op.expand_dims(at, 1) - low)) * scale
    weights = _kernel(distance, how)
    positions = low + offsets
    if how.exclude_outside:
        is_inside = _is_within(positions, last)
        weights = _op.where(is_inside, weights, _op.zeros_like(weights))
    weights = weights / _op.sum(weights, 1, keepdims=True)
    within = _op.maximum(_op.minimum(positions, last), _number(0.0))
    weights = _op.cast(weights, infer_dtype(x))
    for _ in range(rank - axis - 1):
        weights = _op.expand_dims(weights, -1)
    return _op.sum(_op.take(x, _op.cast(within, "int64"), axis) * weights, axis + 1)


# how far an element's influence goes
_REACH = {"linear": 1.0, "cubic": 2.0}


def _kernel(distance: RelayExpr, how: Resizing) -> RelayExpr:
    """The weights of elements at distances from a position."""
    one, zero = _number(1.0), _number(0.0)
    if how.method == "linear":
        return _op.maximum(one - distance, zero)
    near, far = _cubic_near(distance, how.alpha), _cubic_far(distance - one, how.alpha)
    two = _number(2.0)
    return _op.where(
        _op.less_equal(distance, one), near, _op.where(_op.less(distance, two), far, zero * far)
    )


def _cubic_weights(part: RelayExpr, alpha: float) -> list[RelayExpr]:
    """Of the two elements before a position and the two behind it."""
    other = constant(1.0, infer_dtype(part)) - part
    return [
        _cubic_far(part, alpha), _cubic_near(part, alpha), _cubic_near(other, alpha),
        _cubic_far(other, alpha),
    ]  # fmt: skip


def _cubic_near(t: RelayExpr, alpha: float) -> RelayExpr:
    """The cubic convolution kernel at the distance t, up to one."""
    number = partial(constant, dtype=infer_dtype(t))
    return (number(alpha + 2) * t - number(alpha + 3)) * t * t + number(1.0)


def _cubic_far(t: RelayExpr, alpha: float) -> RelayExpr:
    """The same at the distance 1 + t."""
    number = partial(constant, dtype=infer_dtype(t))
    return ((number(alpha) * t - number(2 * alpha)) * t + number(alpha)) * t


def _positions(
    out: RelayExpr, have: RelayExpr, want: RelayExpr, factor: RelayExpr, whole: RelayExpr,
    coordinates: str,
) -> RelayExpr:  # fmt: skip
    """Where the output's elements lie in the input; ``whole`` is ``want`` before it was rounded."""
    half, one, zero = _number(0.5), _number(1.0), _number(0.0)
    if coordinates == "align_corners":
        room = whole - one
        ratio = _op.where(_op.greater(room, zero), (have - one) / room, _op.zeros_like(room))
        return out * _op.where(_op.greater(want, one), ratio, _op.zeros_like(ratio))
    if coordinates == "asymmetric":
        return out / factor
    if coordinates == "tf_half_pixel_for_nn":
        return (out + half) / factor
    at = (out + half) / factor - half
    if coordinates == "pytorch_half_pixel":
        return _op.where(_op.greater(want, one), at, _op.zeros_like(at))
    if coordinates == "half_pixel_symmetric":
        return at + have * half * (one - want / whole)
    return at


def _positions_in_region(
    out: RelayExpr, have: RelayExpr, want: RelayExpr, start: RelayExpr, end: RelayExpr
) -> RelayExpr:
    """Where the output's elements lie in the input if it shows a part of it alone."""
    one, last = _number(1.0), have - _number(1.0)
    step = (end - start) * last / _op.maximum(want - one, one)
    centre = _number(0.5) * (start + end) * last
    return _op.where(_op.greater(want, one), start * last + out * step, centre + out * step)


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


def _float(number: Any) -> RelayExpr:
    """A number, or a vector of one, as a vector of one float."""
    if isinstance(number, (int, float)):
        return _number(float(number))
    return _op.cast(number, "float32")


def _number(value: float) -> RelayExpr:
    return constant([value], "float32")


_ROUNDING: dict[str, Callable[[RelayExpr], RelayExpr]] = {
    "floor": _op.floor,
    "ceil": _op.ceil,
    "round_prefer_floor": lambda at: _op.ceil(at - _number(0.5)),
    "round_prefer_ceil": lambda at: _op.floor(at + _number(0.5)),
}
