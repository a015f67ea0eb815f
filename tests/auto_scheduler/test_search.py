"""Searches: sketches, random programs, mutation, measuring, and what ends them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tvm
from tvm import auto_scheduler, te
from tvm.auto_scheduler.cost_model import PythonBasedModel
from tvm.auto_scheduler.factors import factorizations
from tvm.auto_scheduler.measure import MeasureErrorNo
from tvm.auto_scheduler.mutation import mutate_parallel, mutate_tile_size
from tvm.testing.auto_scheduler import (
    conv2d_nchw_bn_relu_auto_scheduler_test,
    conv2d_winograd_nhwc_auto_scheduler_test,
    matmul_auto_scheduler_test,
    max_pool2d_auto_scheduler_test,
    min_nm_auto_scheduler_test,
    softmax_nm_auto_scheduler_test,
)


def task(func: Any = matmul_auto_scheduler_test, *args: int) -> auto_scheduler.SearchTask:
    hardware = auto_scheduler.HardwareParams(num_cores=4, target="llvm")
    return auto_scheduler.SearchTask(
        func=func, args=args or (64, 64, 64), target="llvm", hardware_params=hardware
    )


def policy(func: Any = matmul_auto_scheduler_test, *args: int) -> auto_scheduler.SketchPolicy:
    return auto_scheduler.SketchPolicy(task(func, *args), seed=1, verbose=0)


def run(dag: auto_scheduler.ComputeDAG, state: Any) -> np.ndarray:
    sch, args = dag.apply_steps_from_state(state)
    func = tvm.build(sch, args, "llvm")
    rng = np.random.default_rng(0)
    arrays = [
        tvm.nd.array(rng.uniform(size=[int(d) for d in t.shape]).astype(t.dtype)) for t in args
    ]
    func(*arrays)
    return arrays[-1].numpy()


@pytest.mark.parametrize(
    ("func", "args", "count"),
    [
        (matmul_auto_scheduler_test, (512, 512, 512), 3),
        (matmul_auto_scheduler_test, (8, 8, 512), 5),
        (conv2d_nchw_bn_relu_auto_scheduler_test, (1, 56, 56, 64, 64, 3, 1, 1), 3),
        (max_pool2d_auto_scheduler_test, (1, 56, 56, 64, 1), 1),
        (min_nm_auto_scheduler_test, (10, 1024), 3),
        (softmax_nm_auto_scheduler_test, (1, 1024), 9),
        (conv2d_winograd_nhwc_auto_scheduler_test, (1, 28, 28, 32, 32, 3, 1, 1), 3),
    ],
)
def test_rules_derive_the_sketches_of_the_paper(func: Any, args: Any, count: int) -> None:
    assert len(policy(func, *args).generate_sketches()) == count


@pytest.mark.parametrize(
    ("func", "args"),
    [
        (matmul_auto_scheduler_test, (24, 32, 48)),
        (matmul_auto_scheduler_test, (4, 4, 512)),
        (conv2d_nchw_bn_relu_auto_scheduler_test, (1, 14, 14, 8, 16, 3, 2, 1)),
        (softmax_nm_auto_scheduler_test, (16, 256)),
        (conv2d_winograd_nhwc_auto_scheduler_test, (1, 14, 14, 8, 8, 3, 1, 1)),
    ],
)
def test_random_programs_compute_what_was_written(func: Any, args: Any) -> None:
    search = policy(func, *args)
    dag = search.search_task.compute_dag
    expected = run(dag, dag.init_state)
    states = search.sample_initial_population()
    for state in search.rng.sample(states, 4):
        np.testing.assert_allclose(run(dag, state), expected, rtol=1e-4, atol=1e-5)


def test_lengths_divide_the_extent() -> None:
    found = factorizations(12, 2, 4)
    assert (3, 4) in found and (12, 1) in found and all(12 % (a * b) == 0 for a, b in found)
    assert len(set(found)) == len(found) and max(b for _, b in found) == 4


def test_mutations_change_sizes_and_granularity() -> None:
    search = policy(matmul_auto_scheduler_test, 64, 64, 64)
    state = search.sample_initial_population()[0].state_object
    texts = {str(found) for _ in range(20) if (found := mutate_tile_size(search, state))}
    assert len(texts) > 3
    granular = {
        str(found)
        for state in search.sample_initial_population()[:40]
        if (found := mutate_parallel(search, state.state_object))
    }
    assert granular


class PrefersWide(PythonBasedModel):
    """Likes programs with a loop i.1 of 16 iterations."""

    def update(self, inputs: Any, results: Any) -> None:
        pass

    def predict(self, task: Any, states: Any) -> list[float]:
        return [float("i.1 (0,16)" in str(state)) for state in states]


def test_evolution_finds_what_the_model_likes() -> None:
    search = auto_scheduler.SketchPolicy(
        task(matmul_auto_scheduler_test, 64, 64, 64), PrefersWide(), seed=2, verbose=0
    )
    others = [s for s in search.sample_initial_population() if "i.1 (0,16)" not in str(s)]
    found = search.evolutionary_search(others[:50], 20)
    assert "i.1 (0,16)" in str(found[0])


def test_first_candidates_have_full_vectors() -> None:
    search = policy(matmul_auto_scheduler_test, 256, 256, 256)
    first = search.next_inputs(16)[0].state
    assert "vectorize" in str(first) and "parallel" in str(first)


def test_tuning_keeps_records_and_gives_the_fastest(tmp_path: Path) -> None:
    log, t = str(tmp_path / "log.json"), task()
    options = auto_scheduler.TuningOptions(
        num_measure_trials=6, num_measures_per_round=3, verbose=0,
        measure_callbacks=[auto_scheduler.RecordToFile(log)],
    )  # fmt: skip
    t.tune(options, auto_scheduler.SketchPolicy(t, seed=0, verbose=0))
    records = list(auto_scheduler.load_records(log))
    assert len(records) == 6 and any(res.error_no == 0 for _, res in records)
    sch, args = t.apply_best(log)
    func = tvm.build(sch, args, "llvm")
    a, b = [np.random.default_rng(i).uniform(size=(64, 64)).astype("float32") for i in (0, 1)]
    c = tvm.nd.empty((64, 64))
    func(tvm.nd.array(a), tvm.nd.array(b), c)
    np.testing.assert_allclose(c.numpy(), a @ b, rtol=1e-4)
    # a search that goes on has less left to measure
    again = auto_scheduler.TuningOptions(
        num_measure_trials=8, verbose=0, resume=log,
        measure_callbacks=[auto_scheduler.RecordToFile(log)],
    )  # fmt: skip
    t.tune(again, auto_scheduler.SketchPolicy(t, seed=0, verbose=0))
    lines = [line.split('"r"')[0] for line in Path(log).read_text().splitlines()]
    assert len(lines) == 8 == len(set(lines))


def test_time_ends_a_search() -> None:
    t = task()
    started = time.monotonic()
    options = auto_scheduler.TuningOptions(num_measure_trials=10**6, verbose=0, time_budget=1.0)
    t.tune(options, auto_scheduler.SketchPolicy(t, seed=0, verbose=0))
    assert time.monotonic() - started < 60


def test_candidates_that_fail_do_not_end_the_search() -> None:
    t = task()
    builder, runner = auto_scheduler.LocalBuilder(timeout=0.001), auto_scheduler.LocalRunner()
    inp = auto_scheduler.MeasureInput(t, t.compute_dag.init_state)
    built = builder.build([inp])
    assert built[0].error_no == MeasureErrorNo.BUILD_TIMEOUT
    assert runner.run([inp], built)[0].error_no == MeasureErrorNo.BUILD_TIMEOUT


def test_inputs_of_given_values_are_used() -> None:
    @auto_scheduler.register_workload("gather_of_given_values", override=True)
    def gather() -> list[te.Tensor]:
        x = te.placeholder((10,), "int32", name="X")
        index = te.placeholder((1,), "int32", name="Index")
        return [x, index, te.compute((1,), lambda i: x[index[i]], name="Y")]

    t = auto_scheduler.SearchTask(
        func="gather_of_given_values", target="llvm", task_inputs={"Index": tvm.nd.array(np.array([5], "int32"))},
        task_inputs_overwrite=True,
    )  # fmt: skip
    inp = auto_scheduler.MeasureInput(t, t.compute_dag.init_state)
    built = auto_scheduler.LocalBuilder().build([inp])
    results = auto_scheduler.LocalRunner(min_repeat_ms=0).run([inp], built)
    assert results[0].error_no == 0


def test_rules_of_programs_come_first() -> None:
    rule = auto_scheduler.PreloadCustomSketchRule

    def split(policy: Any, state: Any, stage_id: int) -> list[Any]:
        new = auto_scheduler.loop_state.State(state, policy.search_task.compute_dag)
        new.split(2, new.stages[2].iters[0], [8])
        return [[state, -1], [new.state_object, -1]]

    search = auto_scheduler.SketchPolicy(
        task(), verbose=0,
        init_search_callbacks=[rule(lambda *_: rule.APPLY_AND_SKIP_REST, split)],
    )  # fmt: skip
    assert [len(s.stages[2].iters) for s in search.generate_sketches()] == [3, 4]


def trials_by_task(
    tuner: auto_scheduler.TaskScheduler, tasks: Sequence[auto_scheduler.SearchTask], log: Path
) -> list[int]:
    """How many of four trials each task gets."""
    options = auto_scheduler.TuningOptions(
        num_measure_trials=4, num_measures_per_round=1, verbose=0,
        measure_callbacks=[auto_scheduler.RecordToFile(str(log))],
    )  # fmt: skip
    tuner.tune(options, search_policy="sketch.random")
    keys = [inp.task.workload_key for inp, _ in auto_scheduler.load_records(str(log))]
    return [keys.count(t.workload_key) for t in tasks]


def test_tasks_share_trials_in_turn(tmp_path: Path) -> None:
    tasks = [task(matmul_auto_scheduler_test, n, n, n) for n in (2, 4)]
    tuner = auto_scheduler.TaskScheduler(tasks, strategy="round-robin", callbacks=[])
    assert trials_by_task(tuner, tasks, tmp_path / "log.json") == [2, 2]


def test_gradients_go_where_the_objective_falls(tmp_path: Path) -> None:
    tasks = [task(matmul_auto_scheduler_test, n, n, n) for n in (2, 4)]
    tuner = auto_scheduler.TaskScheduler(
        tasks, objective_func=lambda costs: 1e5 * costs[0], callbacks=[]
    )
    tuner.best_costs = np.array([1e2, 1e-8])
    assert trials_by_task(tuner, tasks, tmp_path / "log.json") == [3, 1]


def test_boosted_trees_learn_and_are_saved(tmp_path: Path) -> None:
    pytest.importorskip("xgboost")
    search = policy(matmul_auto_scheduler_test, 128, 128, 128)
    states = search.sample_initial_population()[:40]
    inputs = [auto_scheduler.MeasureInput(search.search_task, s) for s in states]
    costs = np.random.default_rng(0).uniform(0.5, 1.0, len(inputs))
    results = [auto_scheduler.MeasureResult([c], 0, "", 0.1, 0) for c in costs]
    model = auto_scheduler.XGBModel(num_warmup_sample=-1)
    model.update(inputs, results)
    predicted = np.array(model.predict(search.search_task, states))
    assert np.sqrt(np.mean((predicted - costs.min() / costs) ** 2)) <= 0.3
    model.save(tmp_path / "model")
    other = auto_scheduler.XGBModel()
    other.load(tmp_path / "model")
    np.testing.assert_allclose(other.predict(search.search_task, states), predicted, rtol=1e-5)
