"""
Wrong numbers
=============

A compiled model gives other numbers than it should: which tensor is the first, and who is to blame?
``tvm.verify`` and ``tvmc verify`` compare every tensor of an ONNX model with a reference, cut out the nodes
that show the difference, and search the passes for the one that brought it in.
"""

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from tvm import relay
from tvm.verify import verify

rng = np.random.default_rng(0)
weights = {
    "filters": rng.normal(size=(4, 3, 3, 3)).astype("float32"),
    "classes": rng.normal(size=(4, 5)).astype("float32"),
}
graph = helper.make_graph(
    [
        helper.make_node("Conv", ["image", "filters"], ["conv"], name="first", pads=[1, 1, 1, 1]),
        helper.make_node("Sigmoid", ["conv"], ["gate"], name="gate"),
        helper.make_node("GlobalAveragePool", ["gate"], ["mean"], name="pool"),
        helper.make_node("Flatten", ["mean"], ["flat"], name="flat"),
        helper.make_node("MatMul", ["flat", "classes"], ["scores"], name="head"),
    ],
    "classifier",
    [helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 3, 8, 8])],
    [helper.make_tensor_value_info("scores", TensorProto.FLOAT, [1, 5])],
    [numpy_helper.from_array(value, name) for name, value in weights.items()],
)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)

# %%
# All is well
# -----------
# Against ONNX Runtime, ONNX's own reference, or our own code without optimisation (``"opt0"``).

report = verify(model, against="reference")
print(report)

# %%
# A pass that is wrong
# --------------------
# This one takes ``tanh`` for ``sigmoid``. Passes of yours are given to ``verify``, run after the import, and are
# blamed as any other.


class TanhForSigmoid(relay.ExprMutator):
    def visit_call(self, call):
        call = super().visit_call(call)
        return relay.tanh(call.args[0]) if call.op == relay.op.get("sigmoid") else call


@relay.transform.function_pass(opt_level=0, name="TanhForSigmoid")
def tanh_for_sigmoid(function, mod, context):
    return TanhForSigmoid().visit(function)


report = verify(model, against="reference", passes=[tanh_for_sigmoid])
print(report)

# %%
# The same from the shell
# -----------------------
#
# .. code-block:: console
#
#    $ tvmc verify model.onnx --against onnxruntime
#    $ tvmc verify model.onnx --against opt0 --inputs image.npz --rtol 1e-4
#
# The status is 0 if all agree and 2 if not.
