"""Maxima over the bins of regions, in numpy."""

from __future__ import annotations

from typing import Any

import numpy as np


def regions_pair(pooled_size: Any) -> tuple[int, int]:
    """The height and width of results, from one number or two."""
    height, width = (
        (pooled_size, pooled_size) if isinstance(pooled_size, int) else tuple(pooled_size)
    )
    return int(height), int(width)


def roi_pool_nchw_python(
    a_np: np.ndarray, rois_np: np.ndarray, pooled_size: Any, spatial_scale: float
) -> np.ndarray:
    """The greatest element in each bin of each region; 0 in empty bins."""
    _, channels, height, width = a_np.shape
    ph, pw = regions_pair(pooled_size)
    out = np.zeros((len(rois_np), channels, ph, pw), dtype=a_np.dtype)
    for r, (index, *corners) in enumerate(rois_np):
        x1, y1, x2, y2 = [_rounded(corner * spatial_scale) for corner in corners]
        rows, columns = _bins(y1, y2, ph, height), _bins(x1, x2, pw, width)
        for i, row in enumerate(rows):
            for j, column in enumerate(columns):
                patch = a_np[int(index), :, row, column]
                if patch.size:
                    out[r, :, i, j] = patch.max((1, 2))
    return out


def _rounded(value: float) -> int:
    """The nearest integer; halves go away from zero."""
    return int(np.sign(value) * np.floor(abs(value) + 0.5))


def _bins(low: int, high: int, pooled: int, extent: int) -> list[slice]:
    width = np.float32(max(high - low + 1, 1)) / np.float32(pooled)
    return [
        slice(
            int(np.clip(np.floor(i * width) + low, 0, extent)),
            int(np.clip(np.ceil((i + 1) * width) + low, 0, extent)),
        )
        for i in range(pooled)
    ]
