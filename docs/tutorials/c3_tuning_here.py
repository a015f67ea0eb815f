"""
Tuning here
===========

Nothing has to be tuned: a cost model chooses the tiles. A tuner measures instead. It is worth its time for kernels of
your own, which have no schedule yet. Here is one of each kind: a template with AutoTVM, and no template with the
auto-scheduler. The number of trials is small, so that this page is built quickly.
"""

import tempfile
from pathlib import Path

import numpy as np

import tvm
from tvm import auto_scheduler, autotvm, te

TARGET = tvm.target.Target("llvm -mcpu=native")
folder = Path(tempfile.mkdtemp())
n = 128

# %%
# A template
# ----------
# It returns a schedule, and asks for what can be chosen in it.


@autotvm.template("tutorial/matmul")
def matmul(n):
    A, B = [te.placeholder((n, n), name=name) for name in "AB"]
    k = te.reduce_axis((0, n), name="k")
    C = te.compute((n, n), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    schedule = te.create_schedule(C.op)
    rows, columns = C.op.axis

    config = autotvm.get_config()
    config.define_split("rows", rows, num_outputs=2)
    config.define_split("columns", columns, num_outputs=2, filter=lambda s: s.size[-1] >= 8)

    row_outer, row_inner = config["rows"].apply(schedule, C, rows)
    column_outer, column_inner = config["columns"].apply(schedule, C, columns)
    schedule[C].reorder(row_outer, column_outer, k, row_inner, column_inner)
    schedule[C].vectorize(column_inner)
    return schedule, [A, B, C]


task = autotvm.task.create("tutorial/matmul", args=(n,), target=TARGET)
print(task.config_space)

# %%
# A search
# --------
# Candidates are built and run in processes of their own, which may hang or crash.

log = str(folder / "matmul.log")
tuner = autotvm.tuner.GATuner(task, pop_size=4)
tuner.tune(
    n_trial=4,
    measure_option=autotvm.measure_option(
        builder=autotvm.LocalBuilder(timeout=60),
        runner=autotvm.LocalRunner(number=2, repeat=1, min_repeat_ms=0, timeout=60),
    ),
    callbacks=[autotvm.callback.log_to_file(log)],
)
print(f"best of 4: {tuner.best_flops / 1e9:.1f} GFLOP/s with {tuner.best_config}")

# %%
# The fastest record decides wherever the template is called inside ``apply_history_best``.

with autotvm.apply_history_best(log), TARGET:
    schedule, tensors = matmul(n)
    function = tvm.build(schedule, tensors)
rng = np.random.default_rng(0)
a, b = [rng.normal(size=(n, n)).astype("float32") for _ in range(2)]
c = np.zeros((n, n), "float32")
function(a, b, c)
np.testing.assert_allclose(c, a @ b, rtol=1e-3, atol=1e-3)

# %%
# Without a template
# ------------------
# The auto-scheduler takes the formula and searches the loops themselves.


@auto_scheduler.register_workload
def scaled_product(n):
    A, B = [te.placeholder((n, n), name=name) for name in "AB"]
    k = te.reduce_axis((0, n), name="k")
    C = te.compute((n, n), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    return [A, B, te.compute((n, n), lambda i, j: C[i, j] * 0.5, name="D")]


search = auto_scheduler.SearchTask(func=scaled_product, args=(n,), target=TARGET)
records = str(folder / "scaled_product.json")
search.tune(
    auto_scheduler.TuningOptions(
        num_measure_trials=4, verbose=0, measure_callbacks=[auto_scheduler.RecordToFile(records)]
    )
)
schedule, tensors = search.apply_best(records)
function = tvm.build(schedule, tensors, TARGET)
function(a, b, c)
np.testing.assert_allclose(c, 0.5 * (a @ b), rtol=1e-3, atol=1e-3)
print(search.print_best(records))

# %%
# Models
# ------
#
# .. code-block:: console
#
#    $ tvmc tune model.onnx --target "llvm -mcpu=native" -o records.log --report report.html
#    $ tvmc compile model.onnx --target "llvm -mcpu=native" --tuning-records records.log -o model.so
#
# The page :doc:`/tuning` says when it pays and how long it takes.
