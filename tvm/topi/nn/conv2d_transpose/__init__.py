"""Transposed convolution."""

from ...layout import layout_transform
from ...rewrites import conv2d_transpose_legalize
from .compute import (
    conv1d_transpose_ncw,
    conv2d_transpose_nchw,
    conv3d_transpose_ncdhw,
    group_conv1d_transpose_ncw,
    group_conv2d_transpose_nchw,
    group_conv3d_transpose_ncdhw,
)
from .dilated_input import conv2d_transpose_nchw_preprocess, declaration_conv2d_transpose_impl

__all__ = [
    "conv2d_transpose_legalize",
    "conv2d_transpose_nchw_preprocess",
    "declaration_conv2d_transpose_impl",
    "layout_transform",
    "conv1d_transpose_ncw",
    "conv2d_transpose_nchw",
    "conv3d_transpose_ncdhw",
    "group_conv1d_transpose_ncw",
    "group_conv2d_transpose_nchw",
    "group_conv3d_transpose_ncdhw",
]
