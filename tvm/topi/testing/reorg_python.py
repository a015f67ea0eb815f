"""Darknet's reorganisation in numpy."""

from __future__ import annotations

import numpy as np


def reorg_python(a_np: np.ndarray, stride: int) -> np.ndarray:
    """Move each `stride` x `stride` patch of positions to channels, in Darknet's order."""
    batch, channels, height, width = a_np.shape
    depth = channels // stride**2
    wide = a_np.reshape(batch, depth, height, stride, width, stride)
    moved = wide.transpose(0, 3, 5, 1, 2, 4)
    return np.asarray(moved.reshape(batch, channels * stride**2, height // stride, width // stride))
