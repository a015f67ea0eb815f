"""QDQ products of every kind: integers from end to end, exact in the sums."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tvm
from tvm import relay
from tvm.contrib import graph_executor
from tvm.relay.transform import FakeQuantizationToInteger, IntegerProducts, precision_report
from tvm.relay.traverse import post_order

RNG = np.random.default_rng(11)
VNNI = "llvm -mcpu=cascadelake"
SIZES = (5, 6, 7)


def dequantized(values: np.ndarray, scale: Any, zero: Any, axis: int = 0) -> relay.Expr:
    parameters = (relay.const(np.asarray(scale, "float32")), relay.const(np.asarray(zero, "int32")))
    return relay.qnn.op.dequantize(relay.const(values), *parameters, axis=axis)


def data(shape: tuple[int, ...], zero: int = 113) -> tuple[relay.Var, relay.Expr]:
    x = relay.var("x", shape=shape, dtype="uint8")
    return x, relay.qnn.op.dequantize(x, relay.const(np.float32(1)), relay.const(zero))


def kernel(shape: tuple[int, ...], axis: int | None) -> relay.Expr:
    values = RNG.integers(-128, 128, shape).astype("int8")
    scale = np.float32(1) if axis is None else 2.0 ** RNG.integers(-2, 3, shape[axis])
    return dequantized(values, scale, np.zeros(np.shape(scale), "int32"), axis or 0)


def optimised(func: relay.Function, target: str = VNNI) -> relay.Function:
    with tvm.target.Target(target):
        return IntegerProducts()(tvm.IRModule.from_expr(func))["main"]


def operators(func: relay.Expr) -> list[str]:
    return [n.op.name for n in post_order(func) if isinstance(n, relay.Call)]


def value(func: relay.Function, level: int, *inputs: np.ndarray) -> np.ndarray:
    with tvm.transform.PassContext(opt_level=level):
        lib = relay.build(tvm.IRModule.from_expr(func), "llvm")
    module = graph_executor.GraphModule(lib["default"](tvm.cpu()))
    for i, array in enumerate(inputs):
        module.set_input(i, array)
    module.run()
    return module.get_output(0).numpy()


def random_bytes(func: relay.Function) -> list[np.ndarray]:
    return [RNG.integers(0, 256, [int(d) for d in p.type_annotation.shape]).astype("uint8")
            for p in func.params]  # fmt: skip


def expect_exact(func: relay.Function, wanted: str) -> None:
    """Integers below 2**24 times powers of two: float32 is exact at level 0."""
    assert wanted in operators(optimised(func))
    inputs = random_bytes(func)
    expected = value(func, 0, *inputs)
    np.testing.assert_array_equal(value(func, 3, *inputs), expected)
    assert len(np.unique(expected)) > 5


@pytest.mark.parametrize("groups", [1, 2, 8])
@pytest.mark.parametrize("rank", [1, 3])
def test_convolutions_of_all_ranks_are_exact(rank: int, groups: int) -> None:
    x, real = data((1, 8, *SIZES[-rank:]))
    conv = {1: relay.nn.conv1d, 3: relay.nn.conv3d}[rank]
    weight = kernel((16, 8 // groups, *(3,) * rank), 0)
    body = conv(real, weight, padding=1, groups=groups, strides=1 + groups % 2)
    expect_exact(relay.Function([x], body), f"qnn.conv{rank}d")


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_transposed_convolutions_are_exact(rank: int, groups: int) -> None:
    x, real = data((1, 8, *SIZES[-rank:]))
    conv = getattr(relay.nn, f"conv{rank}d_transpose")
    weight = kernel((8, 4, *(3,) * rank), 1)
    body = conv(real, weight, padding=1, strides=2, groups=groups, channels=4 * groups)
    expect_exact(relay.Function([x], body), f"qnn.conv{rank}d_transpose")


def test_scales_follow_an_axis_that_is_moved() -> None:
    x, real = data((1, 8, 1, 7))
    weight = relay.expand_dims(kernel((8, 4, 3), 1), axis=2)
    body = relay.nn.conv2d_transpose(real, weight, strides=(1, 2), channels=4)
    expect_exact(relay.Function([x], body), "qnn.conv2d_transpose")


def products() -> dict[str, Callable[[relay.Expr, relay.Expr], relay.Expr]]:
    return {
        "batch": lambda a, b: relay.nn.batch_matmul(
            relay.reshape(a, (2, 3, 20)), relay.reshape(b, (2, 9, 20))
        ),
        "plain": lambda a, b: relay.nn.batch_matmul(
            relay.reshape(a, (1, 20, 6)), relay.reshape(b, (1, 20, 18)),
            transpose_a=True, transpose_b=False,
        ),
        "dense": lambda a, b: relay.nn.dense(
            relay.reshape(a, (6, 20)), relay.reshape(b, (18, 20))
        ),
        "matmul": lambda a, b: relay.nn.matmul(
            relay.reshape(a, (6, 20)), relay.transpose(relay.reshape(b, (18, 20)), (1, 0))
        ),
    }  # fmt: skip


@pytest.mark.parametrize("zeros", [(113, 90), (0, 128), (0, 0)])
@pytest.mark.parametrize("name", list(products()))
def test_products_of_computed_matrices_are_exact(name: str, zeros: tuple[int, int]) -> None:
    a, left = data((120,), zeros[0])
    b, right = data((360,), zeros[1])
    func = relay.Function([a, b], products()[name](left, right))
    expect_exact(func, "qnn.batch_matmul")


def test_a_border_of_zeros_is_put_around_the_integers() -> None:
    x, real = data((1, 8, 6, 6))
    padded = relay.nn.pad(real, ((0, 0), (0, 0), (1, 1), (2, 0)))
    func = relay.Function([x], relay.nn.conv2d(padded, kernel((16, 8, 3, 3), 0)))
    expect_exact(func, "qnn.conv2d")


@pytest.mark.parametrize(
    "body, reason",
    [
        (
            lambda x: relay.nn.conv2d_transpose(x, kernel((8, 4, 3, 3), 0), channels=4),
            "the weight's scales are not those of output channels",
        ),
        (
            lambda x: relay.nn.conv2d_transpose(
                x, kernel((8, 4, 2, 2), 1), channels=4, dilation=2
            ),
            "dilated transposed convolutions have no integer kernel",
        ),
    ],
)  # fmt: skip
def test_the_report_names_what_stays(body: Callable[..., relay.Expr], reason: str) -> None:
    x, real = data((1, 8, 6, 6))
    report = precision_report(tvm.IRModule.from_expr(relay.Function([x], body(real))), VNNI)
    assert [row.reason for row in report.stayed] == [reason]


@pytest.mark.parametrize("rank, transposed", [(1, False), (3, False), (1, True), (3, True)])
def test_fake_quantisation_of_all_ranks_becomes_integers(rank: int, transposed: bool) -> None:
    x, real = data((1, 8, *SIZES[-rank:]))
    name = f"conv{rank}d{'_transpose' if transposed else ''}"
    groups = 2 if transposed else 1
    weight = kernel((8, 4, *(3,) * rank), 1) if transposed else kernel((8, 8, *(3,) * rank), 0)
    out = getattr(relay.nn, name)(real, weight, padding=1, groups=groups, channels=8)
    scale, zero = relay.const(np.float32(200)), relay.const(100)
    func = relay.Function([x], relay.qnn.op.quantize(out, scale, zero, out_dtype="uint8"))
    mod = relay.transform.InferType()(tvm.IRModule.from_expr(func))
    integers = FakeQuantizationToInteger(hard_fail=True)(mod)["main"]
    assert f"qnn.{name}" in operators(integers) and "qnn.quantize" not in operators(integers)
    inputs = random_bytes(func)
    gap = value(integers, 3, *inputs).astype(int) - value(func, 0, *inputs)
    assert np.abs(gap).max() <= 1
