"""Networks of relay, compiled as C."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tvm
from tvm import relay
from tvm.contrib import graph_executor


def network() -> tuple[tvm.IRModule, dict[str, np.ndarray]]:
    """Two convolutions, pooling, a dense layer and softmax."""
    source = np.random.default_rng(5)
    shapes = {"w1": (8, 3, 3, 3), "w2": (8, 8, 3, 3), "w3": (10, 8 * 4 * 4), "b3": (10,)}
    params = {n: source.uniform(-0.3, 0.3, s).astype("float32") for n, s in shapes.items()}
    weights = {name: relay.var(name, shape=shape) for name, shape in shapes.items()}
    data = relay.var("data", shape=(1, 3, 8, 8))
    first = relay.nn.relu(relay.nn.conv2d(data, weights["w1"], padding=(1, 1)))
    second = relay.nn.relu(relay.nn.conv2d(first, weights["w2"], padding=(1, 1)) + first)
    pooled = relay.nn.batch_flatten(relay.nn.max_pool2d(second, (2, 2), (2, 2)))
    out = relay.nn.softmax(relay.nn.bias_add(relay.nn.dense(pooled, weights["w3"]), weights["b3"]))
    func = relay.Function([data, *weights.values()], out)
    return tvm.IRModule.from_expr(func), params


def outputs(library: tvm.runtime.Module, data: np.ndarray) -> np.ndarray:
    module = graph_executor.GraphModule(library["default"](tvm.cpu()))
    module.set_input("data", data)
    module.run()
    return module.get_output(0).numpy()


@pytest.mark.parametrize("target", ["c", tvm.target.Target("c", host="c")])
def test_network_in_c_agrees_with_llvm(target: object, tmp_path: Path) -> None:
    mod, params = network()
    data = np.random.default_rng(6).uniform(-1, 1, (1, 3, 8, 8)).astype("float32")
    built = relay.build(mod, target=target, params=params)
    assert built.lib.type_key == "c" and "tvmgen_default" in built.lib.get_source()
    built.export_library(tmp_path / "net.so")
    ours = outputs(tvm.runtime.load_module(tmp_path / "net.so"), data)
    reference = outputs(relay.build(mod, target="llvm", params=params), data)
    np.testing.assert_allclose(ours, reference, rtol=1e-5, atol=1e-6)
