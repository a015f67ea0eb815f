"""
Your own operator
=================

An operator of relay is a record whose parts are registered from Python: its type, what it computes, how it
fuses, its gradient. No file of the package changes. :doc:`/add_operator` has the table of all parts.
"""

import numpy as np

import tvm
from tvm import relay, topi

# %%
# Name and type
# -------------
# The result of ``tutorial.softshrink`` has the type of its argument.

relay.op.register("tutorial.softshrink", "x, moved towards zero by a half")
softshrink = relay.op.get("tutorial.softshrink")
softshrink.set_num_inputs(1)
softshrink.add_type_rel("Softshrink", lambda arg_types, attrs: arg_types[0])

# %%
# What it computes
# ----------------
# Tensors of ``te`` in, tensors of ``te`` out. An injective operator computes each element of its result from
# at most one of each argument; an element-wise one fuses with its neighbours.


@relay.op.register_compute("tutorial.softshrink")
def compute(attrs, inputs, out_type):
    (x,) = inputs
    return [topi.sign(x) * topi.maximum(topi.abs(x) - 0.5, tvm.tir.const(0.0, x.dtype))]


relay.op.register_injective_schedule("tutorial.softshrink")
relay.op.register_pattern("tutorial.softshrink", relay.op.OpPattern.ELEMWISE)

# %%
# Its gradient
# ------------
# One where the argument is beyond the half on either side, zero between.


@relay.op.register_gradient("tutorial.softshrink")
def gradient(call, grad):
    (x,) = call.args
    moved = relay.greater(relay.abs(x), relay.const(0.5))
    return [relay.where(moved, grad, relay.zeros_like(grad))]


# %%
# Use it
# ------

x = relay.var("x", shape=(6,))
function = relay.Function([x], relay.nn.relu(relay.Call(softshrink, [x])))
values = np.array([-2, -0.4, 0, 0.4, 0.6, 3], "float32")
print(relay.create_executor("graph", target="llvm").evaluate(function)(values))

# %%
# One kernel computes both operators.

lib = relay.build(tvm.IRModule.from_expr(function), target="llvm")
print(list(lib.function_metadata))

# %%
# And the gradient:

mod = tvm.IRModule.from_expr(relay.Function([x], relay.Call(softshrink, [x])))
mod = relay.transform.InferType()(mod)
backward = relay.transform.gradient(mod["main"], mode="first_order")
_, (slope,) = relay.create_executor("graph", target="llvm").evaluate(backward)(values)
print(slope)
np.testing.assert_array_equal(slope.numpy(), np.abs(values) > 0.5)
