"""Whole ONNX models: files, external data, options of `from_onnx`, and models that are wrong."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tvm import relay
from tvm.contrib import onnx_backend
from tvm.error import OpAttributeInvalid, OpAttributeRequired, TVMError

from .running import run

X = np.arange(12, dtype="float32").reshape(3, 4)
WEIGHT = np.linspace(-1, 1, 20, dtype="float32").reshape(4, 5)


def info(name: str, shape: Any, kind: int = TensorProto.FLOAT) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, shape)


def model_of(
    nodes: list[onnx.NodeProto], weights: dict[str, np.ndarray] | None = None, opset: int = 17,
    shape: Any = (3, 4), output: str = "y", **options: Any,
) -> onnx.ModelProto:  # fmt: skip
    tensors = [numpy_helper.from_array(v, n) for n, v in (weights or {}).items()]
    graph = helper.make_graph(nodes, "g", [info("x", shape)], [info(output, None)], tensors)
    return helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8, **options
    )


def product(**options: Any) -> onnx.ModelProto:
    return model_of([helper.make_node("MatMul", ["x", "w"], ["y"])], {"w": WEIGHT}, **options)


# ---- files


@pytest.mark.parametrize("folder", ["", "weights"])
def test_external_data_is_read_beside_the_file(folder: str, tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    (tmp_path / folder).mkdir(exist_ok=True)
    onnx.save(product(), path, save_as_external_data=True, size_threshold=0,
              location=os.path.join(folder, "data.bin"))  # fmt: skip
    for given in (str(path), path, onnx.load(path)):
        found = run(*relay.frontend.from_onnx(given), {"x": X})
        np.testing.assert_allclose(found[0], X @ WEIGHT, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "location, length", [("none.bin", 80), ("../other.bin", 80), ("short.bin", 80)]
)
def test_external_data_that_is_not_there_is_told(
    location: str, length: int, tmp_path: Path
) -> None:
    model = product()
    weight = model.graph.initializer[0]
    weight.ClearField("raw_data")
    weight.data_location = TensorProto.EXTERNAL
    for key, value in (("location", location), ("length", str(length))):
        entry = weight.external_data.add()
        entry.key, entry.value = key, value
    (tmp_path / "short.bin").write_bytes(b"abcd")
    onnx.save(model, tmp_path / "m.onnx")
    with pytest.raises(TVMError, match="the ONNX weight 'w' cannot be read"):
        relay.frontend.from_onnx(str(tmp_path / "m.onnx"))


# ---- options


def test_parameters_are_bound_later() -> None:
    mod, params = relay.frontend.from_onnx(product(), freeze_params=False)
    assert list(params) == ["w"]
    bound = relay.build_module.bind_params_by_name(mod["main"], params)
    assert [p.name_hint for p in bound.params] == ["x"]
    found = run(relay.transform.InferType()(type(mod).from_expr(bound)), {}, {"x": X})
    np.testing.assert_allclose(found[0], X @ WEIGHT, rtol=1e-5, atol=1e-5)


def test_opset_overrides_that_of_the_model() -> None:
    node = helper.make_node("Softmax", ["x"], ["y"], axis=0)
    columns = run(*relay.frontend.from_onnx(model_of([node])), {"x": X})[0]
    both = run(*relay.frontend.from_onnx(model_of([node]), opset=11), {"x": X})[0]
    np.testing.assert_allclose(columns.sum(0), 1, rtol=1e-5)
    np.testing.assert_allclose(both.sum(), 1, rtol=1e-5)


def test_names_of_nodes_are_written(tmp_path: Path) -> None:
    path = str(tmp_path / "named.onnx")
    relay.frontend.from_onnx(product(), export_node_renamed_model_path=path)
    assert [node.name for node in onnx.load(path).graph.node] == ["MatMul_0"]


def test_open_dimensions_get_extents_or_stay_open() -> None:
    model = product(shape=("n", 4))
    mod, _ = relay.frontend.from_onnx(model, {"x": (3, 4)})
    assert list(mod["main"].params[0].type_annotation.shape) == [3, 4]
    for shape in (None, {"x": (relay.Any(), 4)}):
        mod, _ = relay.frontend.from_onnx(model, shape)
        assert isinstance(mod["main"].params[0].type_annotation.shape[0], relay.Any)
        result = relay.create_executor("vm", mod=mod).evaluate()(X)
        np.testing.assert_allclose(result.numpy(), X @ WEIGHT, rtol=1e-5, atol=1e-5)


# ---- models that are wrong

RELU = helper.make_node("Relu", ["x"], ["y"])
WRONG = {
    "unknown name": (model_of([helper.make_node("Add", ["x", "z"], ["y"])]),
                     "uses 'z' before anything computes it"),
    "unknown output": (model_of([RELU], output="q"), "uses 'q' before anything computes it"),
    "name twice": (model_of([RELU, helper.make_node("Neg", ["x"], ["y"])]),
                   "2 values of the name 'y'"),
    "newer opset": (model_of([RELU], opset=99), "requires an opset from 1 to"),
    "no outputs": (onnx.ModelProto(), "requires a model with outputs"),
    "shape below zero": (
        helper.make_model(helper.make_graph(
            [helper.make_node("Add", ["x", "w"], ["y"])], "g", [info("x", (2,))],
            [info("y", None)], [TensorProto(name="w", data_type=1, dims=[-2], raw_data=b"12345678")],
        )), "weight 'w' cannot be read: its shape is"),
    "short data": (
        helper.make_model(helper.make_graph(
            [helper.make_node("Add", ["x", "w"], ["y"])], "g", [info("x", (2,))],
            [info("y", None)], [TensorProto(name="w", data_type=1, dims=[2], raw_data=b"123")],
        )), "weight 'w' cannot be read"),
    "shapes": (model_of([helper.make_node("MatMul", ["x", "x"], ["y"])]), "equal inner dimensions"),
    "index": (model_of([helper.make_node("Pad", ["x", "p"], ["y"])], {"p": np.array([1])}),
              "Pad y cannot be imported"),
    "parts": (model_of([helper.make_node("Split", ["x", "s"], ["y", "z"])],
                       {"s": np.array([1, 1])}), "parts that add up to 3"),
    "window": (model_of([helper.make_node("MaxPool", ["x"], ["y"], kernel_shape=[0, 1])],
                        shape=(1, 1, 3, 3)), "positive numbers as kernel_shape"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_wrong_models_are_refused_with_one_error(case: str) -> None:
    model, complaint = WRONG[case]
    with pytest.raises(TVMError, match=complaint):
        relay.frontend.from_onnx(model)


@pytest.mark.parametrize(
    "node, kind, complaint",
    [
        (helper.make_node("Add", ["x"], ["y"]), OpAttributeInvalid, "Add y requires 2 inputs"),
        (helper.make_node("Cast", ["x"], ["y"]), OpAttributeRequired, "the attribute 'to'"),
        (helper.make_node("Softmax", ["x"], ["y"], axes=1), OpAttributeInvalid,
         "Softmax y has no attribute 'axes'"),
        (helper.make_node("Softmax", ["x"], ["y"], axis="a"), OpAttributeInvalid,
         "'axis' to be INT, got STRING"),
    ],
)  # fmt: skip
def test_nodes_keep_to_their_definition(
    node: onnx.NodeProto, kind: type[TVMError], complaint: str
) -> None:
    with pytest.raises(kind, match=complaint):
        relay.frontend.from_onnx(model_of([node]))


def test_functions_that_call_themselves_are_refused() -> None:
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
    body = [helper.make_node("F", ["a"], ["b"], domain="own")]
    function = helper.make_function("own", "F", ["a"], ["b"], body, opsets)
    graph = helper.make_graph([helper.make_node("F", ["x"], ["y"], domain="own")], "g",
                              [info("x", (2,))], [info("y", None)])  # fmt: skip
    model = helper.make_model(graph, functions=[function], opset_imports=opsets)
    with pytest.raises(TVMError, match="the ONNX function F calls itself"):
        relay.frontend.from_onnx(model)


@pytest.mark.parametrize("shape", [[3, 4], {"x": (-1, 4)}, {"x": ("n", 4)}])
def test_shapes_of_inputs_are_checked(shape: Any) -> None:
    with pytest.raises((TypeError, TVMError), match="from_onnx requires"):
        relay.frontend.from_onnx(product(), shape)


def test_nodes_may_come_before_those_that_they_read() -> None:
    nodes = [
        helper.make_node("If", ["flag"], ["z"], then_branch=_alone("Neg", "y"),
                         else_branch=_alone("Identity", "y")),
        helper.make_node("Abs", ["h"], ["y"]),
        helper.make_node("Add", ["x", "x"], ["h"]),
    ]  # fmt: skip
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2]),
              helper.make_tensor_value_info("flag", TensorProto.BOOL, [])]  # fmt: skip
    result = helper.make_tensor_value_info("z", TensorProto.FLOAT, [2])
    model = helper.make_model(helper.make_graph(nodes, "late", inputs, [result]))
    x = np.array([-1, 3], "float32")
    (found,) = onnx_backend.run_model(model, [x, np.array(True)])
    np.testing.assert_array_equal(found, [-2, -6])


def _alone(op: str, name: str) -> onnx.GraphProto:
    result = helper.make_tensor_value_info("r", TensorProto.FLOAT, [2])
    return helper.make_graph([helper.make_node(op, [name], ["r"])], op, [], [result])


def test_nodes_that_wait_for_each_other_are_refused() -> None:
    nodes = [helper.make_node("Add", ["x", "b"], ["a"]), helper.make_node("Neg", ["a"], ["b"])]
    value = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [2]) for n in ("x", "b")]
    model = helper.make_model(helper.make_graph(nodes, "cycle", value[:1], value[1:]))
    with pytest.raises(TVMError, match="uses 'b' before anything computes it"):
        relay.frontend.from_onnx(model)
