"""Tune a matrix product: a template, its space, a search, the fastest schedule compiled.

usage: python examples/tune_matmul.py [--size 512] [--trials 64] [--log matmul.log]

The classic tutorial as one script: the template stands in the script itself, and no
``if __name__ == "__main__"`` is needed for the processes that build and measure.
"""

from __future__ import annotations

import argparse

import numpy as np

import tvm
from tvm import autotvm, te

parser = argparse.ArgumentParser(description="Tune a matrix product.")
parser.add_argument("--size", type=int, default=512)
parser.add_argument("--trials", type=int, default=64)
parser.add_argument("--target", default="llvm -mcpu=native")
parser.add_argument("--log", default="matmul.log")
args = parser.parse_args()


@autotvm.template("examples/matmul")
def matmul(N, L, M, dtype):
    A = te.placeholder((N, L), name="A", dtype=dtype)
    B = te.placeholder((L, M), name="B", dtype=dtype)
    k = te.reduce_axis((0, L), name="k")
    C = te.compute((N, M), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    s = te.create_schedule(C.op)
    y, x = s[C].op.axis
    (k,) = s[C].op.reduce_axis

    # what can be chosen: how the axes are split, and whether rows are vectors
    cfg = autotvm.get_config()
    cfg.define_split("tile_y", y, num_outputs=2)
    cfg.define_split("tile_x", x, num_outputs=2)
    cfg.define_knob("vectorize", [True, False])

    # what becomes of a choice
    yo, yi = cfg["tile_y"].apply(s, C, y)
    xo, xi = cfg["tile_x"].apply(s, C, x)
    s[C].reorder(yo, xo, k, yi, xi)
    if cfg["vectorize"].val:
        s[C].vectorize(xi)
    return s, [A, B, C]


shape = (args.size, args.size, args.size, "float32")
task = autotvm.task.create("examples/matmul", args=shape, target=args.target)
print(task.config_space)

try:
    tuner = autotvm.tuner.XGBTuner(task, feature_type="knob")
except tvm.TVMError as error:  # without the package xgboost
    print(f"{error}\na genetic search instead")
    tuner = autotvm.tuner.GATuner(task)

tuner.tune(
    n_trial=args.trials,
    measure_option=autotvm.measure_option(
        builder=autotvm.LocalBuilder(timeout=60),
        runner=autotvm.LocalRunner(number=4, repeat=3, min_repeat_ms=20, timeout=60),
    ),
    callbacks=[autotvm.callback.progress_bar(args.trials), autotvm.callback.log_to_file(args.log)],
)

# the fastest record decides wherever the template is called
with autotvm.apply_history_best(args.log), tvm.target.Target(args.target):
    s, tensors = matmul(*shape)
    func = tvm.build(s, tensors)

a, b = [np.random.rand(args.size, args.size).astype("float32") for _ in range(2)]
c = tvm.nd.empty((args.size, args.size))
func(tvm.nd.array(a), tvm.nd.array(b), c)
np.testing.assert_allclose(c.numpy(), a @ b, rtol=1e-4)
print("best configuration:", tuner.best_config)
print(f"{tuner.best_flops / 1e9:.2f} GFLOPS, the results agree with numpy")
