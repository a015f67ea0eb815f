"""Models on the machine of a session."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tvm
from tvm import relay, rpc
from tvm.contrib import graph_executor
from tvm.contrib.debugger import debug_executor
from tvm.runtime import profiler_vm
from tvm.runtime.executor import AotModule
from tvm.runtime.vm import VirtualMachine

DATA = np.linspace(-1, 1, 8, dtype="float32").reshape(2, 4)
WEIGHT = np.linspace(0, 1, 12, dtype="float32").reshape(3, 4)


def _model(is_tuple: bool = False) -> tvm.IRModule:
    x = relay.var("x", shape=(2, 4))
    y = relay.nn.relu(relay.nn.dense(x, relay.const(WEIGHT)))
    return tvm.IRModule.from_expr(relay.Function([x], relay.Tuple([y, x]) if is_tuple else y))


EXPECTED = np.maximum(DATA @ WEIGHT.T, 0)


@pytest.mark.parametrize("executor", ["graph", "aot"])
def test_executors_run_there(remote: rpc.RPCSession, tmp_path: Path, executor: str) -> None:
    built = relay.build(_model(), "llvm", executor=relay.backend.Executor(executor))
    built.export_library(tmp_path / "lib.so")
    remote.upload(tmp_path / "lib.so")
    made = remote.load_module("lib.so")["default"](remote.cpu())
    module = graph_executor.GraphModule(made) if executor == "graph" else AotModule(made)
    module.set_input("x", DATA)
    module.run()
    np.testing.assert_allclose(module.get_output(0).numpy(), EXPECTED, rtol=1e-5)
    out = tvm.nd.empty((2, 3))  # of this machine
    module.run(x=tvm.nd.array(-DATA))
    np.testing.assert_allclose(
        module.get_output(0, out).numpy(), np.maximum(-DATA @ WEIGHT.T, 0), rtol=1e-5
    )
    assert module.benchmark(remote.cpu(), number=1, repeat=2).mean > 0


def test_nodes_are_timed_there(remote: rpc.RPCSession, tmp_path: Path) -> None:
    built = relay.build(_model(), "llvm")
    built.export_library(tmp_path / "debug.so")
    remote.upload(tmp_path / "debug.so")
    library = remote.load_module("debug.so")
    module = debug_executor.create(built.get_graph_json(), library, remote.cpu())
    module.set_input(**built.get_params())
    assert len(module.profile(x=DATA).calls) > 0
    np.testing.assert_allclose(module.get_output(0).numpy(), EXPECTED, rtol=1e-5)


def test_the_virtual_machine_runs_there(remote: rpc.RPCSession, tmp_path: Path) -> None:
    relay.vm.compile(_model(is_tuple=True), "llvm").mod.export_library(tmp_path / "vm.so")
    remote.upload(tmp_path / "vm.so")
    library = remote.load_module("vm.so")
    machine = VirtualMachine(library, remote.cpu())
    first, second = machine.run(DATA)
    np.testing.assert_allclose(first.numpy(), EXPECTED, rtol=1e-5)
    np.testing.assert_array_equal(second.numpy(), DATA)
    profiler = profiler_vm.VirtualMachineProfiler(library, remote.cpu())
    assert len(profiler.profile(tvm.nd.array(DATA, remote.cpu())).calls) > 0
