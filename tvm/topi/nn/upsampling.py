"""Enlarging images by factors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import te, tir

from ..image.resize import resize2d, resize3d
from ..utils import dims

_METHODS = {
    "nearest_neighbor": "nearest_neighbor",
    "bilinear": "linear",
    "trilinear": "linear",
    "bicubic": "cubic",
}


def _sizes(
    data: te.Tensor, layout: str, factors: dict[str, float], given: Sequence[int] | None
) -> list[Any]:
    if given is not None:
        return list(given)
    letters = [c for c in layout if c.isalpha()]
    extents = dims(data.shape)
    return [_enlarged(extents[letters.index(axis)], factor) for axis, factor in factors.items()]


def _enlarged(extent: Any, factor: float) -> Any:
    if isinstance(extent, int):
        return round(extent * factor)
    if factor == int(factor):
        return extent * int(factor)
    return tir.round(extent.astype("float32") * float(factor)).astype(extent.dtype)


def upsampling(
    data: te.Tensor,
    scale_h: float,
    scale_w: float,
    layout: str = "NCHW",
    method: str = "nearest_neighbor",
    align_corners: bool = False,
    output_shape: Sequence[Any] | None = None,
) -> te.Tensor:
    """Enlarge images.

    Parameters
    ----------
    data : te.Tensor
        The images.
    scale_h, scale_w : float
        The factors of height and width.
    layout : str
        The data's layout.
    method : str
        "nearest_neighbor", "bilinear" or "bicubic".
    align_corners : bool
        Whether the corner elements keep their values.
    output_shape : sequence of int, optional
        The new height and width, in place of what the factors give.
    """
    size = _sizes(data, layout, {"H": scale_h, "W": scale_w}, output_shape)
    mode = "align_corners" if align_corners else "asymmetric"
    return resize2d(data, None, size, layout, _METHODS[method], mode)


def upsampling3d(
    data: te.Tensor,
    scale_d: float,
    scale_h: float,
    scale_w: float,
    layout: str = "NCDHW",
    method: str = "nearest_neighbor",
    coordinate_transformation_mode: str = "half_pixel",
    output_shape: Sequence[Any] | None = None,
) -> te.Tensor:
    """Enlarge volumes; parameters as in `upsampling` and `image.resize3d`."""
    size = _sizes(data, layout, {"D": scale_d, "H": scale_h, "W": scale_w}, output_shape)
    return resize3d(data, None, size, layout, _METHODS[method], coordinate_transformation_mode)
