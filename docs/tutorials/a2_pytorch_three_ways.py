"""
PyTorch, three ways
===================

``torch.compile`` keeps the model a PyTorch module and compiles behind it. ``relay.frontend`` imports what
``torch.jit.trace`` recorded, and the result needs no PyTorch. ``relax.frontend`` imports what
``torch.export`` recorded, with sizes that stay symbolic.

======================  ====================  ======================  =================================
way                     training              the result needs        sizes
======================  ====================  ======================  =================================
``torch.compile``       yes                   PyTorch                 compiled anew, or left open
``from_pytorch``        no                    the runtime             fixed
``torch.export``        no                    the runtime             fixed, or symbolic
======================  ====================  ======================  =================================
"""

import numpy as np
import torch
from torch import nn

import tvm
from tvm import relax, relay
from tvm.contrib import graph_executor
from tvm.relax.frontend.torch import from_exported_program

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 4)).eval()
x = torch.randn(5, 8)
with torch.no_grad():
    expected = model(x).numpy()

# %%
# torch.compile
# -------------
# The back end has the names ``classic_tvm`` and ``pytvm``. Inference belongs under ``torch.no_grad()``:
# elsewhere everything that gradients need is kept.

compiled = torch.compile(model, backend="classic_tvm")
with torch.no_grad():
    np.testing.assert_allclose(compiled(x).numpy(), expected, rtol=1e-4, atol=1e-5)

# %%
# Training works the same way: forward and backward are compiled. The page :doc:`/torch_compile` has the
# options.

loss = compiled(x).square().mean()
loss.backward()
print("loss", round(loss.item(), 4), "gradient", tuple(model[0].weight.grad.shape))

# %%
# from_pytorch
# ------------
# A traced module, with a name and a shape for each of its inputs. (``torch.jit.trace`` is old and says
# so; ``relay.frontend.from_exported_program`` takes what ``torch.export`` recorded in its place.)

traced = torch.jit.trace(model, x)
mod, params = relay.frontend.from_pytorch(traced, [("x", (5, 8))])
with tvm.transform.PassContext(opt_level=3):
    lib = relay.build(mod, target="llvm -mcpu=native", params=params)
module = graph_executor.GraphModule(lib["default"](tvm.cpu()))
module.run(x=x.numpy())
np.testing.assert_allclose(module.get_output(0).numpy(), expected, rtol=1e-4, atol=1e-5)

# %%
# torch.export
# ------------
# Sizes that ``dynamic_shapes`` leaves open are symbolic variables of the program: it is compiled once for all
# of them.

rows = torch.export.Dim("rows", min=1, max=1024)
exported = torch.export.export(model, (x,), dynamic_shapes=({0: rows},))
program = from_exported_program(exported, unwrap_unit_return_tuple=True)
print(program["main"].struct_info)

# %%
# The virtual machine of relax runs it.

machine = relax.VirtualMachine(relax.build(program, target="llvm -mcpu=native"), tvm.cpu())
for count in (5, 17):
    batch = torch.randn(count, 8)
    with torch.no_grad():
        wanted = model(batch).numpy()
    found = machine["main"](tvm.nd.array(batch.numpy())).numpy()
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)
    print(found.shape)
