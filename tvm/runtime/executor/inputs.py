"""Values of inputs as arrays that executors take."""

from __future__ import annotations

from typing import Any

import numpy as np

from tvm.runtime.ndarray import NDArray, array, from_dlpack, share_numpy


def as_tensor(key: str | int, value: Any, element: np.dtype[Any]) -> NDArray:
    """The value of input ``key`` as an array, without a copy where that is possible.

    Numbers, lists and numpy arrays of another width become ``element``, as do integers of the other
    sign that fit; other arrays stay as they are.
    """
    if isinstance(value, NDArray):
        return value
    if value is None:
        raise TypeError(f"input {key!r} needs an array, got None")
    if not isinstance(value, np.ndarray):
        if hasattr(value, "__dlpack__"):
            return from_dlpack(value)
        value = _as_numpy(key, value, element)
    value = as_width(value, element)
    compact = value.flags.c_contiguous and value.dtype.isnative and value.dtype.kind in "biuf"
    return share_numpy(value) if compact else array(value)


def as_width(value: np.ndarray[Any, Any], element: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Numbers of another width as ``element``; integers of the other sign where all of them fit."""
    kinds = {value.dtype.kind, element.kind}
    if value.dtype == element or (len(kinds) == 2 and not _fits(value, element)):
        return value
    return value.astype(element)


def as_number(value: np.ndarray[Any, Any], element: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """As `as_width`, and integers where ``element`` is a float, or floats without a fraction the other way."""
    if value.dtype.kind in "iu" and element.kind == "f":
        return value.astype(element)
    if value.dtype.kind == "f" and element.kind in "iu":
        with np.errstate(invalid="ignore"):
            whole = value.astype(element)
        return whole if (whole == value).all() else value
    return as_width(value, element)


def _fits(value: np.ndarray[Any, Any], element: np.dtype[Any]) -> bool:
    if {value.dtype.kind, element.kind} != {"i", "u"}:
        return False
    limits = np.iinfo(element)
    return not value.size or bool(value.min() >= limits.min and value.max() <= limits.max)


def _as_numpy(key: str | int, value: Any, element: np.dtype[Any]) -> np.ndarray[Any, Any]:
    try:
        return np.asarray(value, None if hasattr(value, "__array__") else element)
    except (TypeError, ValueError):
        raise TypeError(
            f"input {key!r} needs an array or numbers of type {element}, got {value!r}"
        ) from None
