"""Residual networks with pre-activation, after He et al., Identity Mappings (2016)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tvm import relay
from tvm.ir.expr import RelayExpr
from tvm.ir.module import IRModule
from tvm.runtime.ndarray import NDArray

from . import layers
from .init import create_workload

EPSILON = 2e-5


_CONVOLUTIONS = {4: layers.conv2d, 5: layers.conv3d}
_MAX_POOLS = {4: relay.nn.max_pool2d, 5: relay.nn.max_pool3d}
_GLOBAL_POOLS: dict[int, Callable[..., RelayExpr]] = {
    4: relay.nn.global_avg_pool2d,
    5: relay.nn.global_avg_pool3d,
}


def _channel_axis(layout: str) -> int:
    return layout.index("C")


def _along_image(layout: str, size: int) -> tuple[int, ...]:
    """`size` for each axis of an image, or of a volume."""
    return (size,) * (len(layout) - 2)


def residual_unit(
    data: RelayExpr,
    num_filter: int,
    stride: tuple[int, ...],
    dim_match: bool,
    name: str,
    bottle_neck: bool = True,
    data_layout: str = "NCHW",
    kernel_layout: str = "IOHW",
) -> RelayExpr:
    """Normalise, activate, convolve: two times, or three with a bottle neck; plus the shortcut.

    Parameters
    ----------
    num_filter : output channels.
    dim_match : whether the input has the output's shape; if not, the shortcut convolves too.
    """
    layouts: dict[str, Any] = {"data_layout": data_layout, "kernel_layout": kernel_layout}
    conv, ones = _CONVOLUTIONS[len(data_layout)], _along_image(data_layout, 1)

    def activated(value: RelayExpr, index: int) -> RelayExpr:
        value = layers.batch_norm_infer(
            value, epsilon=EPSILON, axis=_channel_axis(data_layout), name=f"{name}_bn{index}"
        )
        return relay.nn.relu(value)

    def convolved(
        value: RelayExpr, index: int, channels: int, size: int, strides: tuple[int, ...]
    ) -> RelayExpr:
        return conv(
            value,
            channels=channels,
            kernel_size=_along_image(data_layout, size),
            strides=strides,
            padding=_along_image(data_layout, size // 2),
            name=f"{name}_conv{index}",
            **layouts,
        )

    first = activated(data, 1)
    if bottle_neck:
        narrow = num_filter // 4
        value = convolved(first, 1, narrow, 1, stride)
        value = convolved(activated(value, 2), 2, narrow, 3, ones)
        value = convolved(activated(value, 3), 3, num_filter, 1, ones)
    else:
        value = convolved(first, 1, num_filter, 3, stride)
        value = convolved(activated(value, 2), 2, num_filter, 3, ones)
    if dim_match:
        return relay.add(value, data)
    shortcut = conv(
        first,
        channels=num_filter,
        kernel_size=ones,
        strides=stride,
        name=f"{name}_sc",
        **layouts,
    )
    return relay.add(value, shortcut)


def resnet(
    units: Sequence[int],
    num_stages: int,
    filter_list: Sequence[int],
    num_classes: int,
    data_shape: Sequence[int],
    bottle_neck: bool = True,
    layout: str = "NCHW",
    dtype: str = "float32",
) -> relay.Function:
    """The network of `num_stages` stages with `units[i]` residual units each."""
    kernel_layout = layers.conv_kernel_layout(layout)
    axis = _channel_axis(layout)
    data = relay.var("data", shape=tuple(data_shape), dtype=dtype)
    body = layers.batch_norm_infer(data, epsilon=EPSILON, axis=axis, scale=False, name="bn_data")
    body = _stem(body, data_shape[layout.index("H")], filter_list[0], layout, kernel_layout, axis)
    for stage in range(num_stages):
        for unit in range(units[stage]):
            is_first = unit == 0
            body = residual_unit(
                body,
                filter_list[stage + 1],
                _along_image(layout, 2 if is_first and stage else 1),
                not is_first,
                name=f"stage{stage + 1}_unit{unit + 1}",
                bottle_neck=bottle_neck,
                data_layout=layout,
                kernel_layout=kernel_layout,
            )
    body = relay.nn.relu(layers.batch_norm_infer(body, epsilon=EPSILON, axis=axis, name="bn1"))
    body = relay.nn.batch_flatten(_GLOBAL_POOLS[len(layout)](body, layout=layout))
    result = relay.nn.softmax(layers.dense_add_bias(body, units=num_classes, name="fc1"))
    return relay.Function(relay.analysis.free_vars(result), result)


def _stem(
    data: RelayExpr, height: int, channels: int, layout: str, kernel_layout: str, axis: int
) -> RelayExpr:
    """The first layers: small images keep their size, large ones shrink by four."""
    is_small = height <= 32
    size, stride = (3, 1) if is_small else (7, 2)
    body = _CONVOLUTIONS[len(layout)](
        data,
        channels=channels,
        kernel_size=_along_image(layout, size),
        strides=_along_image(layout, stride),
        padding=_along_image(layout, size // 2),
        name="conv0",
        data_layout=layout,
        kernel_layout=kernel_layout,
    )
    if is_small:
        return body
    body = relay.nn.relu(layers.batch_norm_infer(body, epsilon=EPSILON, axis=axis, name="bn0"))
    return _MAX_POOLS[len(layout)](
        body,
        pool_size=_along_image(layout, 3),
        strides=_along_image(layout, 2),
        padding=_along_image(layout, 1),
        layout=layout,
    )


_IMAGE_UNITS = {
    18: [2, 2, 2, 2],
    34: [3, 4, 6, 3],
    50: [3, 4, 6, 3],
    101: [3, 4, 23, 3],
    152: [3, 8, 36, 3],
    200: [3, 24, 36, 3],
    269: [3, 30, 48, 8],
}


def get_net(
    batch_size: int,
    num_classes: int,
    num_layers: int = 50,
    image_shape: tuple[int, ...] = (3, 224, 224),
    layout: str = "NCHW",
    dtype: str = "float32",
    **kwargs: Any,
) -> relay.Function:
    """The network of the usual depths: 18 to 269 layers for images, 6n+2 or 9n+2 for small ones."""
    height = image_shape[layout.replace("N", "").index("H")]
    if height <= 28:
        units, filters, bottle_neck = _small_image_plan(num_layers)
    else:
        if num_layers not in _IMAGE_UNITS:
            raise ValueError(f"num_layers must be one of {list(_IMAGE_UNITS)}, got {num_layers}")
        units, bottle_neck = _IMAGE_UNITS[num_layers], num_layers >= 50
        filters = [64, 256, 512, 1024, 2048] if bottle_neck else [64, 64, 128, 256, 512]
    return resnet(
        units, len(units), filters, num_classes, (batch_size, *image_shape), bottle_neck,
        layout, dtype, **kwargs,
    )  # fmt: skip


def _small_image_plan(num_layers: int) -> tuple[list[int], list[int], bool]:
    if (num_layers - 2) % 9 == 0 and num_layers >= 164:
        return [(num_layers - 2) // 9] * 3, [16, 64, 128, 256], True
    if (num_layers - 2) % 6 == 0 and num_layers < 164:
        return [(num_layers - 2) // 6] * 3, [16, 16, 32, 64], False
    raise ValueError(f"small images need 6n+2 layers, or 9n+2 from 164 on, got {num_layers}")


def get_workload(
    batch_size: int = 1,
    num_classes: int = 1000,
    num_layers: int = 18,
    image_shape: tuple[int, ...] = (3, 224, 224),
    layout: str = "NCHW",
    dtype: str = "float32",
    **kwargs: Any,
) -> tuple[IRModule, dict[str, NDArray]]:
    """The network with parameters."""
    net = get_net(batch_size, num_classes, num_layers, image_shape, layout, dtype, **kwargs)
    return create_workload(net)
