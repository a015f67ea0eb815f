"""
GPUs: OpenCL and CUDA
=====================

A schedule binds loops to blocks and threads; the code is text in OpenCL C or CUDA C++. A program is built without
a device, so that its text can be read anywhere.
"""

import numpy as np

import tvm
from tvm import relay, te

# %%
# Bind loops to threads
# ---------------------

n = 1024
A, B = [te.placeholder((n,), name=name) for name in "AB"]
C = te.compute((n,), lambda i: A[i] + B[i], name="C")
schedule = te.create_schedule(C.op)
block, thread = schedule[C].split(C.op.axis[0], factor=64)
schedule[C].bind(block, te.thread_axis("blockIdx.x"))
schedule[C].bind(thread, te.thread_axis("threadIdx.x"))

# %%
# OpenCL
# ------

opencl = tvm.build(schedule, [A, B, C], target="opencl", name="add")
print(opencl.imported_modules[0].get_source())

# %%
# CUDA
# ----
# ``-arch`` names the oldest device that the code is for. The text becomes PTX when the module is built, if there is NVRTC or
# nvcc; otherwise the module holds the text and says so when it is first launched.

cuda = tvm.build(schedule, [A, B, C], target="cuda -arch=sm_80", name="add")
print(cuda.imported_modules[0].get_source("cu"))

# %%
# Run it
# ------
# Where there is a device. Without one ``exist`` is False, and the first array on it is an error that says what is missing.

device = tvm.opencl(0)
if device.exist:
    rng = np.random.default_rng(0)
    a, b = [tvm.nd.array(rng.normal(size=n).astype("float32"), device) for _ in range(2)]
    c = tvm.nd.empty((n,), device=device)
    opencl(a, b, c)
    np.testing.assert_allclose(c.numpy(), a.numpy() + b.numpy())
    print("ran on", device.device_name)

# %%
# Models
# ------
# Schedules are chosen by a cost model, as for processors. The library carries the text of all kernels.

x = relay.var("x", shape=(4, 64))
weight = relay.const(np.ones((32, 64), "float32"))
mod = tvm.IRModule.from_expr(relay.Function([x], relay.nn.relu(relay.nn.dense(x, weight))))
lib = relay.build(mod, target=tvm.target.Target("opencl", host="llvm"))
kernels = lib.get_lib().imported_modules[0].get_source()
print("\n".join(line for line in kernels.splitlines() if "__kernel" in line))

# %%
# :doc:`/gpu` says what is tested, on what, and what is not there.
