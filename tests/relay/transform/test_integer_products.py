"""Products of dequantised tensors: computed in integers, within one step of the simulation."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import relay
from tvm.contrib import graph_executor
from tvm.relay.transform import IntegerProducts, UnsignedData
from tvm.relay.traverse import post_order

VNNI = "llvm -mcpu=cascadelake"
RNG = np.random.default_rng(5)


def scale(value: float) -> relay.Expr:
    return relay.const(np.float32(value))


def zero(value: int) -> relay.Expr:
    return relay.const(value, "int32")


def pair(x: relay.Expr, step: float, point: int, dtype: str) -> relay.Expr:
    """What x is after quantisation, in real numbers."""
    q = relay.qnn.op.quantize(x, scale(step), zero(point), out_dtype=dtype)
    return relay.qnn.op.dequantize(q, scale(step), zero(point))


def weight(shape: tuple[int, ...], dtype: str = "int8", axis: int | None = 0) -> relay.Expr:
    limits = np.iinfo(dtype)
    values = RNG.integers(limits.min, limits.max, shape, endpoint=True).astype(dtype)
    steps = np.float32(0.01) if axis is None else RNG.uniform(0.005, 0.02, shape[axis])
    point = 0 if dtype == "int8" else 128
    points = np.full(steps.shape, point) if axis is not None else np.array(point)
    return relay.qnn.op.dequantize(
        relay.const(values), relay.const(np.asarray(steps, "float32")),
        relay.const(points.astype("int32")), axis=0 if axis is None else axis,
    )  # fmt: skip


def network(dtype: str, weights: str = "int8") -> relay.Function:
    """Two convolutions, a pooling, a residual addition and a dense layer between QDQ pairs."""
    relu, plain = (0, 100) if dtype == "uint8" else (-128, -20)
    x = relay.var("x", shape=(1, 3, 12, 12))
    y = relay.nn.conv2d(
        pair(x, 0.02, plain, dtype), weight((16, 3, 3, 3), weights), padding=1, channels=16,
        kernel_size=(3, 3),
    )  # fmt: skip
    y = relay.nn.bias_add(y, relay.const(RNG.normal(size=16).astype("float32")))
    y = pair(y, 0.05, relu, dtype)
    y = pair(relay.nn.max_pool2d(y, (2, 2), strides=2), 0.05, relu, dtype)
    z = relay.nn.conv2d(y, weight((16, 16, 1, 1), weights), channels=16, kernel_size=(1, 1))
    z = pair(relay.nn.relu(relay.add(pair(z, 0.1, plain, dtype), y)), 0.1, relu, dtype)
    flat = relay.nn.batch_flatten(z)
    out = relay.nn.dense(flat, weight((10, 576), weights, axis=None))
    return relay.Function([x], pair(out, 1.0, plain, dtype))


def rewritten(body: relay.Function, target: str = VNNI) -> relay.Function:
    with tvm.target.Target(target):
        return UnsignedData()(IntegerProducts()(tvm.IRModule.from_expr(body)))["main"]


def operators(func: relay.Function) -> list[str]:
    return [n.op.name for n in post_order(func) if isinstance(n, relay.Call)]


def value(body: relay.Function, x: np.ndarray, opt_level: int) -> np.ndarray:
    with tvm.transform.PassContext(opt_level=opt_level):
        lib = relay.build(tvm.IRModule.from_expr(body), "llvm")
    module = graph_executor.GraphModule(lib["default"](tvm.cpu()))
    module.run(x=x)
    return module.get_output(0).numpy()


@pytest.mark.parametrize(
    "dtype, weights", [("uint8", "int8"), ("int8", "int8"), ("uint8", "uint8")]
)
def test_results_are_within_one_step_of_the_simulation(dtype: str, weights: str) -> None:
    body = network(dtype, weights)
    x = RNG.normal(size=(1, 3, 12, 12)).astype("float32")
    expected = value(body, x, 0)
    assert np.abs(value(body, x, 3) - expected).max() <= 1.0
    assert len(np.unique(expected)) > 5


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
def test_products_take_uint8_data_and_int8_weights(dtype: str) -> None:
    func = rewritten(network(dtype))
    names = operators(func)
    assert names.count("qnn.conv2d") == 2 and names.count("qnn.dense") == 1
    assert "nn.conv2d" not in names and "nn.dense" not in names
    calls = [n for n in post_order(func) if isinstance(n, relay.Call) and n.op.name == "qnn.conv2d"]
    assert [c.args[0].checked_type.dtype for c in calls] == ["uint8", "uint8"]


def test_pooling_between_equal_scales_is_done_on_integers() -> None:
    func = rewritten(network("uint8"))
    pools = [n for n in post_order(func) if isinstance(n, relay.Call) and "max_pool" in n.op.name]
    assert [p.checked_type.dtype for p in pools] == ["uint8"]


def test_weights_of_transposed_products_are_transposed_as_integers() -> None:
    x = relay.var("x", shape=(4, 32))
    w = relay.transpose(weight((32, 16), axis=1), (1, 0))
    func = rewritten(relay.Function([x], relay.nn.dense(pair(x, 0.1, 3, "uint8"), w)))
    assert "qnn.dense" in operators(func) and "nn.dense" not in operators(func)


def test_a_processor_without_the_instruction_computes_in_float32() -> None:
    func = rewritten(network("uint8"), "llvm -mcpu=nehalem")
    assert "qnn.conv2d" not in operators(func)


def test_a_product_of_a_real_number_is_left() -> None:
    x = relay.var("x", shape=(4, 32))
    body = relay.Function([x], relay.nn.dense(x, weight((16, 32))))
    assert "nn.dense" in operators(rewritten(body))


def test_programs_without_quantised_tensors_are_unchanged() -> None:
    x = relay.var("x", shape=(4, 32))
    mod = tvm.IRModule.from_expr(relay.Function([x], relay.nn.relu(x)))
    with tvm.target.Target(VNNI):
        typed = relay.transform.InferType()(mod)
        assert IntegerProducts()(typed)["main"] is typed["main"]


def optimized(body: relay.Expr) -> list[str]:
    mod = tvm.IRModule.from_expr(relay.Function(relay.analysis.free_vars(body), body))
    with tvm.transform.PassContext(opt_level=3):
        return operators(relay.optimize(mod, VNNI)[0]["main"])


def test_a_quantisation_behind_a_product_divides_nothing_at_run_time() -> None:
    x = relay.var("x", shape=(1, 16, 8, 8))
    y = relay.nn.conv2d(pair(x, 0.1, 3, "uint8"), weight((16, 16, 1, 1)), kernel_size=(1, 1))
    bias = weight((16,), axis=None)
    y = relay.nn.relu(relay.nn.bias_add(y, bias))
    assert optimized(pair(y, 0.3, 0, "uint8")).count("divide") == 1  # the input's


def test_fixed_point_scales_of_channels_keep_the_blocked_layout() -> None:
    x = relay.var("x", shape=(1, 16, 8, 8))
    y = pair(x, 0.1, 3, "uint8")
    for _ in range(3):
        y = pair(relay.nn.conv2d(y, weight((16, 16, 1, 1)), kernel_size=(1, 1)), 0.2, 7, "uint8")
    body = relay.Function([x], y)
    mod = relay.transform.FakeQuantizationToInteger()(
        relay.transform.InferType()(tvm.IRModule.from_expr(body))
    )
    names = optimized(mod["main"].body)
    assert names.count("fixed_point_multiply_per_axis") == 3
    assert names.count("layout_transform") == 2


def asymmetric(shape: tuple[int, ...]) -> relay.Expr:
    """uint8 weights with a zero point for each channel."""
    values = relay.const(RNG.integers(0, 255, shape, "uint8", endpoint=True))
    steps = relay.const(RNG.uniform(0.005, 0.02, shape[0]).astype("float32"))
    points = relay.const(RNG.integers(100, 150, shape[0]).astype("int32"))
    return relay.qnn.op.dequantize(values, steps, points, axis=0)


@pytest.mark.parametrize("target", [VNNI, "llvm -mcpu=core-avx2"])
def test_weights_with_zero_points_multiply_as_integers(target: str) -> None:
    x = relay.var("x", shape=(1, 16, 12, 12))
    y = relay.nn.conv2d(pair(x, 0.02, 100, "uint8"), asymmetric((8, 4, 3, 3)), groups=4,
                        padding=1, channels=8, kernel_size=(3, 3))  # fmt: skip
    y = relay.nn.dense(relay.nn.batch_flatten(pair(y, 0.05, 90, "uint8")), asymmetric((10, 1152)))
    body = relay.Function([x], pair(y, 1.0, 100, "uint8"))
    names = operators(rewritten(body, target))
    assert "qnn.conv2d" in names and "qnn.dense" in names
    data = RNG.normal(size=(1, 16, 12, 12)).astype("float32")
    assert np.abs(value(body, data, 3) - value(body, data, 0)).max() <= 1.0


def test_data_of_16_bits_multiplies_as_integers_where_sums_fit() -> None:
    for inner, point, is_integer in ((32, 0, True), (32, -900, True), (1024, 0, False)):
        x = relay.var("x", shape=(4, inner))
        full = relay.const(np.full((16, inner), 127, "int8"))
        w = relay.qnn.op.dequantize(full, scale(0.01), zero(0))
        body = relay.Function([x], relay.nn.dense(pair(x, 1e-4, point, "int16"), w))
        assert ("qnn.dense" in operators(rewritten(body))) == is_integer
        data = RNG.normal(size=(4, inner)).astype("float32")
        np.testing.assert_allclose(value(body, data, 3), value(body, data, 0), rtol=1e-4, atol=1e-3)


def test_constants_that_are_unsigned_already_stay() -> None:
    q = relay.const(RNG.integers(0, 255, (1, 16)).astype("uint8"))
    points = [scale(0.1), zero(3)] * 3
    w = relay.const(RNG.integers(-9, 9, (8, 16)).astype("int8"))
    x = relay.var("x", shape=(1, 16), dtype="int8")
    product = relay.qnn.op.dense(x, w, zero(0), zero(0), scale(0.1), scale(0.1), 8)
    body = relay.Function([x], relay.Tuple([relay.qnn.op.add(q, q, *points), product]))
    assert rewritten(body).checked_type.ret_type.fields[0].dtype == "uint8"


def test_what_is_taken_from_a_quantised_table_is_dequantised_alone() -> None:
    table = weight((50, 8), axis=None)
    indices = relay.var("i", shape=(3,), dtype="int32")
    func = relay.Function([indices], relay.take(table, indices, axis=0))
    body = rewritten(func).body
    assert [body.op.name, body.args[0].op.name] == ["qnn.dequantize", "take"]
    given = np.array([7, 0, 49], "int32")
    results = []
    for level in (0, 3):
        with tvm.transform.PassContext(opt_level=level):
            run = relay.create_executor("graph", tvm.IRModule.from_expr(func), target="llvm")
            results.append(run.evaluate()(given).numpy())
    np.testing.assert_array_equal(*results)
