"""Blocked layouts pass through operators that name axes, if no block is parted."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import tvm
from tvm import relay
from tvm.relay.transform import FoldConstant, Legalize
from tvm.target import Target

from .common import typed
from .test_alter_op_layout import RNG, altered, conv, image, random, transforms

Between = Callable[[relay.Expr], relay.Expr]


def same_at_all_levels(func: relay.Function, shape: tuple[int, ...]) -> None:
    value = RNG.uniform(-1, 1, shape).astype("float32")
    results = []
    for level in (0, 3):
        with tvm.transform.PassContext(opt_level=level):
            run = relay.create_executor("graph", mod=tvm.IRModule.from_expr(func)).evaluate()
        results.append(run(value).numpy())
    np.testing.assert_allclose(*results, rtol=1e-4, atol=1e-5 * np.abs(results[0]).max())


def norm(x: relay.Expr) -> relay.Expr:
    mean, variance = relay.mean_variance(x, axis=(2, 3), keepdims=True)
    return (x - mean) * relay.rsqrt(variance + relay.const(1e-3))


def halves(x: relay.Expr) -> relay.Expr:
    parts = relay.split(x, 2, axis=1)
    return relay.concatenate([parts[1], relay.nn.relu(parts[0])], axis=1)


def cut(x: relay.Expr) -> relay.Expr:
    first, second = relay.split(x, (16,), axis=1)
    return first * second


def rows(x: relay.Expr) -> relay.Expr:
    below = relay.split(x, 4, axis=-2)[1]
    return relay.expand_dims(relay.max(below, axis=2), axis=2)


def size(x: relay.Expr) -> relay.Expr:
    return relay.strided_slice(x, (0, 16, 3), (1, 16, -1), slice_mode="size")


def width(x: relay.Expr) -> relay.Expr:
    return relay.squeeze(relay.strided_slice(x, (2,), (3,), axes=(2,)), axis=(-2,))


@pytest.mark.parametrize(
    "between",
    [
        norm,
        halves,
        cut,
        rows,
        size,
        lambda x: relay.strided_slice(x, (0, 0, 1), (1, 32, 16), strides=(1, 1, 2)),
        lambda x: relay.strided_slice(x, (-16,), (40,), axes=(1,)),
        lambda x: x * relay.expand_dims(relay.sum(x, axis=(2, 3)), axis=2, num_newaxis=2),
        lambda x: relay.expand_dims(relay.nn.relu(width(x)), axis=2),
        lambda x: x - relay.mean(x, axis=(0, 1), exclude=True, keepdims=True),
    ],
)
def test_the_layout_of_channels_stays(between: Between) -> None:
    x = image()
    middle = between(conv(x))
    channels = typed(relay.Function([x], middle))["main"].ret_type.concrete_shape[1]
    func = relay.Function([x], conv(middle, inputs=channels))
    assert transforms(altered(func)) == 2
    same_at_all_levels(func, (1, 32, 16, 16))


@pytest.mark.parametrize(
    "between",
    [
        lambda x: relay.strided_slice(x, (8,), (24,), axes=(1,)),
        lambda x: relay.strided_slice(x, (31,), (0,), strides=(-2,), axes=(1,)),
        lambda x: relay.split(x, (8, 24), axis=1)[1],
        lambda x: relay.split(x, 1, axis=1)[0],
        lambda x: x * relay.mean(x, axis=1, keepdims=True),
        lambda x: relay.expand_dims(relay.max(x, axis=(0, 1)), axis=0, num_newaxis=2),
        lambda x: relay.squeeze(relay.expand_dims(x, axis=0), axis=(0,)),
    ],
)
def test_parted_blocks_give_the_values_of_plain_ones(between: Between) -> None:
    x = image()
    middle = between(conv(x))
    channels = typed(relay.Function([x], middle))["main"].ret_type.concrete_shape[1]
    same_at_all_levels(relay.Function([x], conv(middle, inputs=channels)), (1, 32, 16, 16))


def test_convolutions_over_time_keep_their_layout() -> None:
    x = relay.var("x", shape=(1, 32, 40))
    y = relay.nn.conv1d(x, random(32, 32, 3), padding=(1,), channels=32, kernel_size=(3,))
    y = relay.nn.relu(y + random(32, 1))
    z = relay.nn.conv1d(y, random(32, 32, 3), padding=(1,), channels=32, kernel_size=(3,))
    func = relay.Function([x], relay.strided_slice(z + y, (2,), (30,), axes=(2,)))
    with Target("llvm"):
        planes = FoldConstant()(Legalize()(typed(func)))["main"]
    assert transforms(altered(planes)) == 2
    same_at_all_levels(func, (1, 32, 40))
