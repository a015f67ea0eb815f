"""Kernels of models stay as they are where no record is faster, and logs are gone on from."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import tvm
from tvm import auto_scheduler, relay
from tvm.auto_scheduler.untuned import note_untuned, read_untuned
from tvm.contrib import graph_executor


def dense_task() -> tuple[tvm.IRModule, auto_scheduler.SearchTask]:
    a, b = [relay.var(name, shape=(16, 16)) for name in "ab"]
    mod = tvm.IRModule.from_expr(relay.Function([a, b], relay.nn.dense(a, b)))
    tasks, weights = auto_scheduler.extract_tasks(mod["main"], None, "llvm")
    assert weights == [1]
    return mod, tasks[0]


def options(log: Path, trials: int, **more: object) -> auto_scheduler.TuningOptions:
    return auto_scheduler.TuningOptions(
        num_measure_trials=trials, verbose=0,
        builder=auto_scheduler.LocalBuilder(timeout=60, n_parallel=1),
        runner=auto_scheduler.LocalRunner(timeout=60, min_repeat_ms=1),
        measure_callbacks=[auto_scheduler.RecordToFile(log)], **more,
    )  # fmt: skip


def tuned(task: auto_scheduler.SearchTask, option: auto_scheduler.TuningOptions) -> None:
    task.tune(option, auto_scheduler.SketchPolicy(task, seed=0, verbose=0))


def test_the_untuned_kernel_is_measured_once_and_kept_where_it_is_faster(tmp_path: Path) -> None:
    mod, task = dense_task()
    log = tmp_path / "log.json"
    tuned(task, options(log, 2))
    ((key, seconds),) = read_untuned(log).items()
    assert key == ("llvm", task.workload_key) and seconds > 0
    assert note_untuned(log, task, None) == seconds
    target = tvm.target.Target("llvm")
    wanted = (target, task.workload_key, True, task.compute_dag, "dense")
    slower, faster = [
        f"# untuned {json.dumps({'target': 'llvm', 'workload_key': task.workload_key, 'seconds': s})}\n"
        for s in (1e3, 1e-12)
    ]
    records = "".join([line for line in log.read_text().splitlines(True) if line[0] != "#"])
    log.write_text(records + slower)
    assert auto_scheduler.ApplyHistoryBest(str(log)).query(*wanted) is not None
    log.write_text(records + faster + "# untuned {torn")
    best = auto_scheduler.ApplyHistoryBest(str(log))
    assert best.best_by_targetkey and best.query(*wanted) is None
    config = {"relay.backend.use_auto_scheduler": True}
    with best, tvm.transform.PassContext(opt_level=3, config=config):
        module = graph_executor.GraphModule(relay.build(mod, "llvm")["default"](tvm.cpu()))
    a, b = [np.random.default_rng(i).normal(size=(16, 16)).astype("float32") for i in (0, 1)]
    module.run(a=a, b=b)
    np.testing.assert_allclose(module.get_output(0).numpy(), a @ b.T, rtol=1e-4, atol=1e-5)


def test_what_the_log_has_is_not_measured_again(tmp_path: Path) -> None:
    _, task = dense_task()
    log = tmp_path / "log.json"
    for trials in (2, 2):
        tuned(task, options(log, trials))
    lines = [line.split('"r"')[0] for line in log.read_text().splitlines() if line[0] != "#"]
    assert len(lines) == len(set(lines)) == 4
    tuned(task, options(log, 4, resume=str(log)))  # has what is asked for
    assert sum(line[0] != "#" for line in log.read_text().splitlines()) == 4


@pytest.mark.parametrize("seconds", [0.0, 1e-9])
def test_the_budget_ends_a_search(tmp_path: Path, seconds: float) -> None:
    _, task = dense_task()
    log = tmp_path / "log.json"
    tuned(task, options(log, 64, time_budget=seconds))
    assert not [line for line in log.read_text().splitlines() if line[0] != "#"]
