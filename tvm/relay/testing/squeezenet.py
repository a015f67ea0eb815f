"""SqueezeNet: layers that squeeze and expand the channels, after Iandola et al. (2016)."""

from __future__ import annotations

from tvm import relay
from tvm.ir.expr import RelayExpr
from tvm.ir.module import IRModule
from tvm.runtime.ndarray import NDArray

from . import layers
from .init import create_workload

# version: (channels and kernel of the first layer, channels after each fire's squeeze, and
# before which fires the image is halved)
_VERSIONS = {
    "1.0": ((96, 7), (16, 16, 32, 32, 48, 48, 64, 64), (0, 3, 7)),
    "1.1": ((64, 3), (16, 16, 32, 32, 48, 48, 64, 64), (0, 2, 4)),
}


def _conv(data: RelayExpr, channels: int, size: int, name: str, stride: int = 1) -> RelayExpr:
    value = layers.conv2d(
        data,
        channels=channels,
        kernel_size=(size, size),
        strides=(stride, stride),
        padding=(size // 2, size // 2) if stride == 1 else (0, 0),
        name=name,
    )
    return relay.nn.relu(relay.nn.bias_add(value, relay.var(f"{name}_bias")))


def _fire(data: RelayExpr, squeezed: int, name: str) -> RelayExpr:
    """Squeeze by 1x1, expand by 1x1 and by 3x3, four times the channels each."""
    value = _conv(data, squeezed, 1, f"{name}_squeeze")
    expanded = [_conv(value, 4 * squeezed, size, f"{name}_expand{size}x{size}") for size in (1, 3)]
    return relay.concatenate(expanded, axis=1)


def get_net(
    batch_size: int,
    image_shape: tuple[int, int, int],
    num_classes: int,
    version: str,
    dtype: str,
) -> relay.Function:
    """The network of version "1.0" or "1.1"."""
    if version not in _VERSIONS:
        raise ValueError(f"version must be one of {list(_VERSIONS)}, got {version!r}")
    (channels, size), fires, pooled = _VERSIONS[version]
    value: RelayExpr = relay.var("data", shape=(batch_size, *image_shape), dtype=dtype)
    value = _conv(value, channels, size, "conv1", stride=2)
    for index, squeezed in enumerate(fires):
        if index in pooled:
            value = relay.nn.max_pool2d(value, pool_size=(3, 3), strides=(2, 2))
        value = _fire(value, squeezed, f"fire{index + 2}")
    value = relay.nn.dropout(value, rate=0.5)
    value = _conv(value, num_classes, 1, "conv_final")
    result = relay.nn.softmax(relay.nn.batch_flatten(relay.nn.global_avg_pool2d(value)))
    return relay.Function(relay.analysis.free_vars(result), result)


def get_workload(
    batch_size: int = 1,
    num_classes: int = 1000,
    version: str = "1.0",
    image_shape: tuple[int, int, int] = (3, 224, 224),
    dtype: str = "float32",
) -> tuple[IRModule, dict[str, NDArray]]:
    """The network with parameters."""
    return create_workload(get_net(batch_size, image_shape, num_classes, version, dtype))
