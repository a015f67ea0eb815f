"""Operators that the ONNX importer lacks, and its options."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper

import tvm
from tests.executors import run_library
from tests.verify.models import model_of
from tvm import relay
from tvm.contrib import graph_executor
from tvm.driver.tvmc.main import _main
from tvm.error import OpNotImplemented, TVMError
from tvm.relay.frontend.onnx.registry import CONVERTERS

X = np.random.default_rng(0).normal(size=(2, 5)).astype("float32")


def run(mod: tvm.IRModule, **inputs: np.ndarray) -> list[np.ndarray]:
    return run_library(relay.build(mod, target="llvm"), **inputs)


def with_unknown(monkeypatch: pytest.MonkeyPatch, *operators: str) -> None:
    for operator in operators:
        monkeypatch.delitem(CONVERTERS, operator)


def test_unknown_operators_are_computed_by_the_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    with_unknown(monkeypatch, "Asinh", "TopK")
    nodes = [
        helper.make_node("Asinh", ["x"], ["a"]),
        helper.make_node("TopK", ["a", "k"], ["v", "i"], axis=1),
        helper.make_node("Neg", ["v"], ["n"]),
    ]
    model = model_of(nodes, {"x": X}, ["n", "i"], {"k": np.array([2], "int64")})
    with (
        pytest.warns(UserWarning, match="Asinh"),
        pytest.warns(UserWarning, match="TopK runs in ONNX's reference, which the compiled"),
    ):
        mod, _ = relay.frontend.from_onnx(model, fallback=True)
    values, places = run(mod, x=X)
    expected = np.sort(np.arcsinh(X), axis=1)[:, ::-1][:, :2]
    np.testing.assert_allclose(values, -expected, rtol=1e-5)
    np.testing.assert_array_equal(places, np.argsort(-X, axis=1)[:, :2])


def test_operators_of_other_domains_are_computed_by_onnx_runtime(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with_unknown(monkeypatch, "com.microsoft.Inverse")
    node = helper.make_node("Inverse", ["x"], ["y"], domain="com.microsoft")
    x = np.eye(3, dtype="float32")[None] * 4
    model = model_of([node], {"x": x}, ["y"])
    model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    with pytest.warns(UserWarning, match="Inverse runs in ONNX Runtime"):
        mod, _ = relay.frontend.from_onnx(model, fallback=True)
    np.testing.assert_allclose(run(mod, x=x)[0], np.linalg.inv(x))


def test_random_numbers_of_a_reference_are_drawn_at_each_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with_unknown(monkeypatch, "RandomNormal")
    nodes = [
        helper.make_node("RandomNormal", [], ["noise"], shape=[4]),
        helper.make_node("Add", ["x", "noise"], ["y"]),
    ]
    x = np.zeros(4, "float32")
    with pytest.warns(UserWarning):
        mod, _ = relay.frontend.from_onnx(model_of(nodes, {"x": x}, ["y"]), fallback=True)
    lib = relay.build(mod, target="llvm")
    module = graph_executor.GraphModule(lib["default"](tvm.cpu()))
    drawn = []
    for _ in range(2):
        module.run(x=x)
        drawn.append(module.get_output(0).numpy())
    assert not np.array_equal(*drawn)


def test_what_nothing_computes_is_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    with_unknown(monkeypatch, "RandomNormal")
    nodes = [
        helper.make_node("RandomNormal", [], ["r"], shape=[2, 5]),
        helper.make_node("Frob", ["x"], ["f"], name="first", domain="my.domain"),
        helper.make_node("Nicate", ["f", "r"], ["y"], name="second", domain="my.domain"),
    ]
    model = model_of(nodes, {"x": X}, ["y"])
    model.opset_import.append(helper.make_opsetid("my.domain", 3))
    with pytest.raises(OpNotImplemented, match="got 3 nodes of 3 unsupported") as plain:
        relay.frontend.from_onnx(model)
    assert "my.domain.Frob of opset 3 (node first, inputs x: float32[2, 5])" in str(plain.value)
    assert "fallback=True" in str(plain.value)
    with pytest.raises(OpNotImplemented, match="got 2 nodes of 2 unsupported") as left:
        relay.frontend.from_onnx(model, fallback=True)
    assert "neither ONNX's reference nor" in str(left.value)
    assert "fallback=True" not in str(left.value)


def test_types_of_unknown_nodes_within_functions_and_branches_are_told() -> None:
    unknown = helper.make_node("Frob", ["q"], ["b"], name="deep", domain="my.domain")
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("my.domain", 3)]
    body = [helper.make_node("Exp", ["a"], ["q"]), unknown]
    function = helper.make_function("local", "F", ["a"], ["b"], body, opsets)
    branches = [
        helper.make_graph(
            [helper.make_node("Neg", ["x"], [f"{name}_in"]),
             helper.make_node("Relu", [f"{name}_in"], [name], domain="my.domain", name=name)],
            name, [], [onnx.ValueInfoProto(name=name)],
        )
        for name in ("yes", "no")
    ]  # fmt: skip
    nodes = [
        helper.make_node("F", ["x"], ["f"], domain="local"),
        helper.make_node("ReduceSum", ["x"], ["s"], keepdims=0),
        helper.make_node("Cast", ["s"], ["c"], to=onnx.TensorProto.BOOL),
        helper.make_node("If", ["c"], ["y"], then_branch=branches[0], else_branch=branches[1]),
    ]
    model = model_of(nodes, {"x": X}, ["f", "y"])
    model.functions.append(function)
    model.opset_import.extend(
        [helper.make_opsetid("my.domain", 3), helper.make_opsetid("local", 1)]
    )
    with pytest.raises(OpNotImplemented, match="got 3 nodes of 2 unsupported") as refused:
        relay.frontend.from_onnx(model)
    text = str(refused.value)
    assert "(node deep, inputs q: float32[2, 5])" in text
    assert "(node yes, inputs yes_in: float32[2, 5])" in text and text.count("there is Relu") == 1


def test_results_whose_shape_depends_on_data_are_refused_at_run_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with_unknown(monkeypatch, "NonZero")
    model = model_of([helper.make_node("NonZero", ["x"], ["y"])], {"x": X}, ["y"])
    with pytest.warns(UserWarning):
        mod, _ = relay.frontend.from_onnx(model, fallback=True)
    with pytest.raises(Exception, match="the shape that it had at import"):
        run(mod, x=X * 0)


@pytest.mark.parametrize("opened", [0, 1])
def test_open_extents_go_through_the_reference(
    opened: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_unknown(monkeypatch, "Asinh", "TopK")
    nodes = [
        helper.make_node("Asinh", ["x"], ["a"]),
        helper.make_node("TopK", ["a", "k"], ["v", "i"], axis=1),
    ]
    model = model_of(nodes, {"x": X}, ["v", "i"], {"k": np.array([2], "int64")})
    model.graph.input[0].type.tensor_type.shape.dim[opened].dim_param = "n"
    with pytest.warns(UserWarning):
        mod, _ = relay.frontend.from_onnx(model, fallback=True)
    dims = relay.transform.InferType()(mod)["main"].ret_type.fields[0].shape
    assert dims[1] == 2 and isinstance(dims[0], relay.Any) == (opened == 0)
    x = np.random.default_rng(1).normal(size=(3, 5) if opened == 0 else (2, 7)).astype("float32")
    values, places = relay.create_executor("vm", mod, tvm.cpu(), "llvm").evaluate()(x)
    np.testing.assert_array_equal(places.numpy(), np.argsort(-x, axis=1)[:, :2])
    np.testing.assert_allclose(values.numpy(), -np.sort(-np.arcsinh(x), axis=1)[:, :2], rtol=1e-5)


def test_missing_references_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    with_unknown(monkeypatch, "SequenceLength")
    nodes = [
        helper.make_node("SequenceConstruct", ["x"], ["s"]),
        helper.make_node("SequenceLength", ["s"], ["y"]),
    ]
    with pytest.raises(OpNotImplemented, match="requires tensors to be computed by a reference"):
        relay.frontend.from_onnx(model_of(nodes, {"x": X}, ["y"]), fallback=True)


_OTHER_PROCESS = """
import sys
import numpy as np, tvm
from tvm.contrib import graph_executor
sys.modules.update(dict.fromkeys(sys.argv[2:]))  # as if it were not installed
module = graph_executor.GraphModule(tvm.runtime.load_module(sys.argv[1])["default"](tvm.cpu()))
try:
    module.run(x=np.ones((2, 5), "float32"))
    print(module.get_output(0).numpy().sum())
except tvm.TVMError as error:
    print(error)
"""


def test_saved_libraries_hold_what_the_reference_computes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with_unknown(monkeypatch, "Sign")
    model = model_of([helper.make_node("Sign", ["x"], ["y"])], {"x": X}, ["y"])
    with pytest.warns(UserWarning):
        mod, _ = relay.frontend.from_onnx(model, fallback=True)
    path = str(tmp_path / "model.so")
    relay.build(mod, target="llvm").export_library(path)

    def told(*hidden: str) -> str:
        command = [sys.executable, "-c", _OTHER_PROCESS, path, *hidden]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    assert float(told()) == 10
    assert "ONNX's reference, which requires the package onnx" in told("onnx")


def test_operators_of_onnx_runtime_run_from_the_command_line(tmp_path: Path, capsys) -> None:
    node = helper.make_node("SampleOp", ["x"], ["y"], domain="com.microsoft")
    model = model_of([node, helper.make_node("Neg", ["y"], ["z"])], {"x": X}, ["z"])
    model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    path, package = str(tmp_path / "m.onnx"), str(tmp_path / "m.tar")
    onnx.save(model, path)
    np.savez(tmp_path / "in.npz", x=X)
    assert _main(["compile", path, "--target", "llvm", "-o", package]) == 4
    assert "tvmc compile --fallback" in capsys.readouterr().err
    with pytest.warns(UserWarning, match="SampleOp runs in ONNX Runtime"):
        assert _main(["compile", path, "--fallback", "--target", "llvm", "-o", package]) == 0
    out = tmp_path / "out.npz"
    assert _main(["run", package, "-i", str(tmp_path / "in.npz"), "-o", str(out)]) == 0
    np.testing.assert_array_equal(np.load(out)["output_0"], -X)
    with pytest.warns(UserWarning):
        assert _main(["verify", path, "--fallback"]) == 0


def test_batches_can_be_multiplied_with_a_transposed_operand() -> None:
    a, b = np.ones((2, 3, 4), "float32"), np.ones((2, 4, 5), "float32")
    model = model_of([helper.make_node("MatMul", ["a", "b"], ["y"])], {"a": a, "b": b}, ["y"])
    for wanted in (False, True):
        mod, _ = relay.frontend.from_onnx(model, convert_config={"use_nt_batch_matmul": wanted})
        assert ("transpose(%b" in str(mod)) == wanted
        np.testing.assert_allclose(run(mod, a=a, b=b)[0], a @ b)
    with pytest.raises(TVMError, match="did you mean 'use_nt_batch_matmul'"):
        relay.frontend.from_onnx(model, convert_config={"use_nt_batch_matmul_": True})
    with pytest.raises(TypeError, match="requires a bool"):
        relay.frontend.from_onnx(model, convert_config={"use_nt_batch_matmul": 2})


def test_nodes_without_names_get_them_in_a_copy(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Neg", ["x"], ["a"]),
        helper.make_node("Neg", ["a"], ["b"], name="mine"),
        helper.make_node("Neg", ["b"], ["y"]),
    ]
    model, path = model_of(nodes, {"x": X}, ["y"]), str(tmp_path / "named.onnx")
    mod, _ = relay.frontend.from_onnx(model, export_node_renamed_model_path=path)
    assert [node.name for node in onnx.load(path).graph.node] == ["Neg_0", "mine", "Neg_1"]
    assert [node.name for node in model.graph.node] == ["", "mine", ""]
    np.testing.assert_allclose(run(mod, x=X)[0], -X)
