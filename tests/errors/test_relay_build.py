"""Programs that relay, its build and the graph executor reject."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tvm
from tvm import relay
from tvm.contrib import graph_executor

from .messages import assert_rejected

X = np.zeros((2, 8), "float32")


def dense() -> relay.Function:
    x, w = relay.var("x", shape=(2, 8)), relay.var("w", shape=(4, 8))
    return relay.Function([x, w], relay.nn.dense(x, w))


@pytest.fixture(scope="module")
def module() -> Any:
    lib = relay.build(dense(), "llvm", params={"w": np.zeros((4, 8), "float32")})
    return graph_executor.GraphModule(lib["default"](tvm.cpu()))


def test_target_and_its_options() -> None:
    assert_rejected(
        lambda: relay.build(dense(), "llvmm"),
        "Target requires a known kind, got 'llvmm'",
        "hint: did you mean 'llvm'?",
    )
    assert_rejected(
        lambda: relay.build(dense(), "llvm -mcpuu=skylake"),
        "target kind llvm has no option 'mcpuu'",
        "hint: did you mean 'mcpu'?",
    )


def test_config_key() -> None:
    def program() -> None:
        with tvm.transform.PassContext(config={"relay.FuseOps.max_dept": 3}):
            relay.build(dense(), "llvm")

    assert_rejected(
        program,
        "PassContext requires a known config key, got 'relay.FuseOps.max_dept'",
        "did you mean 'relay.FuseOps.max_depth'",
    )


def test_parameter_of_wrong_shape() -> None:
    assert_rejected(
        lambda: relay.build(dense(), "llvm", params={"w": X}),
        "parameter w must be float32 of shape (4, 8), got float32 of shape (2, 8)",
    )


def test_shapes_that_do_not_broadcast() -> None:
    x, b = relay.var("x", shape=(2, 8)), relay.var("b", shape=(4,))
    assert_rejected(
        lambda: relay.build(relay.Function([x, b], relay.add(x, b)), "llvm"),
        "add requires shapes that broadcast to each other, got (2, 8) and (4,)",
        "in function main, pass InferType",
        "add(%x, %b)\n        ^^^^^^^^^^^",
        "rhs: Tensor[(4,), float32]",
    )


def test_operator_with_too_few_arguments() -> None:
    x = relay.var("x", shape=(2, 8))
    call = relay.Call(relay.op.get("add"), [x])
    assert_rejected(
        lambda: relay.transform.InferType()(tvm.IRModule.from_expr(call)),
        "add requires 2 arguments, got 1",
        "add(%x)",
    )


def test_operator_name() -> None:
    assert_rejected(
        lambda: relay.op.get("nn.conv2dd"),
        "no operator is called 'nn.conv2dd'",
        "hint: did you mean 'nn.conv2d'",
    )


def test_variable_that_is_no_parameter() -> None:
    x, y = relay.var("x", shape=(2,)), relay.var("y", shape=(2,))
    assert_rejected(
        lambda: relay.build(relay.Function([x], x + y), "llvm"),
        "the graph and AOT executors require a value for %y, which is no parameter of the function",
        "hint: make it one",
    )


def test_control_flow_and_unknown_shapes() -> None:
    c, x = relay.var("c", shape=(), dtype="bool"), relay.var("x", shape=(2,))
    assert_rejected(
        lambda: relay.build(relay.Function([c, x], relay.If(c, x, relay.exp(x))), "llvm"),
        "the graph and AOT executors cannot run If",
        "hint: control flow",
    )
    d = relay.var("d", shape=(relay.Any(), 4))
    assert_rejected(
        lambda: relay.build(relay.Function([d], relay.exp(d)), "llvm"),
        "the graph and AOT executors require constant shapes, got Tensor[(?, 4), float32]",
        "hint: give every input a shape",
    )


@pytest.mark.parametrize(
    ("name", "value", "first_line"),
    [
        ("xx", X, "the graph has no input 'xx'; its inputs are 'x'; did you mean 'x'?"),
        ("x", X[:1], "input 0 ('x') needs (2, 8) float32, got (1, 8) float32"),
        ("x", X.ravel(), "input 0 ('x') needs (2, 8) float32, got (16,) float32"),
        ("x", X.astype("int32"), "input 0 ('x') needs (2, 8) float32, got (2, 8) int32"),
        (
            "x",
            tvm.nd.array(X.astype("float64")),
            "input 0 ('x') needs (2, 8) float32, got (2, 8) float64",
        ),
        ("x", "foo", "input 'x' needs an array or numbers of type float32, got 'foo'"),
        ("x", None, "input 'x' needs an array, got None"),
        (5, X, "the graph has 2 inputs, got index 5"),
    ],
)
def test_set_input(module: Any, name: Any, value: Any, first_line: str) -> None:
    assert_rejected(lambda: module.set_input(name, value), first_line)


def test_get_output(module: Any) -> None:
    assert_rejected(lambda: module.get_output(3), "the graph has 1 outputs, got index 3")
    assert_rejected(
        lambda: module.get_output(0, tvm.nd.empty((3, 4))),
        "the array for output 0 needs (2, 4) float32, got (3, 4) float32",
    )


def test_create_executor() -> None:
    assert_rejected(
        lambda: relay.create_executor("grahp", tvm.IRModule.from_expr(dense())),
        "create_executor has the kinds graph, debug, vm, aot, got 'grahp'; did you mean 'graph'?",
    )
    executor = relay.create_executor("graph", tvm.IRModule.from_expr(dense()))
    assert_rejected(lambda: executor.evaluate()(X), "values are missing for the parameters ['w']")


def test_files(tmp_path) -> None:
    (tmp_path / "bad.so").write_bytes(b"hi")
    assert_rejected(
        lambda: tvm.runtime.load_module(str(tmp_path / "none.so")),
        f"cannot load module: file {tmp_path}/none.so does not exist",
    )
    with pytest.raises(tvm.TVMError, match="cannot load library"):
        tvm.runtime.load_module(str(tmp_path / "bad.so"))
    with pytest.raises(ValueError, match="truncated"):
        relay.load_param_dict(b"xx")
