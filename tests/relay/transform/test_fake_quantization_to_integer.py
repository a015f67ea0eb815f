"""Regions between dequantize and quantize: integer operators, and results within a step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tvm
from tvm import relay
from tvm.contrib import graph_executor
from tvm.ir import TensorAffineType
from tvm.relay.op import (
    register_fake_quantization_to_integer,
    register_optional_fake_quantization_to_integer,
)
from tvm.relay.transform import FakeQuantizationToInteger
from tvm.relay.traverse import post_order

RNG = np.random.default_rng(11)
Expr = relay.Expr


def scale(value: Any) -> Expr:
    return relay.const(np.asarray(value, "float32"))


def zero(value: Any) -> Expr:
    return relay.const(np.asarray(value, "int32"))


def real(x: Expr, step: Any = 0.05, point: Any = 3, axis: int = -1) -> Expr:
    return relay.qnn.op.dequantize(x, scale(step), zero(point), axis=axis)


def rounded(x: Expr, step: float = 0.1, point: int = -4, dtype: str = "int8") -> Expr:
    return relay.qnn.op.quantize(x, scale(step), zero(point), out_dtype=dtype)


def integers(shape: tuple[int, ...], dtype: str = "int8") -> np.ndarray:
    limits = np.iinfo(dtype)
    return RNG.integers(limits.min, limits.max, shape, dtype, endpoint=True)


def var(name: str, shape: tuple[int, ...], dtype: str = "int8") -> relay.Var:
    return relay.var(name, shape=shape, dtype=dtype)


def weight(shape: tuple[int, ...], axis: int = 0) -> Expr:
    steps = RNG.uniform(0.001, 0.01, shape[axis])
    return real(relay.const(integers(shape)), steps, np.zeros(shape[axis]), axis)


def converted(body: Expr, **options: Any) -> tvm.IRModule:
    mod = tvm.IRModule.from_expr(relay.Function(relay.analysis.free_vars(body), body))
    mod = relay.transform.InferType()(mod)
    return relay.transform.InferType()(FakeQuantizationToInteger(**options)(mod))


def operators(mod: tvm.IRModule) -> list[str]:
    return [n.op.name for n in post_order(mod["main"]) if isinstance(n, relay.Call)]


def results(mod: tvm.IRModule, feeds: dict[str, np.ndarray]) -> np.ndarray:
    with tvm.transform.PassContext(opt_level=1):
        lib = relay.build(mod, "llvm")
    module = graph_executor.GraphModule(lib["default"](tvm.cpu()))
    module.run(**feeds)
    return module.get_output(0).numpy()


def check(body: Expr, steps: int = 1) -> list[str]:
    """The integers agree with the simulation; the operators' names are returned."""
    params = relay.analysis.free_vars(body)
    mod = tvm.IRModule.from_expr(relay.Function(params, body))
    feeds = {
        p.name_hint: integers(
            tuple(int(d) for d in p.type_annotation.shape), p.type_annotation.dtype
        )
        for p in params
    }
    new = converted(body, hard_fail=True)
    expected, found = [results(m, feeds).astype("int64") for m in (mod, new)]
    assert np.abs(found - expected).max() <= steps
    assert len(np.unique(expected)) > 3
    return operators(new)


SHAPE = (1, 4, 6, 6)
MOVES: dict[str, Callable[[Expr], Expr]] = {
    "reshape": lambda x: relay.reshape(x, (4, 36)),
    "transpose": lambda x: relay.transpose(x, (0, 2, 3, 1)),
    "strided_slice": lambda x: relay.strided_slice(x, (0, 1, 0, 0), (1, 3, 6, 6)),
    "nn.max_pool2d": lambda x: relay.nn.max_pool2d(x, (2, 2)),
    "nn.batch_flatten": relay.nn.batch_flatten,
    "expand_dims": lambda x: relay.expand_dims(x, 1),
    "max": lambda x: relay.max(x, axis=1),
    "take": lambda x: relay.take(x, relay.const([0, 2]), axis=1),
    "clip": lambda x: relay.clip(x, -1.0, 2.0),
    "nn.relu": relay.nn.relu,
    "nn.leaky_relu": lambda x: relay.nn.leaky_relu(x, 0.25),
    "nn.pad": lambda x: relay.nn.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)), 0.5),
    "mean": lambda x: relay.mean(x, axis=(2, 3)),
    "nn.global_avg_pool2d": relay.nn.global_avg_pool2d,
    "nn.avg_pool2d": lambda x: relay.nn.avg_pool2d(x, (2, 2)),
    "sigmoid": relay.sigmoid,
    "exp": lambda x: relay.exp(relay.clip(x, -3.0, 1.0)),
    "split": lambda x: relay.split(x, 2, axis=1)[1],
}


@pytest.mark.parametrize("name", MOVES)
def test_operators_of_one_tensor_work_on_integers(name: str) -> None:
    names = check(rounded(MOVES[name](real(var("x", SHAPE)))), steps=2)
    assert ("qnn.dequantize" not in names and "qnn.quantize" not in names) or name == "nn.pad"


@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "maximum", "minimum"])
def test_operators_of_two_tensors_work_on_integers(name: str) -> None:
    a, b = real(var("x", SHAPE)), real(var("y", SHAPE), 0.02, -7)
    names = check(rounded(getattr(relay, name)(a, b), 0.2))
    assert "qnn.dequantize" not in names


def test_a_constant_operand_is_quantised() -> None:
    check(rounded(real(var("x", SHAPE)) + relay.const(np.float32(0.5))))


def test_concatenation_brings_its_parts_to_one_scale() -> None:
    parts = [real(var("x", SHAPE)), real(var("y", SHAPE), 0.02, -7)]
    check(rounded(relay.concatenate(parts, axis=1)))


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_a_convolution_with_bias_and_activation(dtype: str) -> None:
    x = real(var("x", (1, 8, 6, 6), dtype), 0.05, 10 if dtype == "uint8" else -5)
    y = relay.nn.conv2d(x, weight((16, 8, 3, 3)), padding=(1, 1), channels=16, kernel_size=(3, 3))
    bias = relay.const(RNG.normal(size=16).astype("float32"))
    y = relay.nn.relu(relay.nn.bias_add(y, bias))
    names = check(rounded(y, 0.3, 0, dtype))
    assert "qnn.conv2d" in names and "nn.bias_add" in names and "qnn.requantize" in names


def test_a_dense_layer() -> None:
    names = check(rounded(relay.nn.dense(real(var("x", (5, 24))), weight((16, 24))), 0.2))
    assert "qnn.dense" in names


def test_a_batched_product() -> None:
    a, b = real(var("x", (2, 5, 8))), real(var("y", (2, 6, 8)), 0.02, -7)
    assert "qnn.batch_matmul" in check(rounded(relay.nn.batch_matmul(a, b), 0.2))


def test_a_region_with_an_operator_that_has_no_rule_stays() -> None:
    body = rounded(relay.sin(real(var("x", SHAPE))))
    assert operators(converted(body)) == ["qnn.dequantize", "sin", "qnn.quantize"]
    with pytest.raises(tvm.error.OpNotImplemented, match="requires a rule for sin"):
        converted(body, hard_fail=True)


def test_a_region_that_begins_with_real_numbers_stays() -> None:
    body = rounded(relay.nn.relu(var("x", SHAPE, "float32")))
    assert operators(converted(body)) == ["nn.relu", "qnn.quantize"]


def test_users_add_rules() -> None:
    op = relay.op.op.register("test.fq_identity")
    op.set_facets(infer_type=relay.op.get("nn.relu").infer_type, num_inputs=1)
    try:
        register_fake_quantization_to_integer(
            "test.fq_identity", lambda call, types: [call.args[0], types[call.args[0]]]
        )
        names = operators(converted(rounded(relay.Call(op, [real(var("x", SHAPE))]))))
        assert names == ["qnn.requantize"]
    finally:
        op.set_attr("FTVMFakeQuantizationToInteger", None, 100)


def test_optional_rules_are_used_on_request() -> None:
    def rule(call: relay.Call, types: Any) -> list[Any]:
        kind = types[call.args[0]]
        assert isinstance(kind, TensorAffineType)
        return [call, kind]

    register_optional_fake_quantization_to_integer("ceil", rule)
    body = rounded(relay.ceil(real(var("x", SHAPE))))
    assert "qnn.dequantize" in operators(converted(body))
    assert "qnn.dequantize" not in operators(converted(body, optional_qnn_ops=["ceil"]))


def test_networks_trained_quantised_convert_single_operators() -> None:
    y = relay.nn.dense(real(var("x", (5, 24))), weight((16, 24)))
    body = relay.sin(y)
    assert "nn.dense" in operators(converted(body))
    names = operators(converted(body, use_qat=True))
    assert names == ["qnn.dense", "qnn.dequantize", "sin"]


def test_operators_of_regions_are_counted() -> None:
    x = real(var("x", SHAPE))
    body = rounded(relay.sin(relay.nn.relu(x)))
    mod = tvm.IRModule.from_expr(relay.Function(relay.analysis.free_vars(body), body))
    assert relay.analysis.list_fake_quantized_op_freqs(mod) == {"nn.relu": 1, "sin": 1}


def test_rules_of_users_are_made_of_helpers() -> None:
    helpers = relay.transform.fake_quantization_to_integer
    x, y = var("x", (2, 3)), var("y", (2, 3))
    for name, register, build in (
        ("test.moved", helpers.register_unary_identity, None),
        ("test.curve", helpers.register_unary_qnn, relay.qnn.op.tanh),
        ("test.choice", helpers.register_binary_identity, relay.maximum),
        ("test.sum", helpers.register_binary_qnn, relay.qnn.op.add),
    ):
        op = relay.op.op.register(name)
        op.set_num_inputs(1 if "unary" in register.__name__ else 2)
        op.add_type_rel("Identity")
        register(name) if build is None else register(name, build)
    moved = relay.Call(relay.op.get("test.moved"), [real(x)])
    curve = relay.Call(relay.op.get("test.curve"), [moved])
    choice = relay.Call(relay.op.get("test.choice"), [curve, real(y)])
    total = relay.Call(relay.op.get("test.sum"), [choice, real(y)])
    counts = relay.analysis.list_op_freqs(converted(rounded(total), hard_fail=True))
    assert {"test.moved", "qnn.tanh", "maximum", "qnn.add"} <= set(counts)
    assert not {"test.curve", "test.choice", "test.sum", "qnn.dequantize"} & set(counts)


def test_helpers_of_rules_look_at_constants() -> None:
    helpers = relay.transform.fake_quantization_to_integer
    assert helpers.approx_equal(scale(0.5) + scale(0.5), scale(1.0))
    assert not helpers.approx_equal(scale(0.5), scale([0.5]))
    assert helpers.infer_shape(var("x", (2, 3))) == (2, 3)
    assert helpers.get_zeros(scale([0.5, 1.0])).data.numpy().tolist() == [0, 0]
    assert isinstance(helpers.fold_constant(scale(1.0) * scale(2.0)), relay.Constant)


def test_what_two_regions_share_is_written_once() -> None:
    x = var("x", (1, 8, 6, 6))
    y = relay.nn.relu(relay.nn.conv2d(real(x), weight((8, 8, 3, 3)), kernel_size=(3, 3)))
    other = relay.nn.max_pool2d(y, (2, 2))
    both = relay.Tuple([rounded(y), rounded(other, 0.2, 5)])
    mod = converted(both)
    names = [n.op.name for n in post_order(mod["main"]) if isinstance(n, relay.Call)]
    assert names.count("qnn.conv2d") == 1 and "nn.conv2d" not in names
    assert names.count("qnn.requantize") == 2
