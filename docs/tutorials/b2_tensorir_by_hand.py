"""
TensorIR by hand
================

A loop program written as text, scheduled step by step with ``tvm.tir.Schedule``. Each step is checked: one
that would change the result is an error, which says why.
"""

import numpy as np

import tvm
from tvm import tir
from tvm.script import tir as T

# %%
# A program
# ---------
# A block computes one element; the loops around it say in which order. The script is parsed, not run.


@T.prim_func
def matmul(a: T.handle, b: T.handle, c: T.handle):
    A = T.match_buffer(a, (128, 128), "float32")
    B = T.match_buffer(b, (128, 128), "float32")
    C = T.match_buffer(c, (128, 128), "float32")
    for i, j, k in T.grid(128, 128, 128):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]


# %%
# Schedule it
# -----------
# Blocks and loops are found by name and changed one primitive at a time.

schedule = tir.Schedule(matmul)
block = schedule.get_block("C")
i, j, k = schedule.get_loops(block)
i_outer, i_inner = schedule.split(i, factors=[None, 4])
j_outer, j_inner = schedule.split(j, factors=[None, 16])
schedule.reorder(i_outer, j_outer, k, i_inner, j_inner)
schedule.parallel(i_outer)
schedule.unroll(i_inner)
schedule.vectorize(j_inner)
init = schedule.decompose_reduction(block, k)
schedule.vectorize(schedule.get_loops(init)[-1])
print(schedule.mod["main"].script())

# %%
# What is not allowed
# -------------------
# Two iterations of a reduction write the same element, so they cannot run at the same time.

try:
    schedule.parallel(k)
except tvm.tir.ScheduleError as error:
    print(error)

# %%
# Steps as data
# -------------
# A schedule keeps its steps, to be shown, saved, or applied to the program again.

print(schedule.trace)
again = tir.Schedule(matmul)
schedule.trace.apply_to_schedule(again, remove_postproc=False)
assert tvm.ir.structural_equal(again.mod, schedule.mod)

# %%
# Build and run
# -------------

function = tvm.build(schedule.mod, target="llvm -mcpu=native")
rng = np.random.default_rng(0)
a, b = [rng.normal(size=(128, 128)).astype("float32") for _ in range(2)]
c = np.zeros((128, 128), "float32")
function(a, b, c)
np.testing.assert_allclose(c, a @ b, rtol=1e-4, atol=1e-4)
