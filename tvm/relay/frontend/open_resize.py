"""Resizing of one axis by a factor, or of an extent, that only the run knows."""

from __future__ import annotations

from collections.abc import Callable

from tvm.ir.expr import RelayExpr
from tvm.relay import op as _op
from tvm.relay.frontend.common import constant, infer_dtype, infer_shape
from tvm.relay.frontend.extents import as_vector, counting, extent
from tvm.relay.frontend.resize import Resizing

COORDINATES = (
    "half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric", "tf_half_pixel_for_nn",
)  # fmt: skip


def resize_open_axis(x: RelayExpr, axis: int, factor: RelayExpr, how: Resizing) -> RelayExpr:
    """Resize an axis by a factor (a vector of one number) to the whole part of its product."""
    have = _op.cast(as_vector(extent(x, axis)), "float32")
    want = _op.floor(have * factor)
    out = _op.cast(counting(_op.cast(want, "int64")), "float32")
    zero = constant(0.0, "float32")
    last = have - _number(1.0)
    at = _source_positions(out, have, want, factor, how.coordinates)
    if how.method == "nearest_neighbor":
        places = _op.maximum(_op.minimum(_ROUNDING[how.rounding](at), last), zero)
        return _op.take(x, _op.cast(places, "int64"), axis)
    at = _op.maximum(_op.minimum(at, last), zero)
    low = _op.floor(at)
    along = [-1 if i == axis else 1 for i in range(len(infer_shape(x)))]
    share = _op.cast(_op.reshape(at - low, along), infer_dtype(x))
    first, second = [
        _op.take(x, _op.cast(_op.minimum(place, last), "int64"), axis)
        for place in (low, low + _number(1.0))
    ]
    return first * (_op.ones_like(share) - share) + second * share


def _source_positions(
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


def _number(value: float) -> RelayExpr:
    return constant([value], "float32")


_ROUNDING: dict[str, Callable[[RelayExpr], RelayExpr]] = {
    "floor": _op.floor,
    "ceil": _op.ceil,
    "round_prefer_floor": lambda at: _op.ceil(at - _number(0.5)),
    "round_prefer_ceil": lambda at: _op.floor(at + _number(0.5)),
}
