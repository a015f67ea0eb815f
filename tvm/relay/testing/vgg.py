"""VGG: stacks of 3x3 convolutions, after Simonyan and Zisserman (2014)."""

from __future__ import annotations

from collections.abc import Sequence

from tvm import relay
from tvm.ir.expr import RelayExpr
from tvm.ir.module import IRModule
from tvm.runtime.ndarray import NDArray

from . import layers as nn_layers
from .init import create_workload

_FILTERS = (64, 128, 256, 512, 512)
# depth: convolutions of each stage
_STAGES = {11: (1, 1, 2, 2, 2), 13: (2, 2, 2, 2, 2), 16: (2, 2, 3, 3, 3), 19: (2, 2, 4, 4, 4)}


def get_feature(
    internal_layer: RelayExpr,
    layers: Sequence[int],
    filters: Sequence[int],
    batch_norm: bool = False,
) -> RelayExpr:
    """The stages: `layers[i]` convolutions of `filters[i]` channels each, then a pooling."""
    value = internal_layer
    for stage, (count, channels) in enumerate(zip(layers, filters, strict=True), start=1):
        for index in range(1, count + 1):
            value = _convolution(value, channels, f"{stage}_{index}", batch_norm)
        value = relay.nn.max_pool2d(value, pool_size=(2, 2), strides=(2, 2))
    return value


def _convolution(data: RelayExpr, channels: int, name: str, batch_norm: bool) -> RelayExpr:
    value = nn_layers.conv2d(
        data, channels=channels, kernel_size=(3, 3), padding=(1, 1), name=f"conv{name}"
    )
    value = relay.nn.bias_add(value, relay.var(f"conv{name}_bias"))
    if batch_norm:
        value = nn_layers.batch_norm_infer(value, name=f"bn{name}")
    return relay.nn.relu(value)


def get_classifier(input_data: RelayExpr, num_classes: int) -> RelayExpr:
    """Two wide dense layers and the scores."""
    value = relay.nn.batch_flatten(input_data)
    for name in ("fc6", "fc7"):
        value = relay.nn.relu(nn_layers.dense_add_bias(value, units=4096, name=name))
        value = relay.nn.dropout(value, rate=0.5)
    return nn_layers.dense_add_bias(value, units=num_classes, name="fc8")


def get_net(
    batch_size: int,
    image_shape: tuple[int, int, int],
    num_classes: int,
    dtype: str,
    num_layers: int = 11,
    batch_norm: bool = False,
) -> relay.Function:
    """The network of 11, 13, 16 or 19 nn_layers."""
    if num_layers not in _STAGES:
        raise ValueError(f"num_layers must be one of {list(_STAGES)}, got {num_layers}")
    data = relay.var("data", shape=(batch_size, *image_shape), dtype=dtype)
    feature = get_feature(data, _STAGES[num_layers], _FILTERS, batch_norm)
    result = relay.nn.softmax(get_classifier(feature, num_classes))
    return relay.Function(relay.analysis.free_vars(result), result)


def get_workload(
    batch_size: int,
    num_classes: int = 1000,
    image_shape: tuple[int, int, int] = (3, 224, 224),
    dtype: str = "float32",
    num_layers: int = 11,
    batch_norm: bool = False,
) -> tuple[IRModule, dict[str, NDArray]]:
    """The network with parameters."""
    return create_workload(
        get_net(batch_size, image_shape, num_classes, dtype, num_layers, batch_norm)
    )
