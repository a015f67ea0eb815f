"""
Slow models
===========

Where does the time go? A profile by kernel, what each of them is made of, and how far it is from what the machine
can do.
"""

import numpy as np

import tvm
from tvm import relay
from tvm.contrib.debugger import debug_executor

rng = np.random.default_rng(0)
image = relay.var("image", shape=(1, 16, 32, 32))
filters = relay.const(rng.normal(size=(32, 16, 3, 3)).astype("float32"))
classes = relay.const(rng.normal(size=(10, 32)).astype("float32"))
features = relay.nn.relu(relay.nn.conv2d(image, filters, padding=1, kernel_size=3, channels=32))
scores = relay.nn.dense(relay.nn.batch_flatten(relay.nn.global_avg_pool2d(features)), classes)
mod = tvm.IRModule.from_expr(relay.Function([image], relay.nn.softmax(scores)))
with tvm.transform.PassContext(opt_level=3):
    lib = relay.build(mod, target="llvm -mcpu=native")

# %%
# Kernel by kernel
# ----------------
# The debugging executor runs one kernel at a time and keeps all tensors.

values = rng.normal(size=(1, 16, 32, 32)).astype("float32")
debug = debug_executor.create(lib.get_graph_json(), lib.get_lib(), tvm.cpu())
debug.set_input(**lib.get_params())
profile = debug.profile(image=values)
print(profile.table(aggregate=True, col_sums=True))

# %%
# As data
# -------

calls = sorted(profile.calls, key=lambda call: -call["Duration (us)"].microseconds)
for call in calls[:3]:
    print(f"{call['Duration (us)'].microseconds:8.1f} us  {call['Name']}")

# %%
# What a kernel is made of
# ------------------------
# The assembly of the whole library; ``get_source("ll")`` is LLVM's text. ``TVM_DUMP_IR=folder`` writes the program
# after each pass that changed it, ``TVM_VERBOSE=1`` names the tiles of each kernel.

assembly = lib.get_lib().get_source("asm")
print(sum("vfmadd" in line or "fmla" in line for line in assembly.splitlines()), "multiply-adds")

# %%
# What to look at
# ---------------
#
# ================================================  ===================================================
# what one sees                                     what helps
# ================================================  ===================================================
# many ``layout_transform``                         an operator between convolutions without a rule for
#                                                   layouts: see the column of :doc:`/ops`
# operators that are kernels of their own           why they do not fuse: their pattern in :doc:`/ops`
# a kernel far from the roof                        ``tvmc explain``: :doc:`/explain`; ``tvmc tune``
# quantised operators in float32                    ``relay.transform.precision_report``:
#                                                   :doc:`d2_int8_and_bfloat16`
# the first run is slow, or runs differ             ``module.benchmark(device, repeat=10)`` for the spread
# ================================================  ===================================================
