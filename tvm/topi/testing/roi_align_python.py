"""Pooling of regions by interpolated samples, in numpy."""

from __future__ import annotations

from typing import Any

import numpy as np

from .roi_pool_python import regions_pair


def roi_align_common(
    a_np: np.ndarray,
    b_np: np.ndarray,
    rois_np: np.ndarray,
    channel: int,
    pooled_size_h: int,
    pooled_size_w: int,
    spatial_scale: float,
    sample_ratio: int,
    avg_mode: bool,
    max_mode: bool,
    height: int,
    width: int,
    layout: str,
) -> np.ndarray:
    """Fill `b_np` with the samples of regions of `a_np`, averaged or their greatest."""
    maps = a_np if layout == "NCHW" else a_np.transpose(0, 3, 1, 2)
    for r, (index, x1, y1, x2, y2) in enumerate(rois_np):
        image = maps[int(index)].astype("float64")
        rows = _samples(y1 * spatial_scale, y2 * spatial_scale, pooled_size_h, sample_ratio)
        columns = _samples(x1 * spatial_scale, x2 * spatial_scale, pooled_size_w, sample_ratio)
        sampled = _interpolated(image, rows.reshape(-1), columns.reshape(-1))
        grid = sampled.reshape(channel, *rows.shape, *columns.shape)
        pooled = grid.max((2, 4)) if max_mode else grid.mean((2, 4))
        b_np[r] = pooled if layout == "NCHW" else pooled.transpose(1, 2, 0)
    return b_np


def _samples(low: float, high: float, pooled: int, ratio: int) -> np.ndarray:
    """(bins, samples): positions along one axis."""
    width = max(high - low, 1.0) / pooled
    count = ratio if ratio > 0 else int(np.ceil(width))
    bins = np.arange(pooled)[:, None]
    return low + (bins + (np.arange(count)[None, :] + 0.5) / count) * width


def _interpolated(image: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    _, height, width = image.shape
    weights = np.zeros((len(rows), height)), np.zeros((len(columns), width))
    for matrix, positions, extent in zip(weights, (rows, columns), (height, width), strict=True):
        for i, position in enumerate(positions):
            if not -1.0 <= position <= extent:
                continue
            held = min(max(position, 0.0), extent - 1)
            low = int(held)
            matrix[i, low] += 1 - (held - low)
            matrix[i, min(low + 1, extent - 1)] += held - low
    return np.asarray(np.einsum("chw,yh,xw->cyx", image, *weights))


def _aligned(
    a_np: np.ndarray, rois_np: np.ndarray, pooled_size: Any, scale: float, ratio: int, mode: Any,
    layout: str,
) -> np.ndarray:  # fmt: skip
    extents = dict(zip(layout, a_np.shape, strict=True))
    ph, pw = regions_pair(pooled_size)
    extents.update(N=len(rois_np), H=ph, W=pw)
    out = np.zeros([extents[axis] for axis in layout], dtype=a_np.dtype)
    name = mode.decode() if isinstance(mode, bytes) else mode
    height, width = (a_np.shape[layout.index(axis)] for axis in "HW")
    return roi_align_common(
        a_np, out, rois_np, extents["C"], ph, pw, scale, ratio, name == "avg", name == "max",
        height, width, layout,
    )  # fmt: skip


def roi_align_nchw_python(
    a_np: np.ndarray,
    rois_np: np.ndarray,
    pooled_size: Any,
    spatial_scale: float,
    sample_ratio: int,
    mode: Any = b"avg",
) -> np.ndarray:
    """Pool regions of maps by interpolated samples."""
    return _aligned(a_np, rois_np, pooled_size, spatial_scale, sample_ratio, mode, "NCHW")


def roi_align_nhwc_python(
    a_np: np.ndarray,
    rois_np: np.ndarray,
    pooled_size: Any,
    spatial_scale: float,
    sample_ratio: int,
    mode: Any = b"avg",
) -> np.ndarray:
    """As `roi_align_nchw_python`, with channels last."""
    return _aligned(a_np, rois_np, pooled_size, spatial_scale, sample_ratio, mode, "NHWC")
