"""Whether an installed package works, as a user meets it: headers, a model compiled, saved, loaded, and tvmc.

usage: python -I tools/check_installation.py    (-I: the installed package, not the one in this folder)
"""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

import numpy as np

import tvm
from tvm import relay
from tvm._ffi import libinfo
from tvm.contrib import graph_executor
from tvm.error import DISTRIBUTION


def main() -> None:
    """Check it part by part; the first that fails ends the program with its error."""
    package = Path(tvm.__file__).parent
    installed = importlib.metadata.version(DISTRIBUTION)
    assert installed == tvm.__version__, f"{DISTRIBUTION} is {installed}, tvm {tvm.__version__}"
    assert (package / "py.typed").is_file()
    (headers,) = libinfo.find_include_path()
    assert (Path(headers) / "tvm" / "runtime" / "c_runtime_api.h").is_file()
    with tempfile.TemporaryDirectory() as folder:
        check_model(Path(folder))
        check_command_line(Path(folder))
    print(f"{DISTRIBUTION} {installed} works: Python {sys.version.split()[0]}, {package}")


def network() -> tvm.IRModule:
    """A convolution, its activation and a dense layer."""
    data = relay.var("data", shape=(1, 3, 16, 16))
    weight = relay.const(np.linspace(-1, 1, 8 * 3 * 9, dtype="float32").reshape(8, 3, 3, 3))
    conv = relay.nn.relu(relay.nn.conv2d(data, weight, padding=1, channels=8, kernel_size=3))
    flat = relay.nn.batch_flatten(relay.nn.global_avg_pool2d(conv))
    dense = relay.const(np.linspace(0, 1, 4 * 8, dtype="float32").reshape(4, 8))
    return tvm.IRModule.from_expr(relay.nn.dense(flat, dense))


def check_model(folder: Path) -> None:
    """A saved library computes what the program means."""
    mod, data = network(), np.random.rand(1, 3, 16, 16).astype("float32")
    with tvm.transform.PassContext(opt_level=3):
        relay.build(mod, target="llvm -mcpu=native").export_library(str(folder / "model.so"))
    loaded = tvm.runtime.load_module(str(folder / "model.so"))
    module = graph_executor.GraphModule(loaded["default"](tvm.cpu()))
    module.run(data=data)
    with tvm.transform.PassContext(opt_level=0):
        plain = graph_executor.GraphModule(relay.build(mod, target="llvm")["default"](tvm.cpu()))
    plain.run(data=data)
    np.testing.assert_allclose(
        module.get_output(0).numpy(), plain.get_output(0).numpy(), rtol=1e-4, atol=1e-5
    )


def check_command_line(folder: Path) -> None:
    """The program tvmc compiles and runs the model."""
    tvmc = Path(sysconfig.get_path("scripts")) / "tvmc"
    (folder / "model.relay").write_text(network().astext())
    np.savez(folder / "in.npz", data=np.ones((1, 3, 16, 16), "float32"))
    for command in (
        ["compile", "model.relay", "--target", "llvm", "-o", "model.tar"],
        ["run", "model.tar", "--inputs", "in.npz", "-o", "out.npz"],
    ):
        subprocess.run([tvmc, *command], cwd=folder, check=True)
    assert np.load(folder / "out.npz")["output_0"].shape == (1, 4)


if __name__ == "__main__":
    main()
