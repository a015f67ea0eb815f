"""
Your own converter
==================

An importer makes relay of each operator of a model. For an operator that it does not know, because it is new
or your own, give it a function that does.
"""

import numpy as np
import torch

import tvm
from tvm import relay
from tvm.contrib import graph_executor

# %%
# A model with an operator of its own
# -----------------------------------


@torch.library.custom_op("tutorial::squared_relu", mutates_args=())
def squared_relu(x: torch.Tensor, limit: float) -> torch.Tensor:
    return x.clamp(0, limit).square()


@squared_relu.register_fake
def _(x, limit):
    return torch.empty_like(x)


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 4)

    def forward(self, x):
        return squared_relu(self.layer(x), 2.0)


torch.manual_seed(0)
model, x = Model().eval(), torch.randn(3, 4)
exported = torch.export.export(model, (x,))

# %%
# What is said without a converter
# --------------------------------
# All operators that are not supported are listed at once.

try:
    relay.frontend.from_exported_program(exported)
except tvm.error.OpNotImplemented as error:
    print(error)

# %%
# A converter
# -----------
# It gets the arguments of the call, tensors as expressions and the others as Python values, and the types of
# them, and returns an expression.


def convert_squared_relu(inputs, input_types):
    x, limit = inputs
    clipped = relay.clip(x, 0.0, limit)
    return clipped * clipped


mod, params = relay.frontend.from_exported_program(
    exported, custom_convert_map={"tutorial::squared_relu": convert_squared_relu}
)
print(mod)

# %%
# Try it
# ------

lib = relay.build(mod, "llvm -mcpu=native", params=params)
module = graph_executor.GraphModule(lib["default"](tvm.cpu()))
module.run(x=x.numpy())
with torch.no_grad():
    np.testing.assert_allclose(module.get_output(0).numpy(), model(x).numpy(), rtol=1e-5, atol=1e-6)

# %%
# Without writing one
# -------------------
# ``fallback=True`` leaves the operator to PyTorch, or to ONNX's reference: the compiled model then needs that
# package where it runs.

mod, params = relay.frontend.from_exported_program(exported, fallback=True)
lib = relay.build(mod, "llvm -mcpu=native", params=params)
module = graph_executor.GraphModule(lib["default"](tvm.cpu()))
module.run(x=x.numpy())
with torch.no_grad():
    np.testing.assert_allclose(module.get_output(0).numpy(), model(x).numpy(), rtol=1e-5, atol=1e-6)
