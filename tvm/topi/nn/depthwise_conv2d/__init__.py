"""Depthwise convolution."""

from .compute import depthwise_conv2d_nchw, depthwise_conv2d_NCHWc, depthwise_conv2d_nhwc
from .gradient import depthwise_conv2d_backward_input_nhwc, depthwise_conv2d_backward_weight_nhwc

__all__ = [
    "depthwise_conv2d_NCHWc",
    "depthwise_conv2d_backward_input_nhwc",
    "depthwise_conv2d_backward_weight_nhwc",
    "depthwise_conv2d_nchw",
    "depthwise_conv2d_nhwc",
]
