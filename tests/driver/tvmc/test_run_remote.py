"""`tvmc run` on the machine of an RPC server."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tvm
from tvm import relay, rpc
from tvm.driver import tvmc
from tvm.driver.tvmc.model import TVMCModel


@pytest.mark.parametrize("suffix", ["tar", "so"])
def test_models_run_on_another_machine(tmp_path: Path, suffix: str) -> None:
    x = relay.var("x", shape=(2, 4))
    y = relay.nn.dense(x, relay.const(np.ones((3, 4), "float32")))
    model = TVMCModel(tvm.IRModule.from_expr(relay.Function([x], y)), {})
    path = str(tmp_path / f"model.{suffix}")
    package = tvmc.compile(model, "llvm", package_path=path, output_format="so")
    data = {"x": np.ones((2, 4), "float32")}
    with rpc.Tracker(port=0) as tracker:
        address = ("127.0.0.1", tracker.port)
        with rpc.Server(port=0, key="board", tracker_addr=address):
            result = tvmc.run(
                package, "cpu", hostname=address[0], port=address[1], rpc_key="board", inputs=data
            )
    np.testing.assert_array_equal(result.outputs["output_0"], np.full((2, 3), 4, "float32"))


def test_kernels_are_tuned_on_another_machine(tmp_path: Path) -> None:
    x = relay.var("x", shape=(2, 4))
    y = relay.nn.dense(x, relay.const(np.ones((3, 4), "float32")))
    model = TVMCModel(tvm.IRModule.from_expr(relay.Function([x], y)), {})
    records = tmp_path / "records.log"
    with rpc.Tracker(port=0) as tracker:
        address = ("127.0.0.1", tracker.port)
        with rpc.Server(port=0, key="board", tracker_addr=address):
            tvmc.tune(
                model, "llvm", tuning_records=str(records), hostname=address[0],
                port=address[1], rpc_key="board", trials=2, tuner="random", timeout=30,
            )  # fmt: skip
    assert records.read_text().strip()
