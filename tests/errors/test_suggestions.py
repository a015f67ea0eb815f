"""Hints name what is similar, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest
from onnx import TensorProto, helper

from tests.errors.messages import rejection
from tvm import relay
from tvm.error import suggest

SOURCES = Path(__file__).resolve().parents[2] / "tvm"


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("llvmm", "llvm"),
        ("Cocnat", "Concat"),
        ("daata", "data"),
        ("exo", "exp"),
        ("xx", "x"),
        ("inputIds", "input_ids"),
        ("nn.conv", "nn.conv2d"),
        ("conv2d", "nn.conv2d"),
        ("soft", "softmax"),
        ("@mian", "@main"),
        ("tvm.contrib.cublas.matmul", "tvm.contrib.cblas.matmul"),
    ],
)
def test_slips_and_beginnings_are_similar(name: str, known: str) -> None:
    assert suggest(name, [known, "unrelated"]) == f"did you mean {known!r}?"


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("Frobnicate", "Concat"),
        ("x", "y"),
        ("scd", "scan"),
        ("runtime.module.foo", "runtime.module.bar"),
        ("aten::foo", "aten::fold"),
        ("input", "output_names"),
        ("", "data"),
    ],
)
def test_other_names_are_not_similar(name: str, other: str) -> None:
    assert suggest(name, [other]) == ""


def test_the_most_similar_stands_first() -> None:
    names = ["conv3d", "conv2d", "conv1d"]
    assert suggest("Conv2d", names).startswith("did you mean 'conv2d'")


def test_unknown_onnx_operators_are_not_likened_to_others() -> None:
    types = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in "xy"]
    graph = helper.make_graph(
        [helper.make_node("Frobnicate", ["x"], ["y"])], "g", types[:1], types[1:]
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    text = rejection(lambda: relay.frontend.from_onnx(model))
    assert "Frobnicate" in text and "did you mean" not in text


def test_similarity_is_computed_in_one_function() -> None:
    ways = ("SequenceMatcher", "get_close_matches")
    texts = [(path.name, path.read_text("utf8")) for path in SOURCES.rglob("*.py")]
    assert [name for name, text in texts if any([way in text for way in ways])] == ["error.py"]
