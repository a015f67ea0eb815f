"""Programs in the manner of the classic tutorials."""

from __future__ import annotations

import logging
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tvm
from tvm import autotvm, te
from tvm.autotvm.tuner import GATuner, GridSearchTuner, RandomTuner, XGBTuner

from .templates import matmul, matmul_task

SCRIPT = """
import logging
import sys

import numpy as np
import tvm
from tvm import te, testing
from tvm import autotvm


@autotvm.template("tutorial/matmul")
def matmul(N, L, M, dtype):
    A = te.placeholder((N, L), name="A", dtype=dtype)
    B = te.placeholder((L, M), name="B", dtype=dtype)

    k = te.reduce_axis((0, L), name="k")
    C = te.compute((N, M), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    s = te.create_schedule(C.op)

    y, x = s[C].op.axis
    k = s[C].op.reduce_axis[0]

    cfg = autotvm.get_config()
    cfg.define_split("tile_y", y, num_outputs=2)
    cfg.define_split("tile_x", x, num_outputs=2)

    yo, yi = cfg["tile_y"].apply(s, C, y)
    xo, xi = cfg["tile_x"].apply(s, C, x)

    s[C].reorder(yo, xo, k, yi, xi)
    return s, [A, B, C]


N, L, M = 64, 64, 64
task = autotvm.task.create("tutorial/matmul", args=(N, L, M, "float32"), target="llvm")
print(task.config_space)

logging.getLogger("autotvm").setLevel(logging.DEBUG)
logging.getLogger("autotvm").addHandler(logging.StreamHandler(sys.stdout))

measure_option = autotvm.measure_option(
    builder="local", runner=autotvm.LocalRunner(number=2, repeat=1, timeout=60, cooldown_interval=0)
)
measure_option["builder"].timeout = 60

tuner = autotvm.tuner.XGBTuner(task, num_threads=1)
tuner.tune(
    n_trial=6,
    measure_option=measure_option,
    callbacks=[autotvm.callback.log_to_file("matmul.log")],
)

dispatch_context = autotvm.task.ApplyHistoryBest("matmul.log")
best_config = dispatch_context.query(task.target, task.workload)
print("Best config:")
print(best_config)

with autotvm.apply_history_best("matmul.log"):
    with tvm.target.Target("llvm"):
        s, arg_bufs = matmul(N, L, M, "float32")
        func = tvm.build(s, arg_bufs)

a_np = np.random.uniform(size=(N, L)).astype(np.float32)
b_np = np.random.uniform(size=(L, M)).astype(np.float32)
c_np = a_np.dot(b_np)

c_tvm = tvm.nd.empty(c_np.shape)
func(tvm.nd.array(a_np), tvm.nd.array(b_np), c_tvm)

tvm.testing.assert_allclose(c_np, c_tvm.numpy(), rtol=1e-4)
"""


def test_the_matmul_tutorial_runs_as_a_script(tmp_path: Path) -> None:
    # what a script defines is known in its own process only, and yet built in others
    (tmp_path / "tune.py").write_text(SCRIPT)
    command = f"import sys; sys.path[:] = {sys.path!r}; exec(compile(open('tune.py').read(), 'tune.py', 'exec'))"
    run = subprocess.run(
        [sys.executable, "-c", command], cwd=tmp_path, capture_output=True, text=True, timeout=1200
    )
    assert run.returncode == 0, run.stderr
    out = run.stdout
    assert "ConfigSpace (len=49, range_length=49, space_map=" in out
    assert "   0 tile_y: Split(policy=factors, product=64, num_outputs=2) len=7" in out
    assert out.count("GFLOPS: ") == 6
    assert "No: 6\tGFLOPS: " in out
    assert "Best config:\n[('tile_y', [-1, " in out
    records = list(autotvm.record.load_from_file(tmp_path / "matmul.log"))
    assert len(records) == 6
    assert all(res.error_no == 0 for _, res in records)


@autotvm.template("tutorial/conv2d_no_batching")
def conv2d_no_batching(n: int, h: int, w: int, co: int, ci: int, kh: int, kw: int) -> Any:
    """A convolution for GPUs."""
    data = te.placeholder((n, ci, h, w), name="data")
    kernel = te.placeholder((co, ci, kh, kw), name="kernel")
    rc = te.reduce_axis((0, ci), name="rc")
    ry = te.reduce_axis((0, kh), name="ry")
    rx = te.reduce_axis((0, kw), name="rx")
    conv = te.compute(
        (n, co, h - kh + 1, w - kw + 1),
        lambda b, f, y, x: te.sum(
            data[b, rc, y + ry, x + rx] * kernel[f, rc, ry, rx], axis=[rc, ry, rx]
        ),
        name="conv",
    )
    s = te.create_schedule([conv.op])
    b, f, y, x = s[conv].op.axis
    cfg = autotvm.get_config()
    cfg.define_split("tile_f", f, num_outputs=4)
    cfg.define_split("tile_y", y, num_outputs=4)
    cfg.define_split("tile_x", x, num_outputs=4)
    cfg.define_split("tile_rc", rc, num_outputs=3)
    cfg.define_knob("auto_unroll_max_step", [0, 512, 1500])
    cfg.define_knob("unroll_explicit", [0, 1])

    output = conv
    local = s.cache_write(conv, "local")
    shared = [s.cache_read(t, "shared", [local]) for t in (data, kernel)]
    image, f, y, x = s[output].op.axis
    bf, vf, tf, fi = cfg["tile_f"].apply(s, output, f)
    by, vy, ty, yi = cfg["tile_y"].apply(s, output, y)
    bx, vx, tx, xi = cfg["tile_x"].apply(s, output, x)
    s[output].reorder(bf, by, bx, vf, vy, vx, tf, ty, tx, fi, yi, xi)
    for axes, names in (((bf, by, bx), "blockIdx"), ((tf, ty, tx), "threadIdx")):
        for axis, dim in zip(axes, "zyx", strict=True):
            s[output].bind(axis, te.thread_axis(f"{names}.{dim}"))
    for axis in (vf, vy, vx):
        s[output].bind(axis, te.thread_axis("vthread"))
    s[local].compute_at(s[output], tx)
    b, f, y, x = s[local].op.axis
    rc, ry, rx = s[local].op.reduce_axis
    rco, rcm, rci = cfg["tile_rc"].apply(s, local, rc)
    s[local].reorder(rco, rcm, ry, rx, rci, b, f, y, x)
    for load in shared:
        s[load].compute_at(s[local], rco)
    s[output].pragma(image, "auto_unroll_max_step", cfg["auto_unroll_max_step"].val)
    s[output].pragma(image, "unroll_explicit", cfg["unroll_explicit"].val)
    return s, [data, kernel, conv]


def test_the_convolution_tutorial_has_its_space_for_a_gpu() -> None:
    task = autotvm.task.create(
        "tutorial/conv2d_no_batching", args=(1, 9, 9, 32, 16, 3, 3), target="cuda"
    )
    assert len(task.config_space) == 56 * 4 * 4 * 15 * 3 * 2
    assert task.flop == 2 * 32 * 7 * 7 * 16 * 9
    config = task.config_space.get(31415)
    with task.target:
        s, args = task.instantiate(config)
    text = str(tvm.lower(s, args, simple_mode=True))
    assert 'T.launch_thread("blockIdx.x"' in text
    assert set(config.get_other_option()) == {"auto_unroll_max_step", "unroll_explicit"}


def tuner_named(name: str, task: Any) -> Any:
    """As the tutorials choose their tuners."""
    if name.startswith("xgb"):
        _, *words = name.split("_")
        loss = "rank" if "rank" in words else "reg"
        kinds = [word for word in words if word in ("knob", "itervar", "curve")]
        return XGBTuner(task, loss_type=loss, feature_type=(kinds or ["itervar"])[0], num_threads=1)
    return {
        "ga": lambda: GATuner(task, pop_size=50),
        "random": lambda: RandomTuner(task),
        "gridsearch": lambda: GridSearchTuner(task),
    }[name]()


@pytest.fixture(scope="module")
def local_option() -> dict[str, Any]:
    return autotvm.measure_option(
        builder=autotvm.LocalBuilder(timeout=60, n_parallel=1),
        runner=autotvm.LocalRunner(
            number=1, repeat=1, min_repeat_ms=0, timeout=60, cooldown_interval=0
        ),
    )


def test_several_tasks_are_tuned_into_one_log(local_option: dict[str, Any], tmp_path: Path) -> None:

    log = str(tmp_path / "tasks.log")
    tasks = [matmul_task(8, 8, n) for n in (8, 16)]
    for i, task in enumerate(reversed(tasks)):
        prefix = f"[Task {i + 1:2d}/{len(tasks):2d}] "
        for name in ("gridsearch", "ga", "xgb_rank_knob"):
            tuner = tuner_named(name, task)
            tuner.tune(
                n_trial=min(2, len(task.config_space)),
                early_stopping=None,
                measure_option=local_option,
                callbacks=[
                    autotvm.callback.progress_bar(2, prefix=prefix),
                    autotvm.callback.log_to_file(log),
                ],
            )
    best = tmp_path / "best.log"
    autotvm.record.pick_best(log, str(best))
    assert len(best.read_text().splitlines()) == 2
    with autotvm.apply_history_best(str(best)), tvm.target.Target("llvm"):
        for task in tasks:
            s, args = matmul(*task.args)
            func = tvm.build(s, args)
            a, b = [np.random.rand(*[int(d) for d in t.shape]).astype("float32") for t in args[:2]]
            c = tvm.nd.empty((8, b.shape[1]))
            func(tvm.nd.array(a), tvm.nd.array(b), c)
            np.testing.assert_allclose(c.numpy(), a @ b, rtol=1e-5)


def test_a_message_tells_that_nothing_was_tuned(caplog: pytest.LogCaptureFixture) -> None:

    target = tvm.target.Target("llvm")
    with caplog.at_level(logging.DEBUG, logger="autotvm"), autotvm.FallbackContext(), target:
        matmul(24, 8, 8, "float32")
    assert "Cannot find config for target=llvm" in caplog.text
