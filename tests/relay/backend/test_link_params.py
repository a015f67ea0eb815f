"""Constants inside the kernels' code."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import tvm
from tests.executors import run_library
from tests.relay.backend.random_graphs import RandomGraph
from tvm import relay
from tvm.relay.backend import Executor

LINKED = Executor("graph", {"link-params": True})
RNG = np.random.default_rng(0)


def random(*shape: int) -> np.ndarray:
    return RNG.uniform(-1, 1, shape).astype("float32")


@pytest.mark.parametrize("target", ["llvm", "c"])
def test_graph_has_no_parameters_left(target: str, tmp_path: Path) -> None:
    x, w = relay.var("x", shape=(2, 100)), relay.var("w", shape=(90, 100))
    func = relay.Function([x, w], relay.nn.relu(relay.nn.dense(x, w)))
    weight, value = random(90, 100), random(2, 100)
    with tvm.transform.PassContext(opt_level=3):
        lib = relay.build(func, target, params={"w": weight}, executor=LINKED)
    assert lib.get_params() == {}
    assert len(json.loads(lib.get_graph_json())["arg_nodes"]) == 1
    lib.export_library(str(tmp_path / "model.so"))
    (found,) = run_library(tvm.runtime.load_module(str(tmp_path / "model.so")), x=value)
    np.testing.assert_allclose(found, np.maximum(value @ weight.T, 0), rtol=1e-4, atol=1e-5)


def test_equal_layers_with_other_weights_are_other_kernels() -> None:
    x = relay.var("x", shape=(2, 8))
    first, second = random(8, 8), random(8, 8)
    body = relay.nn.dense(relay.nn.dense(x, relay.const(first)), relay.const(second))
    lib = relay.build(relay.Function([x], body), "llvm", executor=LINKED)
    value = random(2, 8)
    np.testing.assert_allclose(
        run_library(lib, x=value)[0], value @ first.T @ second.T, rtol=1e-4, atol=1e-5
    )


def test_the_option_of_the_pass_does_the_same() -> None:
    x = relay.var("x", shape=(3,))
    func = relay.Function([x], x + relay.const(np.arange(3, dtype="float32")))
    with tvm.transform.PassContext(opt_level=3, config={"relay.FuseOps.link_params": True}):
        lib = relay.build(func, "llvm")
    assert lib.get_params() == {}
    np.testing.assert_array_equal(run_library(lib, x=np.ones(3, "float32"))[0], [1, 2, 3])


@pytest.mark.parametrize("seed", range(200, 206))
def test_random_graphs_give_the_same_results(seed: int) -> None:
    graph = RandomGraph(seed)
    mod, inputs = graph.module(), graph.inputs()
    with tvm.transform.PassContext(opt_level=seed % 4):
        wanted = run_library(relay.build(mod, "llvm"), **inputs)
        found = run_library(relay.build(mod, "llvm", executor=LINKED), **inputs)
    for got, value in zip(found, wanted, strict=True):
        np.testing.assert_allclose(got, value, rtol=1e-5, atol=1e-6)
