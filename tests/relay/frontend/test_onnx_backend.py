"""Models through ONNX's own interface, with values that decide about shapes."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import tvm.contrib.onnx_backend as backend
from tvm.error import TVMError

RNG = np.random.default_rng(0)


def f32(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype("float32")


def graph_model(nodes: list[Any], inputs: dict[str, Any], outputs: list[str]) -> onnx.ModelProto:
    """A model of nodes; inputs by element type and shape."""
    graph = helper.make_graph(
        nodes, "test",
        [helper.make_tensor_value_info(n, kind, shape) for n, (kind, shape) in inputs.items()],
        [onnx.ValueInfoProto(name=name) for name in outputs],
    )  # fmt: skip
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])


def test_a_shape_that_comes_as_input_compiles_for_each_value() -> None:
    nodes = [helper.make_node("Reshape", ["x", "shape"], ["y"])]
    kinds = {"x": (TensorProto.FLOAT, [2, 6]), "shape": (TensorProto.INT64, ["n"])}
    prepared = backend.prepare(graph_model(nodes, kinds, ["y"]))
    x = f32(2, 6)
    for wanted in ([3, 4], [12], [3, 4]):
        (y,) = prepared.run([x, np.array(wanted)])
        np.testing.assert_array_equal(y, x.reshape(wanted))
    assert len(prepared._compiled) == 2


def test_open_dimensions_compile_for_each_shape() -> None:
    nodes = [helper.make_node("Relu", ["x"], ["y"])]
    prepared = backend.prepare(graph_model(nodes, {"x": (TensorProto.FLOAT, ["n", 3])}, ["y"]))
    for n in (1, 4):
        x = f32(n, 3)
        np.testing.assert_array_equal(prepared.run({"x": x}).y, np.maximum(x, 0))


def test_loops_of_a_known_count_are_unrolled() -> None:
    body = helper.make_graph(
        [helper.make_node("Add", ["sum", "x"], ["next"]),
         helper.make_node("Identity", ["go"], ["again"]),
         helper.make_node("Identity", ["next"], ["seen"])],
        "body",
        [onnx.ValueInfoProto(name=name) for name in ("i", "go", "sum")],
        [onnx.ValueInfoProto(name=name) for name in ("again", "next", "seen")],
    )  # fmt: skip
    nodes = [helper.make_node("Loop", ["count", "", "x"], ["last", "all"], body=body)]
    kinds = {"count": (TensorProto.INT64, []), "x": (TensorProto.FLOAT, [2])}
    x = f32(2)
    last, every = backend.run_model(graph_model(nodes, kinds, ["last", "all"]), [np.array(3), x])
    np.testing.assert_allclose(last, 4 * x, rtol=1e-6)
    np.testing.assert_allclose(every, np.stack([2 * x, 3 * x, 4 * x]), rtol=1e-6)
    none = backend.run_model(graph_model(nodes, kinds, ["last", "all"]), [np.array(0), x])
    assert none[1].shape == (0, 2)


def test_functions_of_the_model_are_expanded() -> None:
    square = helper.make_function(
        "my.domain", "ScaledSquare", ["x"], ["y"],
        [helper.make_node("Mul", ["x", "x"], ["xx"]), _constant_of_attribute("factor"),
         helper.make_node("Mul", ["xx", "factor_value"], ["y"])],
        [helper.make_opsetid("", 18)], ["factor"],
    )  # fmt: skip
    node = helper.make_node("ScaledSquare", ["x"], ["y"], domain="my.domain", factor=3.0)
    model = graph_model([node], {"x": (TensorProto.FLOAT, [4])}, ["y"])
    model.functions.append(square)
    model.opset_import.append(helper.make_opsetid("my.domain", 1))
    x = f32(4)
    np.testing.assert_allclose(backend.run_model(model, [x]).y, 3 * x * x, rtol=1e-6)


def _constant_of_attribute(name: str) -> onnx.NodeProto:
    node = helper.make_node("Constant", [], [f"{name}_value"])
    node.attribute.append(
        onnx.AttributeProto(name="value_float", ref_attr_name=name, type=onnx.AttributeProto.FLOAT)
    )
    return node


def test_a_row_of_infinities_has_their_maximum() -> None:
    node = helper.make_node("ReduceMax", ["x"], ["y"], keepdims=0)
    x = np.full((3,), -np.inf, "float32")
    assert backend.run_node(node, [x]).y == -np.inf


def test_devices_other_than_the_cpu_are_refused() -> None:
    model = graph_model([helper.make_node("Relu", ["x"], ["y"])],
                        {"x": (TensorProto.FLOAT, [1])}, ["y"])  # fmt: skip
    assert not backend.supports_device("CUDA")
    with pytest.raises(TVMError, match="device CPU, got 'CUDA'"):
        backend.prepare(model, "CUDA")


def test_wrong_inputs_are_named() -> None:
    model = graph_model([helper.make_node("Relu", ["x"], ["y"])],
                        {"x": (TensorProto.FLOAT, [1])}, ["y"])  # fmt: skip
    prepared = backend.prepare(model)
    with pytest.raises(ValueError, match=r"missing for the inputs \['x'\]"):
        prepared.run([])
    with pytest.raises(ValueError, match=r"got also \['z'\]"):
        prepared.run({"z": f32(1)})
