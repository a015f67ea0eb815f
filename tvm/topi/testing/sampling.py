"""Resizing and sampling images in numpy."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np

from tvm.error import RuntimeValueError

Array = np.ndarray


def get_inx(
    x: Any, image_width: int, target_width: int, coordinate_transformation_mode: str
) -> Any:
    """Where an element of the result lies in the source, along one axis."""
    scale = image_width / target_width
    if coordinate_transformation_mode == "half_pixel":
        return (x + 0.5) * scale - 0.5
    if coordinate_transformation_mode == "align_corners":
        return x * ((image_width - 1) / (target_width - 1) if target_width > 1 else 0.0)
    if coordinate_transformation_mode == "asymmetric":
        return x * scale
    raise RuntimeValueError(
        "a coordinate_transformation_mode of half_pixel, align_corners or asymmetric is required, "
        f"got {coordinate_transformation_mode!r}"
    )


def get_index(
    x: int, image_width: int, target_width: int, coordinate_transformation_mode: str
) -> int:
    """The source's element nearest to an element of the result."""
    position = get_inx(x, image_width, target_width, coordinate_transformation_mode)
    shift = 0.5 if coordinate_transformation_mode == "align_corners" else 1e-5
    nearest = int(np.floor(position + shift))
    return min(max(nearest, 0), image_width - 1)


def _cubic(distance: float, alpha: float) -> float:
    d = abs(distance)
    if d <= 1:
        return (alpha + 2) * d**3 - (alpha + 3) * d**2 + 1
    return alpha * d**3 - 5 * alpha * d**2 + 8 * alpha * d - 4 * alpha if d < 2 else 0.0


def _weights(extent: int, target: int, method: str, mode: str) -> Array:
    """(target, extent): how the elements along one axis are mixed."""
    table = np.zeros((target, extent))
    for i in range(target):
        if method == "nearest_neighbor":
            table[i, get_index(i, extent, target, mode)] = 1
            continue
        position = get_inx(i, extent, target, mode)
        low = int(np.floor(position))
        for j in range(low - 1, low + 3):
            weight = (
                max(0.0, 1 - abs(position - j))
                if method == "linear"
                else _cubic(position - j, -0.5)
            )
            table[i, min(max(j, 0), extent - 1)] += weight
    return table


def _resized(
    data: Array, scale: Sequence[float], axes: Sequence[int], method: str, mode: str
) -> Array:
    out = data.astype("float64")
    kind = {"bilinear": "linear", "trilinear": "linear", "bicubic": "cubic"}.get(method, method)
    for axis, factor in zip(axes, scale, strict=True):
        extent = data.shape[axis]
        table = _weights(extent, int(np.round(extent * factor)), kind, mode)
        out = np.moveaxis(np.tensordot(table, out, (1, axis)), 0, axis)
    return out.astype(data.dtype)


def resize3d_nearest(
    arr: Array, scale: Sequence[float], coordinate_transformation_mode: str
) -> Array:
    """One volume, by the nearest neighbours."""
    return _resized(arr, scale, (0, 1, 2), "nearest_neighbor", coordinate_transformation_mode)


def resize3d_linear(
    data_in: Array, scale: Sequence[float], coordinate_transformation_mode: str
) -> Array:
    """One volume, by linear interpolation."""
    return _resized(data_in, scale, (0, 1, 2), "linear", coordinate_transformation_mode)


def resize3d_cubic(
    data_in: Array, scale: Sequence[float], coordinate_transformation_mode: str
) -> Array:
    """One volume, by cubic interpolation."""
    return _resized(data_in, scale, (0, 1, 2), "cubic", coordinate_transformation_mode)


def resize3d_ncdhw(
    data: Array, scale: Sequence[float], method: str = "nearest_neighbor",
    coordinate_transformation_mode: str = "align_corners",
) -> Array:  # fmt: skip
    """Volumes with channels first."""
    return _resized(data, scale, (2, 3, 4), method, coordinate_transformation_mode)


def resize1d_python(
    data: Array, scale: Sequence[float], layout: str = "NCW", method: str = "nearest_neighbor",
    coordinate_transformation_mode: str = "align_corners",
) -> Array:  # fmt: skip
    """One axis by a factor."""
    return _resized(data, scale, [layout.index("W")], method, coordinate_transformation_mode)


def resize2d_python(
    data: Array, scale: Sequence[float], layout: str = "NCHW", method: str = "nearest_neighbor",
    coordinate_transformation_mode: str = "align_corners",
) -> Array:  # fmt: skip
    """Two axes by a factor each."""
    axes = [layout.index(axis) for axis in "HW"]
    return _resized(data, scale, axes, method, coordinate_transformation_mode)


def resize3d_python(
    data: Array, scale: Sequence[float], layout: str = "NCDHW", method: str = "nearest_neighbor",
    coordinate_transformation_mode: str = "align_corners",
) -> Array:  # fmt: skip
    """Three axes by a factor each."""
    axes = [layout.index(axis) for axis in "DHW"]
    return _resized(data, scale, axes, method, coordinate_transformation_mode)


def affine_grid_python(data: Array, target_shape: Sequence[int]) -> Array:
    """(N, 2, height, width): the positions that affine maps (N, 2, 3) give for a regular grid."""
    height, width = target_shape
    y, x = np.meshgrid(np.linspace(-1, 1, height), np.linspace(-1, 1, width), indexing="ij")
    return np.asarray(
        np.einsum("nij,jhw->nihw", data, np.stack([x, y, np.ones_like(x)])).astype(data.dtype)
    )


def _unfolded(place: Array, extent: int, padding: str, align: bool) -> Array:
    if padding == "border":
        return place.clip(0, extent - 1)
    if padding == "reflection":
        low, span = (0.0, extent - 1.0) if align else (-0.5, float(extent))
        if span == 0:
            return np.zeros_like(place)
        turned = np.abs((place - low) % (2 * span))
        return (low + np.minimum(turned, 2 * span - turned)).clip(0, extent - 1)
    return place


def grid_sample_python(
    data: Array, grid: Array, method: str = "bilinear", layout: str = "NCHW",
    padding_mode: str = "zeros", align_corners: bool = True,
) -> Array:  # fmt: skip
    """Samples of images at the positions of a grid (N, rank, ...), of which x comes first."""
    rank = len(layout) - 2
    extents = data.shape[2:]
    positions = []
    for axis, extent in enumerate(extents):
        u = grid[:, rank - 1 - axis].astype("float64")
        positions.append(
            (u + 1) / 2 * (extent - 1) if align_corners else ((u + 1) * extent - 1) / 2
        )
    reach, start = {"nearest": (1, 0), "bilinear": (2, 0), "bicubic": (4, -1)}[method]
    if method != "bicubic":
        positions = [
            _unfolded(p, n, padding_mode, align_corners)
            for p, n in zip(positions, extents, strict=True)
        ]
    out = np.zeros((data.shape[0], data.shape[1], *grid.shape[2:]))
    batch = np.arange(len(data)).reshape(-1, *[1] * (grid.ndim - 2))
    base = [np.rint(p) if method == "nearest" else np.floor(p) for p in positions]
    for shift in product(range(reach), repeat=rank):
        weight, at, inside = np.ones(positions[0].shape), [], np.ones(positions[0].shape, bool)
        for p, b, s, n in zip(positions, base, shift, extents, strict=True):
            i = b + s + start
            if method == "bilinear":
                weight = weight * np.maximum(1 - np.abs(p - i), 0)
            elif method == "bicubic":
                weight = weight * np.vectorize(lambda d: _cubic(d, -0.75))(p - i)
                i = _unfolded(i, n, padding_mode, align_corners)
            inside &= (i >= 0) & (i <= n - 1)
            at.append(i.clip(0, n - 1).astype(int))
        pixels = (batch, *at)
        picked = np.moveaxis(data, 1, -1)[pixels]
        out += np.moveaxis(picked * (weight * inside)[..., None], -1, 1)
    return out.astype(data.dtype)


def grid_sample_2d(
    data: Array, grid: Array, method: str = "bilinear", layout: str = "NCHW",
    padding_mode: str = "zeros", align_corners: bool = True,
) -> Array:  # fmt: skip
    """As `grid_sample_python`, of images."""
    return grid_sample_python(data, grid, method, layout, padding_mode, align_corners)


def grid_sample_3d(
    data: Array, grid: Array, method: str = "bilinear", layout: str = "NCDHW",
    padding_mode: str = "zeros", align_corners: bool = True,
) -> Array:  # fmt: skip
    """As `grid_sample_python`, of volumes."""
    return grid_sample_python(data, grid, method, layout, padding_mode, align_corners)


def crop_and_resize_python(
    image: Array, boxes: Array, box_indices: Array, crop_size: Sequence[int], layout: str,
    method: str = "bilinear", extrapolation_value: float = 0,
) -> Array:  # fmt: skip
    """Boxes (top, left, bottom, right in parts of the image) cut out and resized."""
    images = image if layout == "NHWC" else image.transpose(0, 2, 3, 1)
    out = np.full((len(boxes), *crop_size, images.shape[3]), float(extrapolation_value))
    for n, (box, index) in enumerate(zip(boxes, box_indices, strict=True)):
        positions = []
        for axis, size in enumerate(crop_size):
            last = images.shape[1 + axis] - 1
            low, high = box[axis] * last, box[axis + 2] * last
            positions.append(np.linspace(low, high, size) if size > 1 else [(low + high) / 2])
        for i, y in enumerate(positions[0]):
            for j, x in enumerate(positions[1]):
                if 0 <= y <= images.shape[1] - 1 and 0 <= x <= images.shape[2] - 1:
                    out[n, i, j] = _pixel(images[index], y, x, method)
    found = out.astype(image.dtype)
    return found if layout == "NHWC" else found.transpose(0, 3, 1, 2)


def _pixel(image: Array, y: float, x: float, method: str) -> Array:
    if method != "bilinear":
        return np.asarray(image[int(np.floor(y + 0.5)), int(np.floor(x + 0.5))])
    total = np.zeros(image.shape[2])
    for v in {int(np.floor(y)), int(np.ceil(y))}:
        for u in {int(np.floor(x)), int(np.ceil(x))}:
            total = total + (1 - abs(y - v)) * (1 - abs(x - u)) * image[v, u]
    return total
