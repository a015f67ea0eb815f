"""Operators that the ONNX importer lacks, and its options."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper

import tvm
from tests.contrib.verify.models import model_of
from tvm import relay
from tvm.contrib import graph_executor
from tvm.error import OpNotImplemented, TVMError
from tvm.relay.frontend.onnx.registry import CONVERTERS

X = np.random.default_rng(0).normal(size=(2, 5)).astype("float32")


def run(mod: tvm.IRModule, **inputs: np.ndarray) -> list[np.ndarray]:
    lib = relay.build(mod, target="llvm")
    module = graph_executor.GraphModule(lib["default"](tvm.cpu()))
    module.run(**inputs)
    return [module.get_output(i).numpy() for i in range(module.get_num_outputs())]


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
        pytest.warns(UserWarning, match="TopK runs in ONNX's reference, in this process only"),
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
    assert "my.domain.Frob of opset 3 (node first, inputs x: [2, 5])" in str(plain.value)
    assert "fallback=True" in str(plain.value)
    with pytest.raises(OpNotImplemented, match="got 2 nodes of 2 unsupported"):
        relay.frontend.from_onnx(model, fallback=True)


def test_results_whose_shape_depends_on_data_are_refused_at_run_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with_unknown(monkeypatch, "NonZero")
    model = model_of([helper.make_node("NonZero", ["x"], ["y"])], {"x": X}, ["y"])
    with pytest.warns(UserWarning):
        mod, _ = relay.frontend.from_onnx(model, fallback=True)
    with pytest.raises(Exception, match="the shape that it had at import"):
        run(mod, x=X * 0)


def test_unknown_shapes_and_missing_references_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    with_unknown(monkeypatch, "Asinh", "SequenceLength")
    model = model_of([helper.make_node("Asinh", ["x"], ["y"])], {"x": X}, ["y"])
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "n"
    with pytest.raises(OpNotImplemented, match="requires known shapes"):
        relay.frontend.from_onnx(model, fallback=True)
    nodes = [
        helper.make_node("SequenceConstruct", ["x"], ["s"]),
        helper.make_node("SequenceLength", ["s"], ["y"]),
    ]
    with pytest.raises(OpNotImplemented, match="requires tensors to be computed by a reference"):
        relay.frontend.from_onnx(model_of(nodes, {"x": X}, ["y"]), fallback=True)


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
