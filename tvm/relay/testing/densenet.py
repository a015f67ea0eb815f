"""DenseNet: every layer reads all that came before it, after Huang et al. (2017)."""

from __future__ import annotations

from collections.abc import Sequence

from tvm import relay
from tvm.ir.expr import RelayExpr
from tvm.ir.module import IRModule
from tvm.runtime.ndarray import NDArray

from . import layers
from .init import create_workload

# depth: (first channels, channels a layer adds, layers of each block)
_SPECS: dict[int, tuple[int, int, Sequence[int]]] = {
    121: (64, 32, (6, 12, 24, 16)),
    161: (96, 48, (6, 12, 36, 24)),
    169: (64, 32, (6, 12, 32, 32)),
    201: (64, 32, (6, 12, 48, 32)),
}
_BOTTLENECK = 4


def _activated(data: RelayExpr, name: str) -> RelayExpr:
    return relay.nn.relu(layers.batch_norm_infer(data, name=name))


def _dense_layer(data: RelayExpr, growth: int, name: str) -> RelayExpr:
    """A 1x1 and a 3x3 convolution, their channels joined to the input's."""
    value = layers.conv2d(
        _activated(data, f"{name}_bn1"),
        channels=_BOTTLENECK * growth,
        kernel_size=(1, 1),
        name=f"{name}_conv1",
    )
    value = layers.conv2d(
        _activated(value, f"{name}_bn2"),
        channels=growth,
        kernel_size=(3, 3),
        padding=(1, 1),
        name=f"{name}_conv2",
    )
    return relay.concatenate([data, value], axis=1)


def _transition(data: RelayExpr, channels: int, name: str) -> RelayExpr:
    """Halve the channels and the image."""
    value = layers.conv2d(
        _activated(data, f"{name}_bn"), channels=channels, kernel_size=(1, 1), name=f"{name}_conv"
    )
    return relay.nn.avg_pool2d(value, pool_size=(2, 2), strides=(2, 2))


def get_net(
    batch_size: int,
    densenet_size: int = 121,
    classes: int = 1000,
    image_shape: tuple[int, int, int] = (3, 224, 224),
    dtype: str = "float32",
) -> relay.Function:
    """The network of depth 121, 161, 169 or 201."""
    if densenet_size not in _SPECS:
        raise ValueError(f"densenet_size must be one of {list(_SPECS)}, got {densenet_size}")
    channels, growth, blocks = _SPECS[densenet_size]
    data = relay.var("data", shape=(batch_size, *image_shape), dtype=dtype)
    value = layers.conv2d(
        data, channels=channels, kernel_size=(7, 7), strides=(2, 2), padding=(3, 3), name="conv1"
    )
    value = relay.nn.max_pool2d(
        _activated(value, "batch1"), pool_size=(3, 3), strides=(2, 2), padding=(1, 1)
    )
    for block, count in enumerate(blocks, start=1):
        for layer in range(1, count + 1):
            value = _dense_layer(value, growth, f"block{block}_layer{layer}")
        channels += count * growth
        if block < len(blocks):
            channels //= 2
            value = _transition(value, channels, f"transition{block}")
    value = relay.nn.batch_flatten(relay.nn.global_avg_pool2d(_activated(value, "batch_final")))
    result = layers.dense_add_bias(value, units=classes, name="dense")
    return relay.Function(relay.analysis.free_vars(result), result)


def get_workload(
    densenet_size: int = 121,
    classes: int = 1000,
    batch_size: int = 4,
    image_shape: tuple[int, int, int] = (3, 224, 224),
    dtype: str = "float32",
) -> tuple[IRModule, dict[str, NDArray]]:
    """The network with parameters."""
    return create_workload(get_net(batch_size, densenet_size, classes, image_shape, dtype))
