"""Factors move into weights."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import relay
from tvm.relay import transform
from tvm.relay.transform import BackwardFoldScaleAxis, FoldConstant, ForwardFoldScaleAxis

from .common import assert_unchanged, run

RNG = np.random.default_rng(0)


def random(*shape: int, low: float = -1.0) -> relay.Constant:
    return relay.const(RNG.uniform(low, 2, shape).astype("float32"))


def operators(func: relay.Function) -> dict[str, int]:
    return relay.analysis.list_op_freqs(tvm.IRModule.from_expr(func))


def evaluate(func: relay.Function, x: np.ndarray) -> np.ndarray:
    with tvm.transform.PassContext(opt_level=0):
        return relay.create_executor("graph", target="llvm").evaluate(func)(x).numpy()


def conv(x: relay.Expr, groups: int = 1, layout: str = "NCHW") -> relay.Expr:
    shapes = {"NCHW": (4, 4 // groups, 3, 3), "NHWC": (3, 3, 4, 4)}
    return relay.nn.conv2d(
        x, random(*shapes[layout]), channels=4, kernel_size=(3, 3), padding=(1, 1), groups=groups,
        data_layout=layout, kernel_layout="OIHW" if layout == "NCHW" else "HWIO",
    )  # fmt: skip


def check(func: relay.Function, fold: tvm.transform.Pass) -> relay.Function:
    """The folded function gives the same values."""
    after = run(func, fold, FoldConstant())
    shape = func.params[0].type_annotation.concrete_shape
    x = RNG.uniform(-1, 1, shape).astype("float32")
    np.testing.assert_allclose(evaluate(after, x), evaluate(func, x), rtol=1e-4, atol=1e-5)
    return after


def image(layout: str = "NCHW") -> relay.Var:
    return relay.var("x", shape=(1, 4, 8, 8) if layout == "NCHW" else (1, 8, 8, 4))


@pytest.mark.parametrize("groups", [1, 2, 4])
def test_backward_into_convolution(groups: int) -> None:
    x = image()
    func = relay.Function([x], conv(x, groups) * random(4, 1, 1))
    assert operators(check(func, BackwardFoldScaleAxis())) == {"nn.conv2d": 1}


def test_backward_through_bias_and_relu() -> None:
    x = image()
    body = relay.nn.relu(conv(x) + random(4, 1, 1)) * random(4, 1, 1, low=0.5)
    after = check(relay.Function([x], body), BackwardFoldScaleAxis())
    assert operators(after) == {"nn.conv2d": 1, "add": 1, "nn.relu": 1}


def test_backward_in_channels_last() -> None:
    x = image("NHWC")
    func = relay.Function([x], conv(x, layout="NHWC") * random(4))
    assert operators(check(func, BackwardFoldScaleAxis())) == {"nn.conv2d": 1}


def test_backward_into_dense() -> None:
    x = relay.var("x", shape=(2, 8))
    func = relay.Function([x], random(5) * relay.nn.dense(x, random(5, 8)))
    assert operators(check(func, BackwardFoldScaleAxis())) == {"nn.dense": 1}


def test_backward_not_through_relu_with_negative_factors() -> None:
    x = image()
    factors = relay.const(np.array([1, -1, 1, 1], "float32").reshape(4, 1, 1))
    func = relay.Function([x], relay.nn.relu(conv(x)) * factors)
    assert_unchanged(func, BackwardFoldScaleAxis())


def test_backward_not_if_the_layer_is_used_twice() -> None:
    x = image()
    layer = conv(x)
    func = relay.Function([x], layer * random(4, 1, 1) + layer)
    assert_unchanged(func, BackwardFoldScaleAxis())


@pytest.mark.parametrize("groups", [1, 4])
def test_forward_through_addition_and_relu(groups: int) -> None:
    x = image()
    body = relay.nn.relu(x * random(4, 1, 1, low=0.5) + random(4, 1, 1))
    after = check(relay.Function([x], conv(body, groups)), ForwardFoldScaleAxis())
    assert "multiply" not in operators(after)


def test_forward_into_two_users() -> None:
    x = image()
    scaled = x * random(4, 1, 1)
    func = relay.Function([x], conv(scaled) + conv(scaled))
    assert "multiply" not in operators(check(func, ForwardFoldScaleAxis()))


def test_forward_not_if_someone_needs_the_scaled_value() -> None:
    x = image()
    scaled = x * random(4, 1, 1)
    assert_unchanged(relay.Function([x], conv(scaled) + scaled), ForwardFoldScaleAxis())


def test_batch_norm_disappears_into_the_convolution() -> None:
    x = image()
    p = [random(4, low=0.5) for _ in range(4)]
    func = relay.Function([x], relay.nn.relu(relay.nn.batch_norm(conv(x), *p)[0]))
    passes = [transform.SimplifyInference(), FoldConstant(), transform.FoldScaleAxis()]
    with tvm.transform.PassContext(opt_level=3):
        after = run(func, *passes)
    assert operators(after) == {"nn.conv2d": 1, "add": 1, "nn.relu": 1}


@pytest.mark.parametrize("fold", [BackwardFoldScaleAxis(), ForwardFoldScaleAxis()])
def test_factors_that_the_program_computes_stay(fold: tvm.transform.Pass) -> None:
    x = image()
    gate = relay.sigmoid(relay.nn.global_avg_pool2d(x))
    assert_unchanged(relay.Function([x], conv(conv(x) * gate)), fold)


def test_factors_of_parameters_move() -> None:
    x, scale = image(), relay.var("scale", shape=(4,))
    scaled = x * relay.expand_dims(scale, 1, 2)
    after = run(relay.Function([x, scale], conv(scaled)), ForwardFoldScaleAxis())
    assert after.body.args[0] is after.params[0]


@pytest.mark.parametrize("fold", [BackwardFoldScaleAxis(), ForwardFoldScaleAxis()])
def test_wide_factors_stay_outside_of_narrow_weights(fold: tvm.transform.Pass) -> None:
    x = relay.var("x", shape=(1, 4, 6, 6))
    scaled = relay.cast(x * random(4, 1, 1, low=0.1), "bfloat16")
    weight = relay.cast(random(4, 4, 3, 3), "bfloat16")
    layer = relay.nn.conv2d(
        scaled, weight, channels=4, kernel_size=(3, 3), padding=(1, 1), out_dtype="float32"
    )
    assert_unchanged(relay.Function([x], layer * random(4, 1, 1, low=0.1)), fold)


def test_narrow_networks_with_batch_norm_are_built() -> None:
    x = relay.var("x", shape=(1, 4, 6, 6))
    norm = relay.nn.batch_norm(conv(x), *[random(4, low=0.5) for _ in range(4)])[0]
    func = relay.Function([x], relay.nn.relu(norm))
    data = RNG.uniform(-1, 1, (1, 4, 6, 6)).astype("float32")
    mod = transform.InferType()(tvm.IRModule.from_expr(func))
    narrow = transform.ToMixedPrecision("bfloat16")(mod)
    with tvm.transform.PassContext(opt_level=3):
        model = relay.create_executor("graph", mod=narrow, target="llvm").evaluate()
    expected = evaluate(func, data)
    np.testing.assert_allclose(
        model(data).numpy().astype("float32"), expected, atol=0.02 * np.abs(expected).max()
    )


def test_a_factor_in_blocks_scales_weights_in_blocks() -> None:
    x, w = relay.var("x", shape=(1, 2, 5, 5, 2)), relay.var("w", shape=(3, 4, 1, 1, 1, 2))
    factors = relay.const(np.arange(1, 7, dtype="float32").reshape(1, 3, 1, 1, 2))
    layouts = {"data_layout": "NCHW2c", "kernel_layout": "OIHW1i2o"}
    y = relay.nn.conv2d(x, w, channels=6, kernel_size=(1, 1), **layouts)
    after = run(relay.Function([x, w], relay.nn.relu(y) * factors), BackwardFoldScaleAxis())
    weight = after.body.args[0].args[1]
    assert weight.args[1].attrs.newshape == (3, 1, 1, 1, 1, 2)
    assert weight.args[1].args[0].attrs.axis == (0, 2, 3)


def test_a_constant_scales_every_channel() -> None:
    x = image()
    backward = relay.Function([x], relay.nn.relu(conv(x) + random(4, 1, 1)) * relay.const(2.0))
    assert operators(check(backward, BackwardFoldScaleAxis())) == {
        "nn.conv2d": 1, "add": 1, "nn.relu": 1,
    }  # fmt: skip
    forward = relay.Function([x], conv(x * relay.const([[0.25]])))
    assert operators(check(forward, ForwardFoldScaleAxis())) == {"nn.conv2d": 1}


@pytest.mark.parametrize("fold", [BackwardFoldScaleAxis(), ForwardFoldScaleAxis()])
def test_depthwise_weights_in_blocks_take_factors(fold: tvm.transform.Pass) -> None:
    x = relay.var("x", shape=(1, 2, 8, 8, 2))
    factor = random(1, 2, 1, 1, 2)

    def depthwise(data: relay.Expr) -> relay.Expr:
        return relay.nn.conv2d(
            data, random(2, 1, 3, 3, 1, 2), groups=4, channels=4, kernel_size=(3, 3),
            data_layout="NCHW2c", kernel_layout="OIHW1i2o", padding=(1, 1),
        )  # fmt: skip

    scaled = depthwise(x) * factor if fold.info.name[0] == "B" else depthwise(x * factor)
    assert operators(check(relay.Function([x], scaled), fold)) == {"nn.conv2d": 1}


def test_both_sides_of_a_sum_take_the_factor() -> None:
    x = relay.var("x", shape=(1, 4, 5, 5))
    weights = [relay.var(f"w{i}", shape=(8, 4, 1, 1)) for i in range(2)]
    convs = [relay.nn.conv2d(x, w, channels=8, kernel_size=(1, 1)) for w in weights]
    factors = relay.const(np.arange(1, 9, dtype="float32").reshape(8, 1, 1))
    func = relay.Function([x, *weights], relay.add(*convs) * factors)
    after = run(func, BackwardFoldScaleAxis()).body
    assert [after.op.name, *[side.args[1].op.name for side in after.args]] == [
        "add", "multiply", "multiply",
    ]  # fmt: skip


def test_a_bias_takes_the_factor() -> None:
    x, w, b = [relay.var("xwb"[i], shape=s) for i, s in enumerate([(1, 4), (8, 4), (8,)])]
    factors = relay.const(np.arange(1, 9, dtype="float32"))
    func = relay.Function([x, w, b], relay.nn.bias_add(relay.nn.dense(x, w), b) * factors)
    after = run(func, BackwardFoldScaleAxis()).body
    assert [after.op.name, after.args[1].op.name] == ["nn.bias_add", "multiply"]


def test_factors_of_vectors_stay() -> None:
    x = relay.var("x", shape=(8,))
    mod = tvm.IRModule.from_expr(relay.Function([x], relay.exp(x) * relay.const(2.0)))
    mod = relay.transform.InferType()(mod)
    folded = relay.transform.ForwardFoldScaleAxis()(mod)
    tvm.ir.assert_structural_equal(folded, mod)
