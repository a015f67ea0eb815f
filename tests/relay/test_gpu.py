"""Models on an OpenCL device give what they give on the processor."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tvm
from tests.system_tools import needs_opencl
from tvm import relay
from tvm.contrib import graph_executor


def network() -> tuple[tvm.IRModule, dict[str, np.ndarray], np.ndarray]:
    x = relay.var("x", shape=(1, 4, 12, 12))
    w, b, w2 = (
        relay.var("w", shape=(8, 4, 3, 3)),
        relay.var("b", shape=(8,)),
        relay.var("w2", shape=(10, 288)),
    )
    y = relay.nn.relu(relay.nn.bias_add(relay.nn.conv2d(x, w, padding=(1, 1)), b))
    y = relay.nn.batch_flatten(relay.nn.max_pool2d(y, (2, 2), (2, 2)))
    y = relay.nn.softmax(relay.nn.dense(y, w2))
    rng = np.random.default_rng(0)
    shapes = {"w": (8, 4, 3, 3), "b": (8,), "w2": (10, 288)}
    params = {
        name: rng.standard_normal(shape).astype("float32") / 5 for name, shape in shapes.items()
    }
    mod = tvm.IRModule.from_expr(relay.Function([x, w, b, w2], y))
    return mod, params, rng.standard_normal((1, 4, 12, 12)).astype("float32")


def run(lib: tvm.runtime.Module, dev: tvm.runtime.Device, x: np.ndarray) -> np.ndarray:
    model = graph_executor.GraphModule(lib["default"](dev))
    model.set_input("x", x)
    model.run()
    return model.get_output(0).numpy()


@needs_opencl()
def test_a_network_in_the_graph_executor(tmp_path: Path) -> None:
    mod, params, x = network()
    expected = run(relay.build(mod, "llvm", params=params), tvm.cpu(0), x)
    lib = relay.build(mod, "opencl", params=params)
    np.testing.assert_allclose(run(lib, tvm.opencl(0), x), expected, rtol=1e-4, atol=1e-6)
    lib.export_library(str(tmp_path / "model.so"))
    loaded = tvm.runtime.load_module(str(tmp_path / "model.so"))
    np.testing.assert_allclose(run(loaded, tvm.opencl(0), x), expected, rtol=1e-4, atol=1e-6)


OPERATORS = {
    "cumsum": lambda x: relay.cumsum(x, axis=1),
    "layer_norm": lambda x: relay.nn.layer_norm(x, relay.const(np.ones(24, "float32")), relay.const(np.zeros(24, "float32"))),
    "concatenate": lambda x: relay.concatenate([x, relay.exp(x)], axis=1),
    "split": lambda x: relay.split(x, 2, axis=1)[1] + relay.split(x, 2, axis=1)[0],
    "take": lambda x: relay.take(x, relay.const(np.array([3, 1], "int32")), axis=0),
    "mean": lambda x: relay.mean(x),
    "scatter_elements": lambda x: relay.scatter_elements(
        x, relay.const(np.zeros((1, 24), "int64")), relay.const(np.ones((1, 24), "float32"))
    ),
}  # fmt: skip


@needs_opencl()
@pytest.mark.parametrize("name", OPERATORS)
def test_operators(name: str) -> None:
    x = relay.var("x", shape=(6, 24))
    mod = tvm.IRModule.from_expr(relay.Function([x], OPERATORS[name](x)))
    value = np.random.default_rng(0).standard_normal((6, 24)).astype("float32")
    expected = run(relay.build(mod, "llvm"), tvm.cpu(0), value)
    found = run(relay.build(mod, "opencl"), tvm.opencl(0), value)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
