"""
te to assembly
==============

A matrix product from its formula to the instructions of the processor: compute, schedule, loops, LLVM,
assembly. ``docs/tour.py`` (:doc:`/tour`) walks the same way with every pass in between.
"""

import numpy as np

import tvm
from tvm import te

# %%
# What is computed
# ----------------

n = 64
A, B = [te.placeholder((n, n), name=name) for name in "AB"]
k = te.reduce_axis((0, n), name="k")
C = te.compute((n, n), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")

# %%
# How it is computed
# ------------------
# A schedule that nobody has touched is the naive loop nest.

schedule = te.create_schedule(C.op)
print(tvm.lower(schedule, [A, B, C], simple_mode=True))

# %%
# Tiles of 4 x 16: four rows share what is read of ``B``, and sixteen columns are vectors. No primitive
# changes what is computed.

rows, columns = C.op.axis
(depth,) = C.op.reduce_axis
row_outer, row_inner = schedule[C].split(rows, factor=4)
column_outer, column_inner = schedule[C].split(columns, factor=16)
schedule[C].reorder(row_outer, column_outer, depth, row_inner, column_inner)
schedule[C].unroll(row_inner)
schedule[C].vectorize(column_inner)
schedule[C].parallel(row_outer)
print(tvm.lower(schedule, [A, B, C], simple_mode=True))

# %%
# Code
# ----
# ``build`` gives a module; its functions take arrays of the package, of numpy, and all that has DLPack.

library = tvm.build(schedule, [A, B, C], target="llvm -mcpu=x86-64-v3", name="matmul")
print("\n".join(library.get_source("ll").splitlines()[:12]))

# %%
# The multiplications in the assembly, each of eight numbers:

assembly = library.get_source("asm")
fused = [line.strip() for line in assembly.splitlines() if "vfmadd" in line]
print(len(fused), "fused multiply-adds, such as", *fused[:3], sep="\n  ")

# %%
# Numbers
# -------
# The library is made for a processor with AVX2; to run it, build for the one that is here.

matmul = tvm.build(schedule, [A, B, C], target="llvm -mcpu=native", name="matmul")
rng = np.random.default_rng(0)
a, b = [rng.normal(size=(n, n)).astype("float32") for _ in range(2)]
c = np.zeros((n, n), "float32")
matmul(a, b, c)
np.testing.assert_allclose(c, a @ b, rtol=1e-4, atol=1e-4)

# %%
# Time, beside the naive schedule's:

naive = tvm.build(te.create_schedule(C.op), [A, B, C], target="llvm -mcpu=native", name="matmul")
arrays = [tvm.nd.array(value) for value in (a, b, c)]
for name, module in (("naive", naive), ("tiled", matmul)):
    seconds = module.time_evaluator("matmul", tvm.cpu(), number=20, repeat=3)(*arrays).min
    print(f"{name}: {2 * n**3 / seconds / 1e9:.1f} GFLOP/s")
