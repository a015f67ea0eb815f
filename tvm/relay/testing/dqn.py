"""The deep Q-network for Atari games, after Mnih et al. (2015)."""

from __future__ import annotations

from tvm import relay
from tvm.ir.expr import RelayExpr
from tvm.ir.module import IRModule
from tvm.runtime.ndarray import NDArray

from . import layers
from .init import create_workload

# (channels, kernel size, stride) of the convolutions
_CONVOLUTIONS = ((32, 8, 4), (64, 4, 2), (64, 3, 1))


def get_net(
    batch_size: int,
    num_actions: int = 18,
    image_shape: tuple[int, int, int] = (4, 84, 84),
    dtype: str = "float32",
    layout: str = "NCHW",
) -> relay.Function:
    """The network from four frames to the value of each action."""
    value: RelayExpr = relay.var("data", shape=(batch_size, *image_shape), dtype=dtype)
    for index, (channels, size, stride) in enumerate(_CONVOLUTIONS, start=1):
        value = layers.conv2d(
            value,
            channels=channels,
            kernel_size=(size, size),
            strides=(stride, stride),
            padding=(0, 0),
            data_layout=layout,
            kernel_layout=layers.conv_kernel_layout(layout),
            name=f"conv{index}",
        )
        value = relay.nn.bias_add(value, relay.var(f"conv{index}_bias"), axis=layout.index("C"))
        value = relay.nn.relu(value)
    value = relay.nn.batch_flatten(value)
    value = relay.nn.relu(layers.dense_add_bias(value, units=512, name="dense1"))
    result = layers.dense_add_bias(value, units=num_actions, name="dense2")
    return relay.Function(relay.analysis.free_vars(result), result)


def get_workload(
    batch_size: int,
    num_actions: int = 18,
    image_shape: tuple[int, int, int] = (4, 84, 84),
    dtype: str = "float32",
    layout: str = "NCHW",
) -> tuple[IRModule, dict[str, NDArray]]:
    """The network with parameters."""
    return create_workload(get_net(batch_size, num_actions, image_shape, dtype, layout))
