"""
Coming from classic tvmc
========================

``tvmc`` and ``tvm.driver.tvmc`` are those of the classic release, with the same words. This is its tutorial,
load, compile, run, from Python, and what is new in the commands.
"""

import tempfile
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tvm.driver import tvmc

rng = np.random.default_rng(0)
graph = helper.make_graph(
    [
        helper.make_node("Gemm", ["x", "weight", "bias"], ["dense"]),
        helper.make_node("Tanh", ["dense"], ["y"]),
    ],
    "layer",
    [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 8])],
    [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 4])],
    [
        numpy_helper.from_array(rng.normal(size=(8, 4)).astype("float32"), "weight"),
        numpy_helper.from_array(rng.normal(size=4).astype("float32"), "bias"),
    ],
)
folder = Path(tempfile.mkdtemp())
model_path, package_path = str(folder / "layer.onnx"), str(folder / "layer.tar")
onnx.save(
    helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), model_path
)

# %%
# Load
# ----
# The format is told by the suffix: ``.onnx``, ``.pt``, ``.pth``, ``.pt2`` of PyTorch, ``.relay``.

model = tvmc.load(model_path)
model.summary()

# %%
# Compile
# -------
# The package is the archive of the classic release: a library, a graph, parameters. The name ``layer.so`` in place
# of ``layer.tar`` gives one library instead, which C++ programs load, too.

package = tvmc.compile(model, target="llvm -mcpu=native", package_path=package_path)

# %%
# Run
# ---
# Inputs that are not given are filled as ``fill_mode`` says.

x = rng.normal(size=(2, 8)).astype("float32")
result = tvmc.run(package, device="cpu", inputs={"x": x}, benchmark=True, repeat=3, number=5)
print(result.get_output("output_0").shape)
print(result)

# %%
# The commands
# ------------
#
# ======================================================  ===================================================
# command                                                 what is new since the classic release
# ======================================================  ===================================================
# ``tvmc compile layer.onnx --target llvm -o layer.so``   one library; a model of open shapes goes to the
#                                                         virtual machine by itself
# ``tvmc run layer.so --inputs in.npz --print-time``      inputs that are missing are an error
# ``tvmc tune layer.onnx --target llvm -o records.log``   goes on where it was stopped; ``--dask`` measures on
#                                                         a fleet; ``--report`` writes a page
# ``tvmc verify layer.onnx``                              compares every tensor with ONNX Runtime
# ======================================================  ===================================================
#
# Nothing has to be tuned: a cost model chooses the tiles. ``tvmc tune`` measures instead:
# :doc:`c3_tuning_here`.
