"""Outputs go by the names of the imported model, whatever executor runs it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import tvm
from tvm import relay
from tvm.contrib.graph_executor import GraphModule
from tvm.relay.backend import Executor
from tvm.relay.function import OUTPUT_NAMES
from tvm.runtime.executor import AotModule

NAMES = ["logits", "past.0", "past/1:0"]
X = np.arange(4, dtype="float32")


def model(names: list[str] | None = NAMES) -> relay.Function:
    x = relay.var("x", shape=(4,))
    body = relay.Tuple([x + x, relay.Tuple([x, relay.nn.relu(x * x)])])
    return relay.Function([x], body, attrs={} if names is None else {OUTPUT_NAMES: names})


@pytest.mark.parametrize("kind", ["graph", "aot"])
def test_outputs_are_found_by_name(kind: str, tmp_path: Path) -> None:
    lib = relay.build(model(), "llvm", executor=Executor(kind))
    lib.export_library(tmp_path / "m.so")
    loaded = tvm.runtime.load_module(tmp_path / "m.so")
    module = {"graph": GraphModule, "aot": AotModule}[kind](loaded["default"](tvm.cpu()))
    module.run(x=X)
    np.testing.assert_array_equal(module.get_output("logits").numpy(), 2 * X)
    np.testing.assert_array_equal(module.get_output("past.0").numpy(), X)
    np.testing.assert_array_equal(module.get_output("past/1:0").numpy(), X * X)
    shapes, dtypes = module.get_output_info()
    assert shapes == dict.fromkeys(NAMES, (4,)) and dtypes["logits"] == "float32"
    assert [module.get_output_name(i) for i in range(3)] == NAMES
    with pytest.raises(ValueError, match="no output 'logit'; its outputs are 'logits', 'past.0'"):
        module.get_output("logit")


def test_names_are_where_runtimes_that_do_not_know_them_stop_reading() -> None:
    text = relay.build(model(), "llvm").graph_json
    assert list(json.loads(text))[-1] == "metadata"
    assert json.loads(text)["metadata"] == {"output_names": NAMES}


@pytest.mark.parametrize("names", [None, ["other", "outputs"]])
def test_outputs_without_names_of_their_own_have_those_of_kernels(names: list[str] | None) -> None:
    lib = relay.build(model(names), "llvm")
    assert "metadata" not in json.loads(lib.graph_json)
    module = GraphModule(lib["default"](tvm.cpu()))
    module.run(x=X)
    np.testing.assert_array_equal(module.get_output("tvmgen_default_fused_add").numpy(), 2 * X)


def test_names_that_do_not_fit_the_graph_are_rejected() -> None:
    lib = relay.build(model(), "llvm")
    graph = json.loads(lib.graph_json)
    graph["metadata"]["output_names"].pop()
    with pytest.raises(ValueError, match="output_names has 2 items for 3 outputs"):
        tvm.contrib.graph_executor.create(json.dumps(graph), lib.lib, tvm.cpu())


@pytest.mark.parametrize("kind", ["graph", "aot"])
def test_parameters_are_not_among_the_inputs_that_are_described(kind: str) -> None:
    x, w = relay.var("x", shape=(2, 4)), relay.var("w", shape=(3, 4))
    func = relay.Function([x, w], relay.nn.dense(x, w))
    options = {"link-params": False} if kind == "aot" else {}
    params = {"w": np.ones((3, 4), "float32")}
    lib = relay.build(func, "llvm", params=params, executor=Executor(kind, options))
    module = {"graph": GraphModule, "aot": AotModule}[kind](lib["default"](tvm.cpu()))
    assert module.get_num_inputs() == 2
    assert module.get_input_info() == ({"x": (2, 4)}, {"x": "float32"})
