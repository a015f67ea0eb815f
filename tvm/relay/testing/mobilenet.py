"""MobileNet: depthwise separable convolutions, after Howard et al. (2017)."""

from __future__ import annotations

from tvm import relay
from tvm.ir.expr import RelayExpr
from tvm.ir.module import IRModule
from tvm.runtime.ndarray import NDArray

from . import layers
from .init import create_workload


def conv_block(
    data: RelayExpr,
    name: str,
    channels: int,
    kernel_size: tuple[int, int] = (3, 3),
    strides: tuple[int, int] = (1, 1),
    padding: tuple[int, int] = (1, 1),
    epsilon: float = 1e-5,
    layout: str = "NCHW",
) -> RelayExpr:
    """Convolve, normalise, activate."""
    conv = layers.conv2d(
        data,
        channels=channels,
        kernel_size=kernel_size,
        strides=strides,
        padding=padding,
        data_layout=layout,
        kernel_layout=layers.conv_kernel_layout(layout),
        name=f"{name}_conv",
    )
    bn = layers.batch_norm_infer(conv, epsilon=epsilon, axis=layout.index("C"), name=f"{name}_bn")
    return relay.nn.relu(bn)


def separable_conv_block(
    data: RelayExpr,
    name: str,
    depthwise_channels: int,
    pointwise_channels: int,
    kernel_size: tuple[int, int] = (3, 3),
    downsample: bool = False,
    padding: tuple[int, int] = (1, 1),
    epsilon: float = 1e-5,
    layout: str = "NCHW",
    dtype: str = "float32",
) -> RelayExpr:
    """A depthwise convolution, then a pointwise one."""
    axis = layout.index("C")
    kernel_layout = layers.conv_kernel_layout(layout, is_depthwise=True)
    sizes = {"O": depthwise_channels, "I": 1, "H": kernel_size[0], "W": kernel_size[1]}
    weight = relay.var(
        f"{name}_depthwise_conv_weight", shape=[sizes[c] for c in kernel_layout], dtype=dtype
    )
    conv = layers.conv2d(
        data,
        weight,
        channels=depthwise_channels,
        groups=depthwise_channels,
        kernel_size=kernel_size,
        strides=(2, 2) if downsample else (1, 1),
        padding=padding,
        data_layout=layout,
        kernel_layout=kernel_layout,
        name=f"{name}_depthwise_conv",
    )
    bn = layers.batch_norm_infer(conv, epsilon=epsilon, axis=axis, name=f"{name}_bn1")
    return conv_block(
        relay.nn.relu(bn), f"{name}_2", pointwise_channels, (1, 1), (1, 1), (0, 0), epsilon, layout
    )


# (output channels, whether the block halves the image), after the first block of 64
_BLOCKS = [
    (128, True), (128, False), (256, True), (256, False), (512, True),
    *[(512, False)] * 5, (1024, True), (1024, False),
]  # fmt: skip


def mobile_net(
    num_classes: int = 1000,
    data_shape: tuple[int, ...] = (1, 3, 224, 224),
    dtype: str = "float32",
    alpha: float = 1.0,
    is_shallow: bool = False,
    layout: str = "NCHW",
) -> relay.Function:
    """The network; `alpha` scales the channels, a shallow one lacks five blocks."""
    data = relay.var("data", shape=data_shape, dtype=dtype)
    body = conv_block(data, "conv_block_1", int(32 * alpha), strides=(2, 2), layout=layout)
    width = int(32 * alpha)
    blocks = [(64, False), *(_BLOCKS[:5] + _BLOCKS[10:] if is_shallow else _BLOCKS)]
    for index, (channels, downsample) in enumerate(blocks, start=1):
        body = separable_conv_block(
            body, f"separable_conv_block_{index}", width, int(channels * alpha),
            downsample=downsample, layout=layout, dtype=dtype,
        )  # fmt: skip
        width = int(channels * alpha)
    pool = relay.nn.batch_flatten(relay.nn.global_avg_pool2d(body, layout=layout))
    weight = relay.var("fc_weight", shape=(num_classes, width), dtype=dtype)
    bias = relay.var("fc_bias", shape=(num_classes,), dtype=dtype)
    result = relay.nn.softmax(relay.nn.bias_add(relay.nn.dense(pool, weight), bias))
    return relay.Function(relay.analysis.free_vars(result), result)


def get_workload(
    batch_size: int = 1,
    num_classes: int = 1000,
    image_shape: tuple[int, ...] = (3, 224, 224),
    dtype: str = "float32",
    layout: str = "NCHW",
) -> tuple[IRModule, dict[str, NDArray]]:
    """The network with parameters."""
    net = mobile_net(
        num_classes, (batch_size, *image_shape), dtype, alpha=1.0, is_shallow=False, layout=layout
    )
    return create_workload(net)
