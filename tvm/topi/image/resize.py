"""Resizing images."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tvm import te, tir

from .. import tag
from ..nn.pooling.compute import axis_positions
from ..utils import dims


def source_position(index: Any, have: int, want: int, mode: str, dtype: str = "float32") -> Any:
    """Where an output index lies in the input, as a float."""
    x = index.astype(dtype)
    if mode == "asymmetric":
        return x * tir.const(have / want, dtype)
    if mode == "align_corners":
        return x * tir.const((have - 1) / (want - 1) if want > 1 else 0.0, dtype)
    centre = (x + tir.const(0.5, dtype)) * tir.const(have / want, dtype) - tir.const(0.5, dtype)
    if mode == "half_pixel":
        return centre
    if mode == "pytorch_half_pixel":
        return centre if want > 1 else tir.const(0.0, dtype)
    raise ValueError(
        "resize requires a coordinate_transformation_mode of half_pixel, pytorch_half_pixel, "
        f"align_corners or asymmetric, got {mode!r}"
    )


def nearest_index(position: Any, rounding: str, mode: str) -> Any:
    """The input index nearest to a position."""
    rounding = rounding or ("round" if mode == "half_pixel" else "floor")
    epsilon = tir.const(1e-5, position.dtype)
    half = tir.const(0.5, position.dtype)
    if rounding == "floor":
        return tir.floor(position + epsilon).astype("int32")
    if rounding == "ceil":
        return tir.ceil(position - epsilon).astype("int32")
    if rounding in ("round", "round_prefer_ceil"):
        return tir.floor(position + half).astype("int32")
    return tir.ceil(position - half).astype("int32")  # round_prefer_floor


def cubic_weights(t: Any, alpha: float) -> list[Any]:
    """The weights of four neighbours at distance t behind the second."""
    one = tir.const(1.0, t.dtype)

    def near(d: Any) -> Any:
        return ((alpha + 2) * d - (alpha + 3)) * d * d + one

    def far(d: Any) -> Any:
        return ((alpha * d - 5 * alpha) * d + 8 * alpha) * d - 4 * alpha

    return [far(t + one), near(t), near(one - t), far(one - t + one)]


def resize2d(
    data: te.Tensor,
    roi: Any,
    size: Sequence[int],
    layout: str = "NCHW",
    method: str = "linear",
    coordinate_transformation_mode: str = "half_pixel",
    rounding_method: str = "",
    bicubic_alpha: float = -0.5,
    bicubic_exclude: int = 0,
    extrapolation_value: float = 0.0,
    out_dtype: str | None = None,
    output_shape: Any = None,
) -> te.Tensor:
    """Resize two axes to a size.

    Parameters
    ----------
    data : te.Tensor
        The images.
    size : sequence of int
        The new height and width.
    layout : str
        The layout, blocked channels included.
    method : str
        "nearest_neighbor", "linear" or "cubic".
    coordinate_transformation_mode, rounding_method : str
        How output indices map to input positions.
    bicubic_alpha : float
        The coefficient of cubic interpolation.
    """
    if bicubic_exclude:
        raise ValueError("resize2d requires bicubic_exclude to be 0")
    at = axis_positions(layout, "HW")
    extents, want = dims(data.shape), dims(size)
    shape = list(extents)
    for axis, extent in zip(at, want, strict=True):
        shape[axis] = extent
    dtype = out_dtype or data.dtype
    mode = coordinate_transformation_mode
    taps = _TAPS[method]

    def element(*i: Any) -> Any:
        along = [
            taps(source_position(i[axis], extents[axis], extent, mode), mode, rounding_method, bicubic_alpha)
            for axis, extent in zip(at, want, strict=True)
        ]  # fmt: skip
        total: Any = None
        for row, row_weight in along[0]:
            for column, column_weight in along[1]:
                where = list(i)
                for axis, index in zip(at, (row, column), strict=True):
                    where[axis] = tir.max(tir.min(index, extents[axis] - 1), 0)
                value = data(*where)
                if row_weight is not None:
                    value = value.astype("float32") * row_weight * column_weight
                total = value if total is None else total + value
        return total.astype(dtype)

    return te.compute(shape, element, name="resize", tag=tag.INJECTIVE)


def _nearest(position: Any, mode: str, rounding: str, alpha: float) -> list[tuple[Any, Any]]:
    return [(nearest_index(position, rounding, mode), None)]


def _linear(position: Any, mode: str, rounding: str, alpha: float) -> list[tuple[Any, Any]]:
    low = tir.floor(position)
    t = position - low
    index = low.astype("int32")
    return [(index, tir.const(1.0, t.dtype) - t), (index + 1, t)]


def _cubic(position: Any, mode: str, rounding: str, alpha: float) -> list[tuple[Any, Any]]:
    low = tir.floor(position)
    index = low.astype("int32")
    weights = cubic_weights(position - low, alpha)
    return [(index + k - 1, weight) for k, weight in enumerate(weights)]


_TAPS: dict[str, Callable[[Any, str, str, float], list[tuple[Any, Any]]]] = {
    "nearest_neighbor": _nearest,
    "linear": _linear,
    "cubic": _cubic,
}
