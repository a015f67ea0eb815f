"""Resizing by a factor that the extents do not tell: each axis by tables of indices and weights.

out[i] = x[low[i]] * (1 - t[i]) + x[low[i] + 1] * t[i]
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tvm.ir.expr import RelayExpr
from tvm.relay import op as _op
from tvm.relay.frontend.common import constant, infer_dtype, infer_shape

_ROUNDING = {
    "floor": np.floor,
    "ceil": np.ceil,
    "round_prefer_floor": lambda x: np.ceil(x - 0.5),
    "round_prefer_ceil": lambda x: np.floor(x + 0.5),
}


def is_exact(have: Sequence[int], want: Sequence[int], factors: Sequence[float]) -> bool:
    """Whether the extents alone tell the factors."""
    return all(h * f == w for h, w, f in zip(have, want, factors, strict=True))


def has_ties(have: Sequence[int], want: Sequence[int]) -> bool:
    """Whether positions may lie in the middle of two elements."""
    return any(w % h and h % w for h, w in zip(have, want, strict=True))


def resize_axes(
    x: RelayExpr, axes: Sequence[int], want: Sequence[int], factors: Sequence[float],
    method: str, coordinates: str, rounding: str = "floor", alpha: float = -0.75,
) -> RelayExpr:  # fmt: skip
    """Resize axes one after the other; the options are those of ``image.resize2d``."""
    for axis, size, factor in zip(axes, want, factors, strict=True):
        have = infer_shape(x)[axis]
        at = source_positions(have, size, factor, coordinates)
        if method == "nearest_neighbor":
            index = _ROUNDING[rounding](at)
            x = _op.take(x, _indices(index, have), axis)
        else:
            x = _interpolated(x, axis, at, method, alpha)
    return x


def source_positions(have: int, want: int, factor: float, coordinates: str) -> np.ndarray:
    """Where the output's elements lie in the input."""
    out, factor = np.arange(want, dtype="float32"), np.float32(factor)
    if coordinates == "align_corners":
        return out * np.float32((have - 1) / max(want - 1, 1))
    if coordinates == "asymmetric":
        return out / factor
    if coordinates == "pytorch_half_pixel" and want == 1:
        return np.zeros(1, "float32")
    # divided, as halves have to stay halves: they are rounded
    return (out + np.float32(0.5)) / factor - np.float32(0.5)


def _interpolated(x: RelayExpr, axis: int, at: np.ndarray, method: str, alpha: float) -> RelayExpr:
    shape = infer_shape(x)
    low, dtype = np.floor(at), infer_dtype(x)
    t = at - low
    taps = [(0, 1 - t), (1, t)] if method == "linear" else _cubic_taps(t, alpha)
    total = None
    for offset, weight in taps:
        picked = _op.take(x, _indices(low + offset, shape[axis]), axis)
        along = [1] * len(shape)
        along[axis] = len(at)
        part = picked * constant(weight.reshape(along), dtype)
        total = part if total is None else total + part
    assert total is not None
    return total


def _cubic_taps(t: np.ndarray, alpha: float) -> list[tuple[int, np.ndarray]]:
    def near(d: np.ndarray) -> np.ndarray:
        return ((alpha + 2) * d - (alpha + 3)) * d * d + 1

    def far(d: np.ndarray) -> np.ndarray:
        return ((alpha * d - 5 * alpha) * d + 8 * alpha) * d - 4 * alpha

    return [(-1, far(t + 1)), (0, near(t)), (1, near(1 - t)), (2, far(2 - t))]


def _indices(values: np.ndarray, extent: int) -> RelayExpr:
    return constant(np.clip(values, 0, extent - 1).astype("int64"))
