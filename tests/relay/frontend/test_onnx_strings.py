"""Strings in ONNX models beside ONNX Runtime: known at import, or chosen from a table by the run."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

from tvm import relay
from tvm.contrib import onnx_backend
from tvm.error import TVMError

RNG = np.random.default_rng(0)
ML = "ai.onnx.ml"
F32, I64, TEXT = TensorProto.FLOAT, TensorProto.INT64, TensorProto.STRING


def ml(op: str, inputs: str, outputs: str, **attrs: Any) -> onnx.NodeProto:
    """A node of ai.onnx.ml."""
    return helper.make_node(op, inputs.split(), outputs.split(), domain=ML, **attrs)


def model_of(nodes: list[onnx.NodeProto], inputs: dict[str, Any], outputs: str) -> onnx.ModelProto:
    graph = helper.make_graph(
        nodes, "test",
        [helper.make_tensor_value_info(n, kind, shape) for n, (kind, shape) in inputs.items()],
        [onnx.ValueInfoProto(name=name) for name in outputs.split()],
    )  # fmt: skip
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid(ML, 3)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def check(model: onnx.ModelProto, **feed: np.ndarray) -> None:
    """Compare all outputs with ONNX Runtime."""
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    for ours, theirs in zip(
        onnx_backend.run_model(model, feed), session.run(None, feed), strict=True
    ):
        assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype)
        if theirs.dtype == object:
            assert ours.tolist() == theirs.tolist()
        else:
            np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


def words(*found: str) -> np.ndarray:
    return np.array(found, object)


def classifier() -> onnx.ModelProto:
    """Three classes with names, and their labels in another shape."""
    nodes = [
        ml("LinearClassifier", "x", "label p", coefficients=RNG.standard_normal(9).tolist(),
           intercepts=[0.1, 0.0, 0.2], classlabels_strings=["rose", "daisy", "tulip"]),
        helper.make_node("Constant", [], ["pair"], value_ints=[2, 2]),
        helper.make_node("Reshape", ["label", "pair"], ["y"]),
    ]  # fmt: skip
    return model_of(nodes, {"x": (F32, [4, 3])}, "y p")


def test_classes_have_names() -> None:
    check(classifier(), x=RNG.standard_normal((4, 3)).astype("float32"))


def test_relay_gives_places_of_names_and_says_so() -> None:
    with pytest.warns(UserWarning, match=r"gives indices into \['rose', 'daisy', 'tulip'\]"):
        mod, _ = relay.frontend.from_onnx(classifier())
    labels, _ = relay.transform.InferType()(mod)["main"].ret_type.fields
    assert (labels.dtype, tuple(labels.shape)) == ("int64", (2, 2))


def test_labels_are_strings_on_either_side() -> None:
    numbers, strings = {"x": (I64, [3])}, {"x": (TEXT, [3])}
    names, values = ["one", "five"], {"keys_int64s": [1, 5], "values_strings": ["one", "five"]}
    found = ml("LabelEncoder", "x", "t", **values)
    back = ml("LabelEncoder", "t", "y", keys_strings=names, values_floats=[0.5, 0.25])
    check(model_of([found, back], numbers, "t y"), x=np.array([5, 1, 7]))
    mapper = ml("CategoryMapper", "x", "y", cats_int64s=[1, 5], cats_strings=names)
    check(model_of([mapper], numbers, "y"), x=np.array([5, 1, 7]))
    check(model_of([mapper], strings, "y"), x=words("five", "one", "none"))
    hot = ml("OneHotEncoder", "x", "y", cats_strings=names)
    check(model_of([hot], strings, "y"), x=words("five", "one", "none"))


def test_strings_that_are_given_are_computed_with() -> None:
    count = helper.make_node(
        "TfIdfVectorizer", ["x"], ["y"], mode="TF", min_gram_length=1, max_gram_length=1,
        max_skip_count=0, ngram_counts=[0], ngram_indexes=[0, 1], pool_strings=["a", "b"],
    )  # fmt: skip
    model = model_of([count], {"x": (TEXT, ["n"])}, "y")
    check(model, x=words("b", "a", "b"))
    check(model, x=words("b", "c"))
    cast = [helper.make_node("Cast", ["x"], ["t"], to=TEXT),
            helper.make_node("Gather", ["t", "i"], ["y"])]  # fmt: skip
    model = model_of(cast, {"x": (I64, [3]), "i": (I64, [2])}, "t y")
    check(model, x=np.array([5, 1, 7]), i=np.array([2, 0]))


def test_strings_that_the_run_gives_are_refused() -> None:
    node = helper.make_node("StringNormalizer", ["x"], ["y"])
    with pytest.raises(TVMError, match="strings have no type in relay"):
        relay.frontend.from_onnx(model_of([node], {"x": (TEXT, [3])}, "y"))
