"""
Coming from ONNX Runtime
========================

The same model in both, and where each option of an ``InferenceSession`` has its place here.
"""

import numpy as np
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

import tvm
from tvm import relay
from tvm.contrib import graph_executor

rng = np.random.default_rng(0)
weight = rng.normal(size=(16, 4)).astype("float32")
graph = helper.make_graph(
    [
        helper.make_node("MatMul", ["features", "weight"], ["product"]),
        helper.make_node("Softmax", ["product"], ["probabilities"], axis=-1),
    ],
    "head",
    [helper.make_tensor_value_info("features", TensorProto.FLOAT, ["batch", 16])],
    [helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, ["batch", 4])],
    [numpy_helper.from_array(weight, "weight")],
)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
features = rng.normal(size=(3, 16)).astype("float32")

# %%
# There
# -----

session = onnxruntime.InferenceSession(
    model.SerializeToString(), providers=["CPUExecutionProvider"]
)
(expected,) = session.run(["probabilities"], {"features": features})

# %%
# Here
# ----
# Compiling is a step of its own, done once: ``export_library`` keeps its result in a file. A session optimises
# the model each time it is made.

mod, params = relay.frontend.from_onnx(model, {"features": (3, 16)})
lib = relay.build(mod, target="llvm -mcpu=native", params=params)
module = graph_executor.GraphModule(lib["default"](tvm.cpu()))
module.run(features=features)
found = module.get_output("probabilities").numpy()
np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)

# %%
# An open batch
# -------------
# A session takes any batch. Here the virtual machine does, for a model whose dimension is left open; a fixed
# one is faster for small models.

mod, params = relay.frontend.from_onnx(model)
machine = tvm.runtime.vm.VirtualMachine(relay.vm.compile(mod, "llvm", params=params), tvm.cpu())
for rows in (1, 7):
    batch = rng.normal(size=(rows, 16)).astype("float32")
    wanted = session.run(None, {"features": batch})[0]
    np.testing.assert_allclose(machine.run(batch).numpy(), wanted, rtol=1e-5, atol=1e-6)
    print(rows, "rows agree")

# %%
# What is where
# -------------
#
# ============================================  ========================================================
# ONNX Runtime                                  here
# ============================================  ========================================================
# ``InferenceSession(path)``                    ``from_onnx``, ``relay.build``, ``GraphModule``; or
#                                               ``tvmc compile``
# ``session.run(names, feeds)``                 ``module.run(**feeds)``, ``module.get_output(name)``
# ``graph_optimization_level``                  ``tvm.transform.PassContext(opt_level=0..3)``
# ``intra_op_num_threads``                      ``TVM_NUM_THREADS``, or
#                                               ``tvm.runtime.config_threadpool``
# ``IOBinding``                                 ``module.set_input_zero_copy``, ``set_output_zero_copy``
# providers                                     the target: ``llvm``, ``opencl``, ``cuda``, ``dnnl, llvm``
# ``enable_profiling``                          ``debug_executor.GraphModuleDebug(...).profile()``
# ``quantize_static``                           its models are imported as they are: :doc:`d2_int8_and_bfloat16`
# custom operators                              :doc:`b3_your_own_operator`, :doc:`b5_your_own_converter`
# operators that are not supported              ``from_onnx(model, fallback=True)`` leaves them to ONNX
# ============================================  ========================================================
#
# Several threads may share one executor, one run at a time; for more, make an executor a thread
# from the same library: :doc:`/promises`.
