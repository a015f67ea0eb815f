"""Depthwise convolution."""

from ..workload import Workload, depthwise_conv2d_infer_layout
from ..workload import depthwise_conv2d_workload as _get_workload
from .compute import depthwise_conv2d_nchw, depthwise_conv2d_NCHWc, depthwise_conv2d_nhwc
from .gradient import depthwise_conv2d_backward_input_nhwc, depthwise_conv2d_backward_weight_nhwc

__all__ = [
    "Workload",
    "_get_workload",
    "depthwise_conv2d_infer_layout",
    "depthwise_conv2d_NCHWc",
    "depthwise_conv2d_backward_input_nhwc",
    "depthwise_conv2d_backward_weight_nhwc",
    "depthwise_conv2d_nchw",
    "depthwise_conv2d_nhwc",
]
