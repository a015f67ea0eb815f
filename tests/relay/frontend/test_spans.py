"""Imported expressions say which node of the model they come from."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import torch
from onnx import helper

from tests.verify.models import model_of
from tvm import relay
from tvm.ir.span import Span
from tvm.relay.frontend.common import set_span
from tvm.relay.traverse import post_order

X = np.ones((2, 3), "float32")


def names(expr: relay.Expr, kind: type = relay.Call) -> list[str]:
    """The names in the spans of calls, in order."""
    nodes = [node for node in post_order(expr) if type(node) is kind]
    return [node.span.source_name.name for node in nodes]


def test_spans_are_set_where_there_are_none() -> None:
    x = relay.var("x", shape=(2,))
    first = set_span(relay.exp(x), "first")
    second = set_span(relay.abs(relay.negative(first)), Span("second", 1, 1, 2, 3))
    assert names(second) == ["first", "second", "second"]
    assert x.span.source_name.name == "first" and second.span.end_column == 3


def test_onnx_nodes_are_named() -> None:
    nodes = [
        helper.make_node("HardSwish", ["x"], ["h"], name="act"),
        helper.make_node("MatMul", ["h", "w"], ["y"]),
    ]
    weights = {"w": np.ones((3, 3), "float32")}
    mod, _ = relay.frontend.from_onnx(model_of(nodes, {"x": X}, ["y"], weights))
    main = mod["main"]
    assert set(names(main)) == {"act", "y"} and names(main)[-1] == "y"
    assert main.params[0].span.source_name.name == "x"
    mod, _ = relay.frontend.from_onnx(
        model_of(nodes, {"x": X}, ["y"], weights), freeze_params=False
    )
    assert names(mod["main"], relay.Var) == ["x", "w"]


def test_names_are_those_of_the_renamed_model(tmp_path: Path) -> None:
    nodes = [helper.make_node("Exp", ["x"], ["e"]), helper.make_node("Exp", ["e"], ["y"])]
    path = str(tmp_path / "renamed.onnx")
    mod, _ = relay.frontend.from_onnx(
        model_of(nodes, {"x": X}, ["y"]), export_node_renamed_model_path=path
    )
    assert names(mod["main"]) == [node.name for node in onnx.load(path).graph.node]
    folder = tmp_path / "models"
    relay.frontend.from_onnx(
        model_of(nodes, {"x": X}, ["y"]), export_node_renamed_model_path=str(folder)
    )
    (written,) = folder.glob("tvm_exported_model_*.onnx")
    assert [node.name for node in onnx.load(written).graph.node] == ["Exp_0", "Exp_1"]


class Block(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.dense = torch.nn.Linear(3, 3)
        self.act = torch.nn.ReLU()

    def forward(self, x):
        return self.act(self.dense(x)).exp()


def test_pytorch_operators_are_numbered() -> None:
    script = torch.jit.trace(torch.nn.Sequential(Block(), Block()).eval(), torch.ones(2, 3))
    mod, _ = relay.frontend.from_pytorch(script, [("x", (2, 3))])
    found = dict.fromkeys(names(mod["main"]))
    assert list(found) == [
        "aten::linear_0", "aten::relu_0", "aten::exp_0",
        "aten::linear_1", "aten::relu_1", "aten::exp_1",
    ]  # fmt: skip
    places = names(mod["main"], relay.Var)
    assert {"aten::linear_0.x", "aten::linear_0.weight", "aten::linear_1.bias"} <= set(places)


def test_pytorch_scopes_are_kept_on_demand() -> None:
    script = torch.jit.trace(torch.nn.Sequential(Block(), Block()).eval(), torch.ones(2, 3))
    mod, _ = relay.frontend.from_pytorch(script, [("x", (2, 3))], preserve_pytorch_scopes=True)
    found = names(mod["main"])
    assert "0.dense/aten::linear_0" in found and found[-1] == "1/aten::exp_1"


def test_exported_operators_are_named_with_the_paths_of_their_modules() -> None:
    model = torch.nn.Sequential(Block(), Block()).eval()
    program = torch.export.export(model, (torch.ones(2, 3),))
    mod, _ = relay.frontend.from_exported_program(program)
    found = dict.fromkeys(names(mod["main"]))
    assert list(found)[-3:] == ["1.dense/addmm_1", "1.act/relu_1", "1/exp_1"]


def test_kernels_know_the_nodes_that_they_compute() -> None:
    program = torch.export.export(Block().eval(), (torch.ones(2, 3),))
    mod, params = relay.frontend.from_exported_program(program)
    nodes = json.loads(relay.build(mod, "llvm", params=params).graph_json)["nodes"]
    assert nodes[-1]["attrs"]["sources"] == "dense/addmm, act/relu, exp"
