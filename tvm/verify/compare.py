"""When two tensors agree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

# of the largest element of a tensor, for each float type; kernels add in other orders
_SHARES = {"float64": 1e-6, "float32": 1e-3, "float16": 1e-2, "bfloat16": 5e-2}
# quantised graphs: one step of 8 bits is 1/127 of the range, and a few steps may add up
_QUANTISED_SHARE = 0.04


@dataclass(frozen=True)
class Tolerance:
    """How much two tensors may differ.

    Attributes
    ----------
    rtol : float, optional
        Of each element; by default according to the element type.
    atol : float, optional
        Of the tensor's largest element; by default according to the element type.
    quantised : bool
        Whether the graph quantises: integers of 8 bits may differ by one step.
    """

    rtol: float | None = None
    atol: float | None = None
    quantised: bool = False

    def allowed(self, expected: np.ndarray[Any, Any]) -> np.ndarray[Any, Any] | float:
        """The allowed error of each element."""
        if expected.dtype.kind in "iub":
            return 1.0 if self.quantised and expected.dtype.itemsize == 1 else 0.0
        share = self.share(expected)
        wide = np.abs(_wide(expected))
        finite = wide[np.isfinite(wide)]
        largest = float(finite.max()) if finite.size else 0.0
        rtol, atol = (share if given is None else given for given in (self.rtol, self.atol))
        return rtol * np.where(np.isfinite(wide), wide, 0.0) + atol * largest

    def share(self, expected: np.ndarray[Any, Any]) -> float:
        """The error that is usual for an element type, as a share of the largest element."""
        return _QUANTISED_SHARE if self.quantised else _SHARES.get(str(expected.dtype), 5e-2)


@dataclass(frozen=True)
class Difference:
    """How two tensors differ.

    Attributes
    ----------
    reason : str
        "shape", "dtype", "values" or "nothing" if one of them is missing.
    error : float
        The largest error, as a share of the largest element.
    """

    reason: str
    error: float
    text: str

    def __str__(self) -> str:
        return self.text


def largest_error(found: Any, expected: np.ndarray[Any, Any]) -> float:
    """The largest error as a share of the largest element."""
    if not isinstance(found, np.ndarray) or found.shape != expected.shape:
        return float("inf")
    error = _errors(found, expected)
    wide = np.abs(_wide(expected))
    finite = wide[np.isfinite(wide)]
    scale = float(finite.max()) if finite.size and finite.max() > 0 else 1.0
    return float(error.max()) / scale if error.size else 0.0


def compare(found: Any, expected: np.ndarray[Any, Any], tolerance: Tolerance) -> Difference | None:
    """How a tensor differs from what is expected, None if the two agree."""
    if not isinstance(found, np.ndarray):
        return Difference("nothing", float("inf"), f"got {type(found).__name__}, not a tensor")
    if found.shape != expected.shape:
        text = f"got the shape {found.shape}, expected {expected.shape}"
        return Difference("shape", float("inf"), text)
    if found.dtype != expected.dtype:
        text = f"got the type {found.dtype}, expected {expected.dtype}"
        return Difference("dtype", float("inf"), text)
    error = _errors(found, expected)
    wrong = error > tolerance.allowed(expected)
    if not wrong.any():
        return None
    place = np.unravel_index(int(np.argmax(np.where(wrong, error, -1.0))), error.shape)
    share = 100.0 * float(wrong.mean())
    return Difference(
        "values", largest_error(found, expected),
        f"{share:.3g} % of {error.size} elements differ, most at {tuple(int(i) for i in place)}: "
        f"got {found[place]}, expected {expected[place]}",
    )  # fmt: skip


def _errors(found: np.ndarray[Any, Any], expected: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The distance of each two elements; infinite where only one of them is finite."""
    a, b = _wide(found), _wide(expected)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    with np.errstate(invalid="ignore", over="ignore"):
        distance = np.abs(a - b)
    return np.where(same, 0.0, np.where(np.isfinite(distance), distance, np.inf))


def _wide(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return array.astype("float64" if array.dtype.kind != "c" else "complex128")
