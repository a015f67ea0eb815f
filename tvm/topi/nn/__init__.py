"""Neural-network operators."""

from ..shaping import flatten
from .batch_matmul.compute import batch_matmul
from .conv2d.compute import (
    conv,
    conv1d,
    conv2d,
    conv2d_hwcn,
    conv2d_nchw,
    conv2d_NCHWc,
    conv2d_nhwc,
    group_conv2d_nchw,
    group_conv2d_nhwc,
)
from .conv2d_transpose.compute import conv2d_transpose_nchw, group_conv2d_transpose_nchw
from .dense.compute import dense, dense_pack, matmul
from .depthwise_conv2d.compute import (
    depthwise_conv2d_nchw,
    depthwise_conv2d_NCHWc,
    depthwise_conv2d_nhwc,
)
from .elemwise import leaky_relu, prelu, relu
from .normalization.compute import batch_norm, layer_norm
from .pad import mirror_pad, pad
from .pooling.compute import adaptive_pool, global_pool, pool1d, pool2d
from .softmax.compute import fast_softmax, log_softmax, softmax

__all__ = [
    "adaptive_pool",
    "batch_matmul",
    "batch_norm",
    "conv",
    "conv1d",
    "conv2d",
    "conv2d_NCHWc",
    "conv2d_hwcn",
    "conv2d_nchw",
    "conv2d_nhwc",
    "conv2d_transpose_nchw",
    "dense",
    "dense_pack",
    "depthwise_conv2d_NCHWc",
    "depthwise_conv2d_nchw",
    "depthwise_conv2d_nhwc",
    "fast_softmax",
    "flatten",
    "global_pool",
    "group_conv2d_nchw",
    "group_conv2d_nhwc",
    "group_conv2d_transpose_nchw",
    "layer_norm",
    "leaky_relu",
    "log_softmax",
    "matmul",
    "mirror_pad",
    "pad",
    "pool1d",
    "pool2d",
    "prelu",
    "relu",
    "softmax",
]
