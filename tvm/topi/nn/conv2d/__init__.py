"""Convolution."""

from ...rewrites import conv2d_alter_layout, conv2d_legalize, conv2d_transpose_alter_layout
from ..workload import Workload, conv2d_infer_layout
from ..workload import conv2d_workload as _get_workload
from .compute import (
    conv,
    conv1d,
    conv2d,
    conv2d_hwcn,
    conv2d_nchw,
    conv2d_NCHWc,
    conv2d_nhwc,
    conv3d_ncdhw,
    conv3d_ndhwc,
    group_conv2d_nchw,
    group_conv2d_nhwc,
    unpack_NCHWc_to_nchw,
)
from .dot import conv2d_NCHWc_int8
from .gemm import conv2d_gemm_weight_transform
from .gradient import conv2d_backward_weight
from .winograd import (
    conv2d_winograd_nchw,
    conv2d_winograd_nchw_without_weight_transform,
    conv2d_winograd_nhwc,
    conv2d_winograd_nhwc_without_weight_transform,
    conv2d_winograd_weight_transform,
    winograd_weights,
)

__all__ = [
    "conv",
    "conv1d",
    "conv2d",
    "conv2d_NCHWc",
    "conv2d_NCHWc_int8",
    "Workload",
    "_get_workload",
    "conv2d_alter_layout",
    "conv2d_gemm_weight_transform",
    "conv2d_infer_layout",
    "conv2d_legalize",
    "conv2d_transpose_alter_layout",
    "conv2d_backward_weight",
    "conv2d_hwcn",
    "conv2d_nchw",
    "conv2d_nhwc",
    "conv2d_winograd_nchw",
    "conv2d_winograd_nchw_without_weight_transform",
    "conv2d_winograd_nhwc",
    "conv2d_winograd_nhwc_without_weight_transform",
    "conv2d_winograd_weight_transform",
    "conv3d_ncdhw",
    "conv3d_ndhwc",
    "group_conv2d_nchw",
    "group_conv2d_nhwc",
    "unpack_NCHWc_to_nchw",
    "winograd_weights",
]
