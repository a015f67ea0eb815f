"""Operators on images."""

from .resize import (
    CropAndResizeAttrs,
    Resize1DAttrs,
    Resize2DAttrs,
    Resize3DAttrs,
    crop_and_resize,
    resize1d,
    resize2d,
    resize3d,
)
from .sample import (
    AffineGridAttrs,
    Dilation2DAttrs,
    GridSampleAttrs,
    affine_grid,
    dilation2d,
    grid_sample,
)

__all__ = [
    "AffineGridAttrs",
    "CropAndResizeAttrs",
    "Dilation2DAttrs",
    "GridSampleAttrs",
    "Resize1DAttrs",
    "Resize2DAttrs",
    "Resize3DAttrs",
    "affine_grid",
    "crop_and_resize",
    "dilation2d",
    "grid_sample",
    "resize1d",
    "resize2d",
    "resize3d",
]
