"""Operators on images."""

from ..argument_checks import guarded
from .dilation2d import dilation2d, dilation2d_nchw, dilation2d_nhwc
from .grid_sample import affine_grid, grid_sample
from .pixels import (
    can_convert_multiply_to_intdiv,
    get_1d_indices,
    get_1d_pixel,
    get_2d_indices,
    get_2d_pixel,
    get_3d_indices,
    get_3d_pixel,
    get_closest_index,
    get_inx,
)
from .resize import crop_and_resize, resize1d, resize2d, resize3d

__all__ = [
    "affine_grid",
    "can_convert_multiply_to_intdiv",
    "crop_and_resize",
    "dilation2d",
    "dilation2d_nchw",
    "dilation2d_nhwc",
    "get_1d_indices",
    "get_1d_pixel",
    "get_2d_indices",
    "get_2d_pixel",
    "get_3d_indices",
    "get_3d_pixel",
    "get_closest_index",
    "get_inx",
    "grid_sample",
    "resize1d",
    "resize2d",
    "resize3d",
]

globals().update(guarded(__name__, globals()))
