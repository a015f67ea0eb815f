"""
Your own code generator
=======================

Another compiler, a library or an accelerator takes the parts of a model that it can do; this compiler keeps
the rest. Here the other compiler writes C for sums of tensors. ``examples/byoc/`` has larger ones.
"""

import tempfile
from pathlib import Path

import numpy as np

import tvm
from tvm import relay
from tvm.contrib import graph_executor

# %%
# What it takes
# -------------
# A check for each operator, under ``target.<name of the compiler>``.


def is_plain_sum(call):
    a, b = [argument.checked_type for argument in call.args]
    return a.dtype == b.dtype == "float32" and list(a.shape) == list(b.shape)


tvm.ir.register_op_attr("add", "target.tutorial_c", is_plain_sum)

# %%
# What it makes
# -------------
# ``relay.ext.<name>`` gets a function and returns a module with a packed function of the name ``global_symbol``,
# which takes the inputs and then the outputs.

TEXT = """
#include <tvm/runtime/c_runtime_api.h>
static float* data(TVMValue v) {{
  DLTensor* tensor = (DLTensor*)v.v_handle;
  return (float*)((char*)tensor->data + tensor->byte_offset);
}}
int {symbol}(TVMValue* args, int* codes, int n, TVMValue* ret, int* ret_code, void* resource) {{
  for (int i = 0; i < {size}; ++i) data(args[2])[i] = data(args[0])[i] + data(args[1])[i];
  return 0;
}}
"""


@tvm.register_func("relay.ext.tutorial_c", override=True)
def generate(function):
    (shape,) = {tuple(map(int, param.checked_type.shape)) for param in function.params}
    symbol = function.attrs["global_symbol"]
    text = TEXT.format(symbol=symbol, size=int(np.prod(shape)))
    return tvm.runtime._ffi_api.CSourceModuleCreate(text, "c", [symbol], [])


# %%
# Cut the model
# -------------
# ``AnnotateTarget`` marks what is taken, ``PartitionGraph`` moves each part into a function of its own.

x, y = relay.var("x", shape=(4, 4)), relay.var("y", shape=(4, 4))
mod = tvm.IRModule.from_expr(relay.Function([x, y], relay.exp(x + relay.tanh(y))))
mod = tvm.transform.Sequential(
    [
        relay.transform.InferType(),
        relay.transform.AnnotateTarget("tutorial_c"),
        relay.transform.MergeCompilerRegions(),
        relay.transform.PartitionGraph(),
    ]
)(mod)
print(mod)

# %%
# Build
# -----
# The C text is compiled when the library is exported, and is a part of it from then on.

lib = relay.build(mod, target="llvm -mcpu=native")
path = Path(tempfile.mkdtemp()) / "model.so"
lib.export_library(path)

module = graph_executor.GraphModule(tvm.runtime.load_module(path)["default"](tvm.cpu()))
rng = np.random.default_rng(0)
a, b = [rng.normal(size=(4, 4)).astype("float32") for _ in range(2)]
module.run(x=a, y=b)
np.testing.assert_allclose(module.get_output(0).numpy(), np.exp(a + np.tanh(b)), rtol=1e-5)
