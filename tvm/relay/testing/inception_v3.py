"""Inception v3: blocks of parallel convolutions, after Szegedy et al. (2015)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import relay
from tvm.ir.expr import RelayExpr
from tvm.ir.module import IRModule
from tvm.runtime.ndarray import NDArray

from . import layers
from .init import create_workload

Pair = tuple[int, int]
# channels, kernel and padding of one convolution
Step = tuple[int, Pair, Pair]
_POOLS = {"max": relay.nn.max_pool2d, "avg": relay.nn.avg_pool2d}


def Conv(
    data: RelayExpr,
    num_filter: int,
    kernel: Pair = (1, 1),
    stride: Pair = (1, 1),
    pad: Pair = (0, 0),
    name: str | None = None,
    suffix: str | None = "",
) -> RelayExpr:
    """Convolve, normalise, activate."""
    conv = layers.conv2d(
        data,
        channels=int(num_filter),
        kernel_size=kernel,
        strides=stride,
        padding=pad,
        name=f"{name}{suffix}_conv1",
    )
    bn = layers.batch_norm_infer(conv, epsilon=2e-5, scale=False, name=f"{name}{suffix}_bn")
    return relay.nn.relu(bn)


def Pooling(
    data: RelayExpr, kernel: Pair, stride: Pair, pad: Pair, pool_type: str, name: str
) -> RelayExpr:
    """A pooling of type "max" or "avg"; averages count the padding."""
    if pool_type not in _POOLS:
        raise ValueError(f"pool_type of {name} must be one of {list(_POOLS)}, got {pool_type!r}")
    counts: dict[str, Any] = {"count_include_pad": True} if pool_type == "avg" else {}
    return _POOLS[pool_type](data, pool_size=kernel, strides=stride, padding=pad, **counts)


def _tower(data: RelayExpr, steps: Sequence[Step], name: str, stride: Pair = (1, 1)) -> RelayExpr:
    """Convolutions one after another, the last with the stride."""
    for index, (channels, kernel, pad) in enumerate(steps):
        is_last = index == len(steps) - 1
        suffix = f"_conv_{index}" if index else "_conv"
        data = Conv(data, channels, kernel, stride if is_last else (1, 1), pad, name, suffix)
    return data


def _point(channels: int) -> Step:
    return (channels, (1, 1), (0, 0))


def _pooled(data: RelayExpr, pool: str, channels: int, name: str) -> RelayExpr:
    value = Pooling(data, (3, 3), (1, 1), (1, 1), pool, f"{name}_pool")
    return Conv(value, channels, name=f"{name}_tower_2", suffix="_conv")


def Inception7A(
    data: RelayExpr,
    num_1x1: int,
    num_3x3_red: int,
    num_3x3_1: int,
    num_3x3_2: int,
    num_5x5_red: int,
    num_5x5: int,
    pool: str,
    proj: int,
    name: str,
) -> RelayExpr:
    """Branches of 1x1, 5x5, two 3x3, and a pooling."""
    wide = (num_3x3_2, (3, 3), (1, 1))
    return relay.concatenate(
        (
            Conv(data, num_1x1, name=f"{name}_conv"),
            _tower(data, [_point(num_5x5_red), (num_5x5, (5, 5), (2, 2))], f"{name}_tower"),
            _tower(
                data, [_point(num_3x3_red), (num_3x3_1, (3, 3), (1, 1)), wide], f"{name}_tower_1"
            ),
            _pooled(data, pool, proj, name),
        ),
        axis=1,
    )


def Inception7B(
    data: RelayExpr,
    num_3x3: int,
    num_d3x3_red: int,
    num_d3x3_1: int,
    num_d3x3_2: int,
    pool: str,
    name: str,
) -> RelayExpr:
    """Halve the image: a 3x3, two 3x3, and a pooling."""
    double = [_point(num_d3x3_red), (num_d3x3_1, (3, 3), (1, 1)), (num_d3x3_2, (3, 3), (0, 0))]
    return relay.concatenate(
        (
            Conv(data, num_3x3, (3, 3), (2, 2), (0, 0), f"{name}_conv"),
            _tower(data, double, f"{name}_tower", stride=(2, 2)),
            Pooling(data, (3, 3), (2, 2), (0, 0), pool, f"{name}_pool"),
        ),
        axis=1,
    )


def Inception7C(
    data: RelayExpr,
    num_1x1: int,
    num_d7_red: int,
    num_d7_1: int,
    num_d7_2: int,
    num_q7_red: int,
    num_q7_1: int,
    num_q7_2: int,
    num_q7_3: int,
    num_q7_4: int,
    pool: str,
    proj: int,
    name: str,
) -> RelayExpr:
    """Branches of 1x1, one and two pairs of 1x7 and 7x1, and a pooling."""
    row, column = ((1, 7), (0, 3)), ((7, 1), (3, 0))
    double = [_point(num_d7_red), (num_d7_1, *row), (num_d7_2, *column)]
    quad = [
        _point(num_q7_red),
        (num_q7_1, *column),
        (num_q7_2, *row),
        (num_q7_3, *column),
        (num_q7_4, *row),
    ]
    return relay.concatenate(
        (
            Conv(data, num_1x1, name=f"{name}_conv"),
            _tower(data, double, f"{name}_tower"),
            _tower(data, quad, f"{name}_tower_1"),
            _pooled(data, pool, proj, name),
        ),
        axis=1,
    )


def Inception7D(
    data: RelayExpr,
    num_3x3_red: int,
    num_3x3: int,
    num_d7_3x3_red: int,
    num_d7_1: int,
    num_d7_2: int,
    num_d7_3x3: int,
    pool: str,
    name: str,
) -> RelayExpr:
    """Halve the image: a 3x3, a 1x7, 7x1 and 3x3, and a pooling."""
    last = ((3, 3), (0, 0))
    wide = [
        _point(num_d7_3x3_red),
        (num_d7_1, (1, 7), (0, 3)),
        (num_d7_2, (7, 1), (3, 0)),
        (num_d7_3x3, *last),
    ]
    return relay.concatenate(
        (
            _tower(data, [_point(num_3x3_red), (num_3x3, *last)], f"{name}_tower", (2, 2)),
            _tower(data, wide, f"{name}_tower_1", (2, 2)),
            Pooling(data, (3, 3), (2, 2), (0, 0), pool, f"{name}_pool"),
        ),
        axis=1,
    )


def Inception7E(
    data: RelayExpr,
    num_1x1: int,
    num_d3_red: int,
    num_d3_1: int,
    num_d3_2: int,
    num_3x3_d3_red: int,
    num_3x3: int,
    num_3x3_d3_1: int,
    num_3x3_d3_2: int,
    pool: str,
    proj: int,
    name: str,
) -> RelayExpr:
    """Branches of 1x1, 1x3 beside 3x1 twice, and a pooling."""

    def spread(value: RelayExpr, channels: Pair, tower: str) -> tuple[RelayExpr, RelayExpr]:
        row = Conv(value, channels[0], (1, 3), pad=(0, 1), name=tower, suffix="_mixed_conv")
        column = Conv(value, channels[1], (3, 1), pad=(1, 0), name=tower, suffix="_mixed_conv_1")
        return row, column

    narrow = _tower(data, [_point(num_d3_red)], f"{name}_tower")
    wide = _tower(data, [_point(num_3x3_d3_red), (num_3x3, (3, 3), (1, 1))], f"{name}_tower_1")
    return relay.concatenate(
        (
            Conv(data, num_1x1, name=f"{name}_conv"),
            *spread(narrow, (num_d3_1, num_d3_2), f"{name}_tower"),
            *spread(wide, (num_3x3_d3_1, num_3x3_d3_2), f"{name}_tower_1"),
            _pooled(data, pool, proj, name),
        ),
        axis=1,
    )


def _stem(data: RelayExpr) -> RelayExpr:
    value = Conv(data, 32, (3, 3), (2, 2), name="conv")
    value = Conv(value, 32, (3, 3), name="conv_1")
    value = Conv(value, 64, (3, 3), pad=(1, 1), name="conv_2")
    value = Pooling(value, (3, 3), (2, 2), (0, 0), "max", "pool")
    value = Conv(value, 80, (1, 1), name="conv_3")
    value = Conv(value, 192, (3, 3), name="conv_4")
    return Pooling(value, (3, 3), (2, 2), (0, 0), "max", "pool1")


def get_net(
    batch_size: int, num_classes: int, image_shape: tuple[int, int, int], dtype: str
) -> relay.Function:
    """The network; images of 299 x 299 are usual."""
    value = _stem(relay.var("data", shape=(batch_size, *image_shape), dtype=dtype))
    for index, proj in enumerate((32, 64, 64)):
        name = f"mixed_{index}" if index else "mixed"
        value = Inception7A(value, 64, 64, 96, 96, 48, 64, "avg", proj, name)
    value = Inception7B(value, 384, 64, 96, 96, "max", "mixed_3")
    for index, width in enumerate((128, 160, 160, 192), start=4):
        value = Inception7C(
            value, 192, width, width, 192, width, width, width, width, 192, "avg", 192,
            f"mixed_{index}",
        )  # fmt: skip
    value = Inception7D(value, 192, 320, 192, 192, 192, 192, "max", "mixed_8")
    for name, pool in (("mixed_9", "avg"), ("mixed_10", "max")):
        value = Inception7E(value, 320, 384, 384, 384, 448, 384, 384, 384, pool, 192, name)
    value = relay.nn.batch_flatten(relay.nn.global_avg_pool2d(value))
    result = relay.nn.softmax(layers.dense_add_bias(value, units=num_classes, name="fc1"))
    return relay.Function(relay.analysis.free_vars(result), result)


def get_workload(
    batch_size: int = 1,
    num_classes: int = 1000,
    image_shape: tuple[int, int, int] = (3, 299, 299),
    dtype: str = "float32",
) -> tuple[IRModule, dict[str, NDArray]]:
    """The network with parameters."""
    return create_workload(get_net(batch_size, num_classes, image_shape, dtype))
