"""
An ONNX model in five minutes
=============================

From an ONNX model to a library that runs without the compiler: import, build, run, compare, save,
load, measure. The model is made here, so that nothing has to be downloaded; put
``onnx.load("yours.onnx")`` in its place.
"""

import tempfile
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import tvm
from tvm import relay
from tvm.contrib import graph_executor

# %%
# A model
# -------
# A small image classifier: a convolution, a ReLU, the mean of each channel, and a dense layer.

rng = np.random.default_rng(0)
weights = {
    "filters": rng.normal(size=(16, 3, 3, 3)).astype("float32"),
    "classes": rng.normal(size=(16, 10)).astype("float32"),
}
nodes = [
    helper.make_node("Conv", ["image", "filters"], ["conv"], pads=[1, 1, 1, 1]),
    helper.make_node("Relu", ["conv"], ["relu"]),
    helper.make_node("GlobalAveragePool", ["relu"], ["mean"]),
    helper.make_node("Flatten", ["mean"], ["features"]),
    helper.make_node("MatMul", ["features", "classes"], ["scores"]),
]
graph = helper.make_graph(
    nodes,
    "classifier",
    [helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 3, 64, 64])],
    [helper.make_tensor_value_info("scores", TensorProto.FLOAT, [1, 10])],
    [numpy_helper.from_array(value, name) for name, value in weights.items()],
)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
onnx.checker.check_model(model)

# %%
# Import
# ------
# ``from_onnx`` gives a module, whose function ``main`` is the model. Its weights are constants of that
# function; with ``freeze_params=False`` they are parameters, and ``params`` has their values. Shapes
# come from the model; for one whose inputs have open dimensions give them here, as
# ``{"image": (1, 3, 64, 64)}``, or leave them open: :doc:`d1_open_shapes`.

mod, params = relay.frontend.from_onnx(model)
print(mod)

# %%
# Build
# -----
# ``llvm -mcpu=native`` is the processor of this machine. For others name them, as in
# ``llvm -mcpu=x86-64-v3`` or ``llvm -mtriple=aarch64-linux-gnu``. Level 3 has all optimisations.

with tvm.transform.PassContext(opt_level=3):
    lib = relay.build(mod, target="llvm -mcpu=native", params=params)

# %%
# Run
# ---
# Inputs and outputs have the names that the model gave them.

image = rng.normal(size=(1, 3, 64, 64)).astype("float32")
module = graph_executor.GraphModule(lib["default"](tvm.cpu()))
module.run(image=image)
scores = module.get_output("scores").numpy()
print(scores.round(2))

# %%
# Compare
# -------
# The package onnx has a reference of its own, which is slow and simple. For a model of yours,
# ``tvmc verify model.onnx --against onnxruntime`` compares every tensor: :doc:`c1_wrong_numbers`.

(expected,) = ReferenceEvaluator(model).run(None, {"image": image})
np.testing.assert_allclose(scores, expected, rtol=1e-4, atol=1e-4)

# %%
# Save and load
# -------------
# One file holds code, graph and weights. Loading it takes the runtime alone; C++ programs load the same
# file, see :doc:`e1_cpp_c_and_microcontrollers`.

path = Path(tempfile.mkdtemp()) / "classifier.so"
lib.export_library(path)
loaded = graph_executor.GraphModule(tvm.runtime.load_module(path)["default"](tvm.cpu()))
loaded.run(image=image)
assert np.array_equal(loaded.get_output(0).numpy(), scores)
print(f"{path.name}: {path.stat().st_size / 1024:.0f} KiB")

# %%
# Measure
# -------
# Mean, median and spread of the run time, on this machine at this moment.

print(loaded.benchmark(tvm.cpu(), number=10, repeat=5))

# %%
# The same from the shell
# -----------------------
#
# .. code-block:: console
#
#    $ tvmc compile model.onnx --target "llvm -mcpu=native" -o model.so
#    $ tvmc run model.so --inputs in.npz --print-time
