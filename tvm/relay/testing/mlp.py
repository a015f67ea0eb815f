"""A multilayer perceptron with two hidden layers."""

from __future__ import annotations

from math import prod

from tvm import relay
from tvm.ir.module import IRModule
from tvm.runtime.ndarray import NDArray

from .init import create_workload


def get_net(
    batch_size: int,
    num_classes: int = 10,
    image_shape: tuple[int, ...] = (1, 28, 28),
    dtype: str = "float32",
) -> relay.Function:
    """The network: 128, 64 and `num_classes` units."""
    data = relay.var("data", shape=(batch_size, *image_shape), dtype=dtype)
    value = relay.nn.batch_flatten(data)
    features = prod(image_shape)
    for index, units in enumerate((128, 64, num_classes), start=1):
        weight = relay.var(f"fc{index}_weight", shape=(units, features), dtype=dtype)
        bias = relay.var(f"fc{index}_bias", shape=(units,), dtype=dtype)
        value = relay.nn.bias_add(relay.nn.dense(value, weight, units=units), bias, axis=-1)
        if index < 3:
            value = relay.nn.relu(value)
        features = units
    result = relay.nn.softmax(data=value)
    return relay.Function(relay.analysis.free_vars(result), result)


def get_workload(
    batch_size: int,
    num_classes: int = 10,
    image_shape: tuple[int, ...] = (1, 28, 28),
    dtype: str = "float32",
) -> tuple[IRModule, dict[str, NDArray]]:
    """The network with parameters."""
    return create_workload(get_net(batch_size, num_classes, image_shape, dtype))
