"""
Open shapes
===========

A dimension that only the run knows, a batch or the length of a sentence, stays open: one program serves all sizes.
The virtual machine runs it.
"""

import numpy as np
from onnx import TensorProto, helper, numpy_helper

import tvm
from tvm import relay
from tvm.runtime.vm import VirtualMachine

# %%
# In relay
# --------
# ``relay.Any()`` is an extent that is not known.

rng = np.random.default_rng(0)
weight = rng.normal(size=(3, 4)).astype("float32")
data = relay.var("data", shape=(relay.Any(), 4))
mod = tvm.IRModule.from_expr(relay.Function([data], relay.nn.dense(data, relay.const(weight))))
machine = VirtualMachine(relay.vm.compile(mod, target="llvm -mcpu=native"), tvm.cpu())
for rows in (1, 5, 64):
    x = rng.normal(size=(rows, 4)).astype("float32")
    np.testing.assert_allclose(machine.run(x).numpy(), x @ weight.T, rtol=1e-4, atol=1e-5)
print(relay.transform.InferType()(mod))

# %%
# In ONNX
# -------
# Dimensions that the model names are open, and the same name is the same extent in all inputs.

graph = helper.make_graph(
    [
        helper.make_node("MatMul", ["tokens", "weight"], ["product"]),
        helper.make_node("ReduceMean", ["product"], ["mean"], axes=[0], keepdims=0),
    ],
    "sentence",
    [helper.make_tensor_value_info("tokens", TensorProto.FLOAT, ["length", 8])],
    [helper.make_tensor_value_info("mean", TensorProto.FLOAT, [6])],
    [numpy_helper.from_array(rng.normal(size=(8, 6)).astype("float32"), "weight")],
)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
mod, params = relay.frontend.from_onnx(model)
print(mod["main"].params[0].type_annotation)

# %%
# The graph executor cannot run it, and says who can:

try:
    relay.build(mod, "llvm -mcpu=native", params=params)
except tvm.TVMError as error:
    print(error)

# %%
# So it is compiled for the virtual machine. ``tvmc compile`` does so by itself.

executable = relay.vm.compile(mod, target="llvm -mcpu=native", params=params)
machine = VirtualMachine(executable, tvm.cpu())
for length in (2, 11):
    print(length, machine.run(rng.normal(size=(length, 8)).astype("float32")).shape)

# %%
# Fixed after all
# ---------------
# A size that is known is faster: constants are folded, and tiles are chosen for it.

mod, params = relay.frontend.from_onnx(model, {"tokens": (16, 8)})
lib = relay.build(mod, "llvm -mcpu=native", params=params)
print(mod["main"].params[0].type_annotation)

# %%
# In te
# -----
# A variable as an extent; the function takes it from the array's shape.

n = tvm.te.var("n")
A = tvm.te.placeholder((n,), name="A")
B = tvm.te.compute((n,), lambda i: A[i] * 2.0, name="B")
double = tvm.build(tvm.te.create_schedule(B.op), [A, B], target="llvm -mcpu=native")
for size in (3, 1000):
    a, b = np.ones(size, "float32"), np.zeros(size, "float32")
    double(a, b)
    assert (b == 2).all()
