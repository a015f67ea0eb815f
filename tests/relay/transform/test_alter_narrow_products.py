"""Layouts of products of narrow numbers: groups for dot products, and the numbers that come out."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import tvm
from tvm import relay
from tvm.contrib import graph_executor
from tvm.relay.traverse import post_order

NEW = "llvm -mcpu=cooperlake"
RNG = np.random.default_rng(9)


def constant(shape: tuple[int, ...], dtype: str) -> relay.Constant:
    if dtype == "int8":
        return relay.const(RNG.integers(-128, 127, shape, "int8", endpoint=True))
    return relay.const(RNG.normal(size=shape).astype(ml_dtypes.bfloat16))


def conv(
    dtype: str, shape: tuple[int, ...], weight: tuple[int, ...], **attrs: object
) -> relay.Expr:
    x = relay.var("x", shape=shape, dtype="uint8" if dtype == "int8" else dtype)
    sums = "int32" if dtype == "int8" else "float32"
    w = constant(weight, dtype)
    return relay.nn.conv2d(x, w, kernel_size=weight[2:], out_dtype=sums, **attrs)


def calls(body: relay.Expr, target: str = NEW) -> list[relay.Call]:
    mod = tvm.IRModule.from_expr(relay.Function(relay.analysis.free_vars(body), body))
    with tvm.transform.PassContext(opt_level=3):
        func = relay.optimize(mod, target)[0]["main"]
    return [n for n in post_order(func) if isinstance(n, relay.Call)]


def kernel_layouts(body: relay.Expr, target: str = NEW) -> list[str]:
    return [c.attrs.kernel_layout for c in calls(body, target) if "conv2d" in c.op.name]


def value(body: relay.Expr, x: np.ndarray, opt_level: int, target: str = "llvm") -> np.ndarray:
    mod = tvm.IRModule.from_expr(relay.Function(relay.analysis.free_vars(body), body))
    with tvm.transform.PassContext(opt_level=opt_level):
        lib = relay.build(mod, target)
    module = graph_executor.GraphModule(lib["default"](tvm.cpu()))
    module.set_input("x", tvm.nd.array(x))
    module.run()
    return module.get_output(0).numpy()


def test_weights_come_in_groups_of_the_instruction() -> None:
    shape, weight = (1, 32, 8, 8), (48, 32, 1, 1)
    assert kernel_layouts(conv("int8", shape, weight)) == ["OIHW4i16o4i"]
    assert kernel_layouts(conv("bfloat16", shape, weight)) == ["OIHW8i16o2i"]


def test_channels_that_fill_half_a_vector_take_half_the_instruction() -> None:
    assert kernel_layouts(conv("int8", (1, 24, 8, 8), (24, 24, 1, 1))) == ["OIHW2i8o4i"]


def test_missing_channels_of_a_group_are_zeros() -> None:
    assert kernel_layouts(conv("int8", (1, 3, 9, 9), (16, 3, 3, 3))) == ["OIHW1i16o4i"]


def test_without_the_instruction_weights_have_no_groups() -> None:
    body = conv("int8", (1, 32, 8, 8), (48, 32, 1, 1))
    assert all("4i16o4i" not in layout for layout in kernel_layouts(body, "llvm -mcpu=core-avx2"))


def test_bfloat16_takes_winograd_in_float32_where_that_is_faster() -> None:
    large = calls(conv("bfloat16", (1, 64, 56, 56), (64, 64, 3, 3), padding=(1, 1)))
    assert any("winograd" in c.op.name for c in large)
    small = calls(conv("bfloat16", (1, 64, 56, 56), (64, 64, 1, 1)))
    assert not any("winograd" in c.op.name for c in small)


CASES = [
    ((1, 3, 11, 13), (16, 3, 3, 3), {"strides": (2, 2), "padding": (1, 0, 0, 2)}),
    ((2, 24, 7, 7), (40, 24, 1, 1), {}),
    ((1, 16, 9, 6), (7, 16, 3, 1), {"dilation": (2, 1)}),
    ((1, 16, 8, 8), (16, 4, 3, 3), {"groups": 4, "padding": (1, 1)}),
    ((1, 32, 8, 8), (32, 1, 3, 3), {"groups": 32, "padding": (1, 1)}),
    ((1, 32, 16, 16), (32, 32, 3, 3), {"padding": (1, 1)}),
]


@pytest.mark.parametrize("shape, weight, attrs", CASES)
@pytest.mark.parametrize("dtype", ["int8", "bfloat16"])
def test_blocked_and_plain_convolutions_agree(
    dtype: str, shape: tuple[int, ...], weight: tuple[int, ...], attrs: dict[str, object]
) -> None:
    body = conv(dtype, shape, weight, **attrs)
    if dtype == "int8":
        x = RNG.integers(0, 255, shape, "uint8", endpoint=True)
        np.testing.assert_array_equal(value(body, x, 3), value(body, x, 0))
    else:
        x = RNG.normal(size=shape).astype(ml_dtypes.bfloat16)
        np.testing.assert_allclose(value(body, x, 3), value(body, x, 0), rtol=1e-3, atol=1e-2)


@pytest.mark.parametrize("units, inner", [(1000, 64), (48, 30), (10, 12), (64, 256)])
@pytest.mark.parametrize("dtype", ["int8", "bfloat16"])
def test_packed_and_plain_dense_layers_agree(dtype: str, units: int, inner: int) -> None:
    x = relay.var("x", shape=(5, inner), dtype="uint8" if dtype == "int8" else dtype)
    sums = "int32" if dtype == "int8" else "float32"
    body = relay.nn.dense(x, constant((units, inner), dtype), out_dtype=sums)
    if dtype == "int8":
        data = RNG.integers(0, 255, (5, inner), "uint8", endpoint=True)
        np.testing.assert_array_equal(value(body, data, 3), value(body, data, 0))
    else:
        data = RNG.normal(size=(5, inner)).astype(ml_dtypes.bfloat16)
        np.testing.assert_allclose(value(body, data, 3), value(body, data, 0), rtol=1e-3, atol=1e-2)


def test_targets_without_named_instructions_have_no_groups() -> None:
    body = conv("int8", (1, 32, 8, 8), (48, 32, 1, 1))
    assert all("4i16o4i" not in layout for layout in kernel_layouts(body, "c"))


FACTORS = [("uint8", "int8"), ("int8", "int8"), ("uint8", "uint8"), ("int16", "int8")]
INTEGER_CASES = [
    ((1, 17, 9, 6), (7, 17, 3, 1), {"dilation": (2, 1)}),
    ((1, 16, 8, 8), (24, 4, 3, 3), {"groups": 4, "strides": (2, 1)}),
    ((1, 128, 5, 5), (128, 4, 3, 3), {"groups": 32, "padding": (1, 1)}),
]


def integers(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    limits = np.iinfo(dtype)
    return RNG.integers(limits.min, limits.max, shape, dtype, endpoint=True)


@pytest.mark.parametrize("target", ["llvm", "llvm -mcpu=core-avx2"])
@pytest.mark.parametrize("factors", FACTORS)
def test_integers_of_any_sign_and_groups_add_up_exactly(
    factors: tuple[str, str], target: str
) -> None:
    for shape, weight, attrs in INTEGER_CASES:
        x = relay.var("x", shape=shape, dtype=factors[0])
        w = relay.const(integers(weight, factors[1]))
        body = relay.nn.conv2d(x, w, kernel_size=weight[2:], out_dtype="int32", **attrs)
        data = integers(shape, factors[0])
        np.testing.assert_array_equal(value(body, data, 3, target), value(body, data, 0))
    x = relay.var("x", shape=(3, 31), dtype=factors[0])
    body = relay.nn.dense(x, relay.const(integers((20, 31), factors[1])), out_dtype="int32")
    data = integers((3, 31), factors[0])
    np.testing.assert_array_equal(value(body, data, 3, target), value(body, data, 0))


def test_processors_without_vnni_multiply_pairs() -> None:
    old = "llvm -mcpu=core-avx2"
    body = conv("int8", (1, 32, 8, 8), (48, 32, 1, 1))
    assert kernel_layouts(body, old) == ["OIHW4i8o2i"]
    lib = relay.build(tvm.IRModule.from_expr(relay.Function(relay.analysis.free_vars(body), body)),
                      old)  # fmt: skip
    assert "vpmaddwd" in lib.get_lib().get_source("asm")


def small_conv(data: str, limit: int, channels: tuple[int, int]) -> relay.Expr:
    """Filters whose neighbouring weights add up to twice a limit."""
    filters = RNG.choice([-limit, limit], (channels[1], channels[0], 3, 3)).astype("int8")
    x = relay.var("x", shape=(1, channels[0], 9, 9), dtype=data)
    return relay.nn.conv2d(
        x, relay.const(filters), kernel_size=(3, 3), padding=(0, 1, 1, 0), out_dtype="int32"
    )


@pytest.mark.parametrize("channels", [(1, 16), (8, 4), (17, 29)])
@pytest.mark.parametrize("data", ["uint8", "int8"])
@pytest.mark.parametrize("limit", [64, 65, 127])
@pytest.mark.parametrize("target", ["llvm -mcpu=nehalem", "llvm -mcpu=core-avx2"])
def test_products_of_extreme_bytes_are_exact(
    channels: tuple[int, int], data: str, limit: int, target: str
) -> None:
    body = small_conv(data, limit, channels)
    limits = np.iinfo(data)
    x = RNG.choice([limits.min, limits.max], (1, channels[0], 9, 9)).astype(data)
    np.testing.assert_array_equal(value(body, x, 3, target), value(body, x, 0))


@pytest.mark.parametrize("data", ["uint8", "int8"])
@pytest.mark.parametrize("target", ["nehalem", "core-avx2", "skylake-avx512"])
def test_bytes_are_multiplied_in_pairs_where_int16_holds_two_products(
    data: str, target: str
) -> None:
    def has_byte_pairs(limit: int) -> bool:
        body = small_conv(data, limit, (16, 32))
        with tvm.transform.PassContext(opt_level=3):
            lib = relay.build(tvm.IRModule.from_expr(body), f"llvm -mcpu={target}")
        return "pmaddubs" in lib.lib.get_source("asm")

    assert has_byte_pairs(64) and not has_byte_pairs(65)


def test_signed_data_is_raised_for_instructions_that_take_unsigned_bytes() -> None:
    body = small_conv("int8", 127, (16, 32))
    assert kernel_layouts(body, "llvm -mcpu=cascadelake") == ["OIHW4i16o4i"]
