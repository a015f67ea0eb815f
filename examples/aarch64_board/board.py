"""Run a model on an emulated AArch64 board over RPC, and compare it with this machine.

usage: python board.py [--size PIXELS] [--board FOLDER]

`make board` puts the runtime and its RPC server, cross-compiled, into the folder; qemu-aarch64 stands for the board.
The model is MobileNet with random weights: a real one comes in through ``relay.frontend.from_onnx``.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

import tvm
from tvm import relay, rpc
from tvm.contrib import graph_executor
from tvm.relay.testing import mobilenet

TARGET = "llvm -mtriple=aarch64-linux-gnu -mattr=+neon"
LINKER = "aarch64-linux-gnu-g++"
EMULATOR = ["qemu-aarch64", "-L", "/usr/aarch64-linux-gnu"]
HERE = Path(__file__).parent


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=96, help="height and width of the picture")
    parser.add_argument("--board", type=Path, default=HERE / "board", help="what make board made")
    arguments = parser.parse_args()
    shape = (3, arguments.size, arguments.size)
    mod, params = mobilenet.get_workload(batch_size=1, image_shape=shape)
    picture = np.random.default_rng(0).standard_normal((1, *shape)).astype("float32")

    here = graph_executor.GraphModule(relay.build(mod, "llvm", params=params)["default"](tvm.cpu()))
    here.run(data=picture)
    expected = here.get_output(0).numpy()
    found, seconds = on_board(arguments.board, mod, params, picture)

    difference = float(np.abs(found - expected).max() / np.abs(expected).max())
    print(f"the board took {seconds:.2f} s (emulated)")
    print(f"largest difference from this machine, of the largest score: {difference:.1e}")
    return 0 if difference < 1e-5 else 1


def on_board(
    board: Path, mod: tvm.IRModule, params: dict[str, tvm.nd.NDArray], picture: np.ndarray
) -> tuple[np.ndarray, float]:
    """The scores that the board computes, and the seconds of a run there."""
    library = relay.build(mod, TARGET, params=params)
    with tempfile.TemporaryDirectory() as folder, started(board) as port:
        path = Path(folder) / "mobilenet.so"
        library.export_library(path, cc=LINKER)
        remote = rpc.connect("127.0.0.1", port, key="board", session_timeout=300)
        remote.upload(path)
        model = remote.load_module(path.name)
        there = graph_executor.GraphModule(model["default"](remote.cpu()))
        there.set_input("data", picture)
        there.run()
        seconds = there.module.time_evaluator("run", remote.cpu(), number=1)().mean
        return there.get_output(0).numpy(), seconds


@contextmanager
def started(board: Path) -> Iterator[int]:
    """The RPC server of the board, while the block runs; gives its port."""
    command = [*EMULATOR, str(board / "tvm_rpc"), "server", "--key=board"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        line = server.stderr.readline()
        listening = re.search(r"listening on 127\.0\.0\.1:(\d+)", line)
        if listening is None:
            server.kill()
            raise SystemExit(f"the board's server did not start: {line}")
        try:
            yield int(listening[1])
        finally:
            server.terminate()


if __name__ == "__main__":
    sys.exit(main())
