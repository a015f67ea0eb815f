"""Convolutions to few channels stay in the plain layout, in vectors along the rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import tvm
from tvm import relay

from .test_alter_op_layout import RNG, altered, altered_for, conv, image, random


def narrow(
    x: relay.Expr, inputs: int, channels: int, kernel: tuple[int, int] = (3, 3), **attrs: Any
) -> relay.Expr:
    weight = random(channels, inputs, *kernel)
    return relay.nn.conv2d(x, weight, channels=channels, kernel_size=kernel, **attrs)


def operators(func: relay.Function) -> dict[str, int]:
    return dict(relay.analysis.list_op_freqs(tvm.IRModule.from_expr(func)))


@pytest.mark.parametrize("channels", [1, 3, 5, 8])
@pytest.mark.parametrize("width", [12, 17, 37, 68])
def test_any_width_is_computed_in_full_vectors(channels: int, width: int) -> None:
    x = relay.var("x", shape=(2, 6, 7, width))
    y = narrow(x, 6, channels, (3, 5), padding=(1, 3, 0, 1), dilation=(1, 2))
    weight = y.args[1].data.numpy()
    func = relay.Function([x], relay.tanh(y + random(channels, 1, 1)))
    bias = func.body.args[0].args[1].data.numpy()
    assert operators(altered_for(func, "llvm -mcpu=x86-64-v4"))["nn.conv2d"] == 1
    value = RNG.uniform(-1, 1, (2, 6, 7, width)).astype("float32")
    with tvm.transform.PassContext(opt_level=3):
        found = relay.create_executor("graph", target="llvm").evaluate(func)(value).numpy()
    padded = torch.nn.functional.pad(torch.tensor(value), (3, 1, 1, 0))
    wanted = torch.conv2d(padded, torch.tensor(weight), dilation=(1, 2)).numpy()
    np.testing.assert_allclose(found, np.tanh(wanted + bias), rtol=1e-4, atol=1e-5)


def test_rows_of_the_image_may_be_left_out() -> None:
    x = relay.var("x", shape=(1, 6, 9, 32))
    func = relay.Function([x], narrow(x, 6, 3, strides=(2, 1), padding=(1, 1)))
    assert operators(altered(func))["nn.conv2d"] == 1


@pytest.mark.parametrize(
    "make",
    [
        lambda x: narrow(x, 32, 9, padding=(1, 1)),
        lambda x: narrow(x, 32, 3, strides=(1, 2), padding=(1, 1)),
        lambda x: narrow(conv(x), 32, 2, (1, 1)),
        lambda x: narrow(relay.strided_slice(x, (0, 0, 0, 0), (1, 32, 16, 7)), 32, 3),
    ],
)
def test_where_rows_are_no_better_channels_are_blocked(make: Any) -> None:
    x = image()
    assert "nn.conv2d" not in operators(altered(relay.Function([x], make(x))))


def test_blocked_data_come_to_a_wide_window_in_the_plain_layout() -> None:
    x = image()
    found = operators(altered(relay.Function([x], narrow(conv(x), 32, 3, (5, 5)))))
    assert found["nn.conv2d"] == 1 and found["layout_transform"] == 2
