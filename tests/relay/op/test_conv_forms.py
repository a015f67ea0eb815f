"""Convolutions of one and three axes, transposed and grouped ones, against torch."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.nn import functional

import tvm
from tvm import relay
from tvm.contrib import graph_executor

Sizes = tuple[int, ...]


def compiled(expr: relay.Expr, *inputs: np.ndarray) -> np.ndarray:
    """The expression's value for its free variables in order; the last input is a constant."""
    *params, weight = relay.analysis.free_vars(expr)
    func = relay.Function([*params, weight], expr)
    with tvm.transform.PassContext(opt_level=3):
        lib = relay.build(func, "llvm", params={weight.name_hint: inputs[-1]})
    module = graph_executor.GraphModule(lib["default"](tvm.cpu()))
    for param, value in zip(params, inputs, strict=False):
        module.set_input(param.name_hint, value)
    module.run()
    return module.get_output(0).numpy()


def drawn(*shapes: Sizes) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [rng.uniform(-1, 1, shape).astype("float32") for shape in shapes]


def check(expr: relay.Expr, expected: torch.Tensor, *inputs: np.ndarray) -> None:
    np.testing.assert_allclose(compiled(expr, *inputs), expected.numpy(), rtol=1e-4, atol=1e-4)


def variables(data: np.ndarray, weight: np.ndarray) -> list[relay.Var]:
    return [relay.var("data", shape=data.shape), relay.var("weight", shape=weight.shape)]


# shape, weight, strides, padding, dilation, groups
CONVOLUTIONS: list[tuple[Sizes, Sizes, Sizes, Sizes, Sizes, int]] = [
    ((2, 5, 17), (7, 5, 3), (2,), (1,), (1,), 1),
    ((1, 1, 50), (16, 1, 10), (5,), (0,), (1,), 1),
    ((1, 12, 23), (12, 1, 5), (1,), (4,), (2,), 12),
    ((1, 32, 9), (48, 8, 4), (1,), (2,), (1,), 4),
    ((1, 12, 9, 8), (24, 3, 3, 3), (1, 1), (1, 1), (1, 1), 4),
    ((2, 32, 7, 7), (48, 16, 3, 3), (2, 1), (1, 0), (1, 1), 2),
    ((1, 16, 6, 6), (8, 2, 3, 2), (1, 1), (1, 0), (2, 1), 8),
    ((1, 20, 6, 6), (40, 10, 1, 1), (1, 1), (0, 0), (1, 1), 2),
    ((1, 16, 5, 5), (32, 1, 3, 3), (1, 1), (1, 1), (1, 1), 16),
    ((2, 3, 5, 6, 7), (4, 3, 3, 3, 3), (1, 1, 1), (1, 1, 1), (1, 1, 1), 1),
    ((1, 3, 4, 9, 8), (16, 3, 1, 3, 3), (1, 2, 1), (0, 1, 0), (1, 1, 1), 1),
    ((1, 8, 7, 5, 5), (8, 2, 3, 2, 1), (2, 1, 2), (2, 0, 0), (2, 1, 1), 4),
]


@pytest.mark.parametrize("shape, kernel, strides, padding, dilation, groups", CONVOLUTIONS)
def test_convolution_agrees_with_torch(
    shape: Sizes, kernel: Sizes, strides: Sizes, padding: Sizes, dilation: Sizes, groups: int
) -> None:
    data, weight = drawn(shape, kernel)
    name = f"conv{len(shape) - 2}d"
    ours, theirs = getattr(relay.nn, name), getattr(functional, name)
    expr = ours(*variables(data, weight), strides, padding, dilation, groups)
    tensors = [torch.from_numpy(x) for x in (data, weight)]
    check(expr, theirs(*tensors, None, strides, padding, dilation, groups), data, weight)


# shape, weight, strides, padding, output padding, groups
TRANSPOSED: list[tuple[Sizes, Sizes, Sizes, Sizes, Sizes, int]] = [
    ((1, 6, 9), (6, 5, 16), (8,), (4,), (0,), 1),
    ((2, 4, 5), (4, 3, 3), (2,), (0,), (1,), 1),
    ((1, 8, 5, 6), (8, 4, 2, 2), (2, 2), (0, 0), (0, 0), 1),
    ((1, 4, 5, 4), (4, 6, 3, 4), (2, 3), (1, 2), (1, 2), 1),
    ((1, 8, 4, 5), (8, 3, 3, 3), (1, 1), (1, 1), (0, 0), 2),
    ((1, 4, 6, 6), (4, 2, 1, 3), (2, 2), (0, 3), (1, 0), 1),
    ((1, 8, 3, 3), (8, 1, 4, 4), (2, 2), (1, 1), (0, 0), 8),
    ((1, 4, 3, 4, 3), (4, 2, 3, 2, 4), (2, 2, 1), (1, 0, 1), (1, 0, 0), 1),
]


@pytest.mark.parametrize("shape, kernel, strides, padding, more, groups", TRANSPOSED)
def test_transposed_convolution_agrees_with_torch(
    shape: Sizes, kernel: Sizes, strides: Sizes, padding: Sizes, more: Sizes, groups: int
) -> None:
    data, weight = drawn(shape, kernel)
    rank = len(shape) - 2
    ours = getattr(relay.nn, f"conv{rank}d_transpose")
    theirs = getattr(functional, f"conv_transpose{rank}d")
    expr = ours(*variables(data, weight), strides, padding, groups=groups, output_padding=more)
    tensors = [torch.from_numpy(x) for x in (data, weight)]
    check(expr, theirs(*tensors, None, strides, padding, more, groups), data, weight)


def test_channels_last_of_other_ranks() -> None:
    data, weight = drawn((2, 11, 6), (3, 6, 8))
    expr = relay.nn.conv1d(
        *variables(data, weight), padding=1, data_layout="NWC", kernel_layout="WIO"
    )
    x, w = torch.from_numpy(data).permute(0, 2, 1), torch.from_numpy(weight).permute(2, 1, 0)
    check(expr, functional.conv1d(x, w, padding=1).permute(0, 2, 1), data, weight)


@pytest.mark.parametrize(
    "shape, kernel, strides, padding",
    [
        ((1, 16, 5, 37), (32, 16, 3, 3), (2, 1), (1, 1)),
        ((1, 16, 3, 41), (32, 16, 1, 1), (1, 1), (0, 0)),
        ((2, 8, 4, 75), (16, 8, 3, 5), (1, 2), (0, 1)),
        ((1, 32, 3, 74), (16, 8, 2, 2), (1, 1), (0, 0)),
    ],
)
def test_rows_that_tiles_do_not_divide(
    shape: Sizes, kernel: Sizes, strides: Sizes, padding: Sizes
) -> None:
    data, weight = drawn(shape, kernel)
    groups = shape[1] // kernel[1]
    out = relay.nn.conv2d(*variables(data, weight), strides, padding, groups=groups)
    expr = relay.nn.relu(out + relay.const(0.25))
    tensors = [torch.from_numpy(x) for x in (data, weight)]
    expected = functional.conv2d(*tensors, None, strides, padding, groups=groups)
    check(expr, functional.relu(expected + 0.25), data, weight)


def test_channels_last_with_what_follows() -> None:
    data, weight = drawn((2, 9, 7, 16), (3, 3, 16, 32))
    bias, deep = drawn((32,), (3, 3, 32, 1))
    layout = {"data_layout": "NHWC", "kernel_layout": "HWIO"}
    out = relay.nn.conv2d(*variables(data, weight), padding=1, **layout)
    out = relay.nn.relu(relay.nn.bias_add(out, relay.const(bias), axis=3))
    out = relay.nn.max_pool2d(out, 2, 2, layout="NHWC")
    out = relay.nn.conv2d(
        out, relay.const(deep), groups=32, data_layout="NHWC", kernel_layout="HWOI"
    )
    x, w, d = [torch.from_numpy(x) for x in (data, weight, deep)]
    expected = functional.conv2d(x.permute(0, 3, 1, 2), w.permute(3, 2, 0, 1), padding=1)
    expected = functional.max_pool2d(
        functional.relu(expected + torch.from_numpy(bias)[:, None, None]), 2
    )
    expected = functional.conv2d(expected, d.permute(2, 3, 0, 1), groups=32)
    check(out, expected.permute(0, 2, 3, 1), data, weight)


def test_channels_last_run_in_blocks() -> None:
    x, w = relay.var("x", shape=(1, 8, 8, 16)), relay.const(drawn((3, 3, 16, 16))[0])
    layout = {"data_layout": "NHWC", "kernel_layout": "HWIO"}
    func = relay.Function([x], relay.nn.relu(relay.nn.conv2d(x, w, **layout)))
    with tvm.transform.PassContext(opt_level=3):
        mod, _ = relay.optimize(func, "llvm")
    names = [
        n.op.name
        for n in relay.traverse.post_order(mod["main"])
        if isinstance(n, relay.Call) and isinstance(n.op, tvm.ir.Op)
    ]
    assert "nn.conv2d" not in names and any("contrib_conv2d" in name for name in names)


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_plain_layouts_agree_with_torch(layout: str) -> None:
    data, weight = drawn((1, 6, 9, 24), (10, 3, 3, 2))
    tensors = [torch.from_numpy(x) for x in (data, weight)]
    expected = functional.relu(functional.conv2d(*tensors, None, 1, (1, 0), 1, 2))
    kernel = "OIHW"
    if layout == "NHWC":
        data, weight = data.transpose(0, 2, 3, 1).copy(), weight.transpose(2, 3, 1, 0).copy()
        expected, kernel = expected.permute(0, 2, 3, 1), "HWIO"
    out = relay.nn.relu(
        relay.nn.conv2d(
            *variables(data, weight), padding=(1, 0), groups=2, data_layout=layout,
            kernel_layout=kernel,
        )
    )  # fmt: skip
    with tvm.transform.PassContext(opt_level=1):
        lib = relay.build(relay.Function(relay.analysis.free_vars(out), out), "llvm")
    module = graph_executor.GraphModule(lib["default"](tvm.cpu()))
    module.set_input("data", data)
    module.set_input("weight", weight)
    module.run()
    np.testing.assert_allclose(module.get_output(0).numpy(), expected, rtol=1e-4, atol=1e-4)


def test_multiplier_of_depthwise_kernels_with_channels_last() -> None:
    data, weight = drawn((1, 6, 7, 8), (3, 3, 8, 2))
    out = relay.nn.conv2d(
        *variables(data, weight), groups=8, channels=16, data_layout="NHWC", kernel_layout="HWOI"
    )
    x, w = torch.from_numpy(data).permute(0, 3, 1, 2), torch.from_numpy(weight)
    expected = functional.conv2d(x, w.permute(2, 3, 0, 1).reshape(16, 1, 3, 3), groups=8)
    check(out, expected.permute(0, 2, 3, 1), data, weight)
