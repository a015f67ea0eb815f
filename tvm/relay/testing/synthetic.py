"""A small network with a dense and a convolution branch, for tests of passes and code generators."""

from __future__ import annotations

from tvm import relay
from tvm.ir.module import IRModule
from tvm.runtime.ndarray import NDArray

from .init import create_workload


def get_net(
    input_shape: tuple[int, int, int, int] = (1, 3, 24, 12),
    dtype: str = "float32",
    wtype: str | None = None,
) -> relay.Function:
    """The network; `wtype` is the dtype of its weights, `dtype` where it is None."""
    wtype = dtype if wtype is None else wtype
    channels, width = input_shape[1], input_shape[3]
    data = relay.var("data", shape=input_shape, dtype=dtype)
    dense_weight = relay.var("dense_weight", shape=(width, width), dtype=wtype)
    dense = relay.nn.relu(relay.nn.dense(relay.reshape(data, [-1, width]), dense_weight))
    dense = relay.reshape_like(dense, data)
    conv_weight = relay.var("conv_weight", shape=(channels, channels, 3, 3), dtype=wtype)
    conv = relay.nn.softmax(relay.nn.conv2d(data, conv_weight, padding=1, kernel_size=3), axis=-1)
    bias = relay.var("bias", shape=(width,), dtype=wtype)
    fused = relay.nn.relu(relay.add(relay.add(dense, conv), bias))
    result = relay.nn.global_avg_pool2d(fused)
    return relay.Function(relay.analysis.free_vars(result), result)


def get_workload(
    input_shape: tuple[int, int, int, int] = (1, 3, 24, 12),
    dtype: str = "float32",
    wtype: str | None = None,
) -> tuple[IRModule, dict[str, NDArray]]:
    """The network with parameters."""
    return create_workload(get_net(input_shape, dtype, wtype))
