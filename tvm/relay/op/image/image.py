"""The operators on images under their classic module name."""

from __future__ import annotations

from .resize import crop_and_resize, resize1d, resize2d, resize3d
from .sample import affine_grid, dilation2d, grid_sample

__all__ = [
    "affine_grid",
    "crop_and_resize",
    "dilation2d",
    "grid_sample",
    "resize1d",
    "resize2d",
    "resize3d",
]
