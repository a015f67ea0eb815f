"""Operators on images."""

from tvm.support.later import names_from_above

from .resize import crop_and_resize, resize1d, resize2d, resize3d
from .sample import affine_grid, dilation2d, grid_sample

__getattr__ = names_from_above(__name__)
