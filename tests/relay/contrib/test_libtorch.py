"""TorchScript functions are operators."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import tvm
from tvm import relay
from tvm.contrib.graph_executor import GraphModule
from tvm.relay.contrib.libtorch import torchop


@torch.jit.script
def product(x, y):
    return x @ y.t()


@torch.jit.script
def both(x, y):
    return x + y, torch.cumsum(x * y, 1)


def values(dtype: str) -> tuple[np.ndarray, np.ndarray]:
    a = np.arange(12).reshape(3, 4).astype(dtype)
    return a, a + 2


@pytest.mark.parametrize("dtype", ["int32", "float64"])
def test_pytorch_computes_in_every_executor(dtype: str) -> None:
    x, y = [relay.var(n, shape=(3, 4), dtype=dtype) for n in "xy"]
    body = relay.add(torchop(product, relay.add(x, x), y), relay.const(1, dtype))
    a, b = values(dtype)
    for kind in ("debug", "graph", "aot", "vm"):
        run = relay.create_executor(kind, target="llvm").evaluate(relay.Function([x, y], body))
        np.testing.assert_allclose(run(a, b).numpy(), 2 * a @ b.T + 1)


def test_several_results_and_a_library(tmp_path: Path) -> None:
    x, y = [relay.var(n, shape=(3, 4)) for n in "xy"]
    call = torchop(both, x, y)
    mod = tvm.IRModule.from_expr(relay.Function([x, y], call))
    assert str(relay.transform.InferType()(mod)["main"].ret_type).count("Tensor[(3, 4)") == 2
    relay.build(mod, "llvm").export_library(str(tmp_path / "m.so"))
    module = GraphModule(tvm.runtime.load_module(str(tmp_path / "m.so"))["default"](tvm.cpu()))
    a, b = values("float32")
    module.run(x=a, y=b)
    np.testing.assert_allclose(module.get_output(0).numpy(), a + b)
    np.testing.assert_allclose(module.get_output(1).numpy(), np.cumsum(a * b, 1))


def test_what_is_no_script_is_rejected() -> None:
    with pytest.raises(TypeError, match="requires a script"):
        torchop(torch.nn.ReLU(), relay.var("x", shape=(2,)))
    call = torchop(product, relay.var("x", shape=(relay.Any(), 4)), relay.var("y", shape=(3, 4)))
    with pytest.raises(tvm.TVMError, match="torch_op requires constant shapes"):
        relay.transform.InferType()(tvm.IRModule.from_expr(call))
