"""Resizing images to or from sizes that are known at run time only: each axis by indices.

out[i] = x[low] * (1 - part) + x[low + 1] * part    where low + part is where i lies in x
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from tvm.ir.expr import RelayExpr
from tvm.relay import op as _op
from tvm.relay.frontend.common import constant, infer_dtype, infer_shape

from .open_shapes import size_of
from .registry import as_dtype


def resize_open(x: RelayExpr, sizes: Sequence[Any], method: str, coordinates: str) -> RelayExpr:
    """Resize the last axes, one after the other."""
    first = len(infer_shape(x)) - len(sizes)
    for axis, size in enumerate(sizes, first):
        x = _resized(x, axis, size, method, coordinates)
    return x


def _resized(x: RelayExpr, axis: int, want: Any, method: str, coordinates: str) -> RelayExpr:
    have = as_dtype(size_of(x, axis), "int64")
    zero, one = constant(0, "int64"), constant(1, "int64")
    places = _op.arange(zero, as_dtype(want, "int64"), one, "int64")
    at = _positions(_op.cast(places, "float32"), have, as_dtype(want, "int64"), coordinates)
    if method == "linear":
        at = _op.maximum(at, constant(0.0, "float32"))
    low = _op.cast(_op.floor(at), "int64")

    def element(distance: int) -> RelayExpr:
        place = low + constant(distance, "int64")
        return _op.take(x, _op.maximum(_op.minimum(place, have - one), zero), axis)

    if method == "nearest_neighbor":
        return element(0)
    part = as_dtype(at - _op.floor(at), infer_dtype(x))
    part = _op.reshape(part, (-1, *[1] * (len(infer_shape(x)) - axis - 1)))
    if method == "linear":
        return element(0) + (element(1) - element(0)) * part
    taps = [element(i) * weight for i, weight in enumerate(_cubic_weights(part), -1)]
    return taps[0] + taps[1] + taps[2] + taps[3]


def _cubic_weights(part: RelayExpr) -> list[RelayExpr]:
    """Of the two elements before a position and the two behind it; the coefficient is -0.75."""
    number = partial(constant, dtype=infer_dtype(part))
    other = number(1.0) - part

    def outer(t: RelayExpr) -> RelayExpr:  # at the distance 1 + t
        return ((number(-0.75) * t + number(1.5)) * t - number(0.75)) * t

    def inner(t: RelayExpr) -> RelayExpr:
        return (number(1.25) * t - number(2.25)) * t * t + number(1.0)

    return [outer(part), inner(part), inner(other), outer(other)]


def _positions(out: RelayExpr, have: RelayExpr, want: RelayExpr, coordinates: str) -> RelayExpr:
    """Where elements lie in the input."""
    extent, wanted = _op.cast(have, "float32"), _op.cast(want, "float32")
    one, half = constant(1.0, "float32"), constant(0.5, "float32")
    if coordinates == "align_corners":
        return out * ((extent - one) / _op.maximum(wanted - one, one))
    if coordinates == "asymmetric":
        return out * (extent / wanted)
    return (out + half) * (extent / wanted) - half
