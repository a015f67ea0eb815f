"""All quantised operators under their classic module name."""

from __future__ import annotations

from .affine import dequantize, quantize, simulated_dequantize, simulated_quantize
from .convolutions import (
    conv1d,
    conv1d_transpose,
    conv2d,
    conv2d_transpose,
    conv3d,
    conv3d_transpose,
)
from .elementwise import add, concatenate, mul, subtract
from .lookup import (
    abs,
    erf,
    exp,
    hardswish,
    leaky_relu,
    log,
    rsqrt,
    sigmoid,
    softmax,
    sqrt,
    tanh,
)
from .pooling import avg_pool2d
from .products import batch_matmul, contrib_dense_pack, dense
from .requantize import (
    RequantizeConfig,
    current_requantize_config,
    requantize,
    requantize_config,
)

__all__ = [
    "RequantizeConfig",
    "abs",
    "add",
    "avg_pool2d",
    "batch_matmul",
    "concatenate",
    "contrib_dense_pack",
    "conv1d",
    "conv1d_transpose",
    "conv2d",
    "conv2d_transpose",
    "conv3d",
    "conv3d_transpose",
    "current_requantize_config",
    "dense",
    "dequantize",
    "erf",
    "exp",
    "hardswish",
    "leaky_relu",
    "log",
    "mul",
    "quantize",
    "requantize",
    "requantize_config",
    "rsqrt",
    "sigmoid",
    "simulated_dequantize",
    "simulated_quantize",
    "softmax",
    "sqrt",
    "subtract",
    "tanh",
]
