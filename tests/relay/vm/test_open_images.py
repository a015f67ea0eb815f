"""Convolutions of images whose height and width only the run knows, in blocked layouts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tvm
from tvm import relay, te
from tvm.ir.transform import Sequential
from tvm.relay.pipeline import vm_optimization
from tvm.relay.traverse import post_order
from tvm.runtime.vm import VirtualMachine
from tvm.topi.cpu.common import processor
from tvm.topi.nn.conv2d.winograd_open_cpu import open_tiles
from tvm.topi.testing import conv2d_nchw_python, conv2d_transpose_nchw_python

Network = Callable[[relay.Expr], relay.Expr]
# smaller than a tile, not square, a few tiles and a rest
SIZES = [(1, 1), (1, 5), (9, 2), (7, 7), (20, 21)]


def weights(*shape: int, seed: int = 0) -> np.ndarray:
    terms = np.prod(shape[1:]) or 1
    return (np.random.default_rng(seed).normal(size=shape) / np.sqrt(terms)).astype("float32")


def open_module(network: Network, batch: Any, channels: int) -> tvm.IRModule:
    x = relay.var("x", shape=(batch, channels, relay.Any(), relay.Any()))
    return tvm.IRModule.from_expr(relay.Function([x], network(x)))


def open_machine(network: Network, batch: Any, channels: int) -> VirtualMachine:
    return compiled(open_module(network, batch, channels))


def compiled(mod: tvm.IRModule) -> VirtualMachine:
    with tvm.transform.PassContext(opt_level=3):
        return VirtualMachine(relay.vm.compile(mod, "llvm"), tvm.cpu())


def image(*shape: int) -> np.ndarray:
    return np.random.default_rng(1).normal(size=shape).astype("float32")


def padded_enough(sizes: Sequence[tuple[int, int]], reach: int) -> list[tuple[int, int]]:
    return [size for size in sizes if min(size) >= reach]


@pytest.mark.parametrize(
    ("channels", "filters", "window", "stride", "padding", "dilation", "groups"),
    [
        (32, 64, 1, 1, 0, 1, 1),
        (16, 32, 3, 1, 0, 1, 1),
        (16, 24, 3, 2, 1, 1, 1),
        (3, 32, 7, 2, 3, 1, 1),
        (8, 16, 3, 1, 2, 2, 1),
        (5, 7, 3, 1, 1, 1, 1),
        (128, 32, 3, 1, 1, 1, 1),
        (512, 24, 3, 2, 1, 1, 1),
        (64, 64, 3, 1, 1, 1, 16),
        (32, 32, 3, 1, 1, 1, 32),
        (24, 24, 5, 2, 0, 1, 24),
    ],
)
def test_convolution_of_any_image(
    channels: int, filters: int, window: int, stride: int, padding: int, dilation: int, groups: int
) -> None:
    kernel = weights(filters, channels // groups, window, window)
    steps = {"strides": stride, "padding": padding, "dilation": dilation, "groups": groups}

    def network(x: relay.Expr) -> relay.Expr:
        conv = relay.nn.conv2d(
            x, relay.const(kernel), channels=filters, kernel_size=window, **steps
        )
        return relay.nn.relu(conv)

    machine = open_machine(network, 1, channels)
    wide = np.zeros((filters, channels // groups, *[(window - 1) * dilation + 1] * 2), "float32")
    wide[:, :, ::dilation, ::dilation] = kernel
    for height, width in padded_enough(SIZES, wide.shape[2] - 2 * padding):
        data = image(1, channels, height, width)
        wanted = np.maximum(conv2d_nchw_python(data, wide, stride, padding, groups), 0)
        np.testing.assert_allclose(machine.invoke("main", data).numpy(), wanted, 1e-4, 1e-4)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "bfloat16", "float16"])
@pytest.mark.parametrize(
    ("channels", "filters", "window", "stride", "groups"),
    [
        (32, 64, 1, 1, 1),
        (256, 256, 3, 1, 1),
        (16, 24, 3, 2, 1),
        (3, 32, 7, 2, 1),
        (64, 64, 3, 1, 4),
        (32, 32, 3, 1, 32),
    ],
)
def test_narrow_convolution_of_any_image(
    dtype: str, channels: int, filters: int, window: int, stride: int, groups: int
) -> None:
    is_integer = dtype.endswith("int8")
    sums = {"float16": "", "bfloat16": "float32"}.get(dtype, "int32")
    kernel = np.round(weights(filters, channels // groups, window, window) * 40).clip(-100, 100)
    kernel = kernel.astype("int8" if is_integer else np.dtype(getattr(ml_dtypes, dtype, dtype)))
    steps = {"strides": stride, "padding": window // 2, "groups": groups, "out_dtype": sums}
    size = {"channels": filters, "kernel_size": window}
    x = relay.var("x", shape=(1, channels, relay.Any(), relay.Any()), dtype=dtype)
    mod = tvm.IRModule.from_expr(
        relay.nn.relu(relay.nn.conv2d(x, relay.const(kernel), **size, **steps))
    )
    machine = compiled(mod)
    for height, width in SIZES:
        data = np.round(image(1, channels, height, width) * 3 + 4).clip(0, 9)
        data = data.astype(np.dtype(getattr(ml_dtypes, dtype, dtype)))
        exact = [x.astype("float32") for x in (data, kernel)]
        wanted = np.maximum(conv2d_nchw_python(*exact, stride, window // 2, groups), 0)
        found = machine.invoke("main", data).numpy().astype("float32")
        np.testing.assert_allclose(found, wanted, 0, 0 if is_integer else 0.01 * wanted.max())


def test_dot_products_of_any_image_are_in_words() -> None:
    x = relay.var("x", shape=(1, 64, relay.Any(), relay.Any()), dtype="uint8")
    kernel = relay.const(np.ones((64, 64, 3, 3), "int8"))
    size = {"channels": 64, "kernel_size": 3, "padding": 1}
    conv = relay.nn.conv2d(x, kernel, **size, out_dtype="int32")
    with tvm.transform.PassContext(opt_level=3):
        program = relay.vm.compile(tvm.IRModule.from_expr(conv), "llvm -mcpu=znver4")
    assert "vpdpbusd" in program.lib.get_source("asm")


def blocked_filters(window: int, filters: int, channels: int) -> list[tuple[int, ...]]:
    """The shapes of blocked weights in the optimised program of one convolution."""
    kernel = relay.const(weights(filters, channels, window, window))
    mod = open_module(lambda x: relay.nn.conv2d(x, kernel, padding=window // 2), 1, channels)
    target = tvm.target.Target("llvm -mcpu=x86-64-v4 -mattr=+avx512f")
    with tvm.transform.PassContext(opt_level=3), target:
        mod = Sequential(vm_optimization(mod))(mod)
    constants = [node for node in post_order(mod["main"]) if isinstance(node, relay.Constant)]
    return [node.data.shape for node in constants if len(node.data.shape) == 6]


def test_vectors_of_channels_are_full_for_any_image() -> None:
    assert blocked_filters(1, 1000, 512) == [(63, 32, 1, 1, 16, 16)]


def test_small_images_of_any_size_pad_few_tiles() -> None:
    (kernel,) = blocked_filters(3, 32, 128)
    assert kernel == (1, 6, 6, 8, 16, 32)
    with tvm.target.Target("llvm -mcpu=x86-64-v4"):
        tiles = open_tiles(te.placeholder(kernel), 16, "float32", processor())
    assert tiles.config.columns <= 5


def test_batch_height_and_width_open_at_once() -> None:
    kernel = weights(16, 8, 1, 1)
    machine = open_machine(
        lambda x: relay.nn.conv2d(x, relay.const(kernel), channels=16, kernel_size=1),
        relay.Any(),
        8,
    )
    for shape in ((1, 8, 3, 5), (3, 8, 9, 2), (0, 8, 4, 4)):
        data = image(*shape)
        found = machine.invoke("main", data).numpy()
        assert found.shape == (shape[0], 16, *shape[2:])
        np.testing.assert_allclose(found, np.einsum("nchw,oc->nohw", data, kernel[..., 0, 0]), 1e-4)


def residual_network(x: relay.Expr) -> relay.Expr:
    """Convolution, pooling, a residual block with a strided shortcut, depthwise convolution."""

    def conv(x: relay.Expr, kernel: np.ndarray, **steps: Any) -> relay.Expr:
        bias = relay.const(weights(kernel.shape[0], 1, 1, seed=2))
        size = {"channels": kernel.shape[0], "kernel_size": kernel.shape[2:]}
        return relay.add(relay.nn.conv2d(x, relay.const(kernel), **size, **steps), bias)

    x = relay.nn.relu(conv(x, weights(32, 3, 3, 3), strides=2, padding=1))
    x = relay.nn.max_pool2d(x, (3, 3), (2, 2), padding=(1, 1))
    y = relay.nn.relu(conv(x, weights(32, 32, 3, 3), strides=2, padding=1))
    y = conv(y, weights(64, 32, 1, 1))
    x = relay.nn.relu(relay.add(y, conv(x, weights(64, 32, 1, 1), strides=2)))
    x = relay.clip(conv(x, weights(64, 1, 3, 3), padding=1, groups=64), 0.0, 6.0)
    return relay.nn.global_avg_pool2d(x)


def test_network_of_any_image_agrees_with_those_of_fixed_ones() -> None:
    machine = open_machine(residual_network, 1, 3)
    for height, width in ((1, 1), (5, 3), (16, 33), (47, 32)):
        data = image(1, 3, height, width)
        x = relay.var("x", shape=data.shape)
        fixed = relay.create_executor(
            "graph", tvm.IRModule.from_expr(relay.Function([x], residual_network(x))), tvm.cpu(),
            "llvm",
        ).evaluate()  # fmt: skip
        wanted = fixed(data).numpy()
        np.testing.assert_allclose(machine.invoke("main", data).numpy(), wanted, 1e-4, 1e-5)


def test_no_layout_changes_between_convolutions_of_any_image() -> None:
    mod = open_module(residual_network, 1, 3)
    with tvm.transform.PassContext(opt_level=3), tvm.target.Target("llvm"):
        mod = Sequential(vm_optimization(mod))(mod)
    names = [
        node.op.name
        for node in post_order(mod["main"])
        if isinstance(node, relay.Call) and isinstance(node.op, tvm.ir.Op)
    ]
    assert names.count("layout_transform") == 2  # of the image, and of the result
    assert names.count("nn.contrib_conv2d_NCHWc") == 4
    assert names.count("nn.contrib_depthwise_conv2d_NCHWc") == 1


@pytest.mark.parametrize(
    ("window", "stride", "padding", "extra", "groups"),
    [(4, 2, 1, 0, 1), (3, 2, 1, 1, 1), (2, 2, 0, 0, 4), (3, 1, 1, 0, 1)],
)
def test_transposed_convolution_of_any_batch_and_image(
    window: int, stride: int, padding: int, extra: int, groups: int
) -> None:
    kernel = weights(16, 8 // groups, window, window)

    def network(x: relay.Expr) -> relay.Expr:
        return relay.nn.conv2d_transpose(
            x, relay.const(kernel), strides=stride, padding=padding, output_padding=extra,
            groups=groups, channels=8, kernel_size=window,
        )  # fmt: skip

    machine = open_machine(network, relay.Any(), 16)
    for shape in ((1, 16, 5, 7), (2, 16, 8, 3)):
        data = image(*shape)
        parts = zip(np.split(data, groups, 1), np.split(kernel, groups, 0), strict=True)
        steps = ((stride, stride), (padding,) * 4, (extra, extra))
        wanted = [conv2d_transpose_nchw_python(x, w, *steps) for x, w in parts]
        found = machine.invoke("main", data).numpy()
        np.testing.assert_allclose(found, np.concatenate(wanted, 1), 1e-4, 1e-4)


@pytest.mark.parametrize(
    ("opened", "window", "stride", "padding", "dilation"),
    [
        ((3, 4), 3, 1, 1, 1),
        ((2, 3, 4), 3, 2, 1, 1),
        ((2, 3, 4), 2, 1, 0, 2),
        ((0, 3, 4), 3, 2, 0, 1),
    ],
)
def test_convolution_of_any_volume(
    opened: tuple[int, ...], window: int, stride: int, padding: int, dilation: int
) -> None:
    kernel = weights(16, 3, *[window] * 3)
    steps = {"strides": stride, "padding": padding, "dilation": dilation}

    def network(x: relay.Expr) -> relay.Expr:
        return relay.nn.conv3d(x, relay.const(kernel), channels=16, kernel_size=window, **steps)

    given = (2, 3, 6, 9, 7)
    shape = [relay.Any() if i in opened else extent for i, extent in enumerate(given)]
    open_one = compiled(tvm.IRModule.from_expr(network(relay.var("x", shape=shape))))
    known = compiled(tvm.IRModule.from_expr(network(relay.var("x", shape=given))))
    data = image(*given)
    wanted = known.invoke("main", data).numpy()
    np.testing.assert_allclose(open_one.invoke("main", data).numpy(), wanted, 1e-4, 1e-4)
