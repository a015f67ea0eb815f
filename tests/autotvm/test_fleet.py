"""Candidates are built and run on a Dask cluster, whose workers come and go."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tvm import auto_scheduler, autotvm
from tvm.autotvm.measure import MeasureErrorNo, MeasureInput
from tvm.autotvm.measure.fleet import Fleet
from tvm.error import TVMError
from tvm.testing.auto_scheduler import matmul_auto_scheduler_test
from tvm.testing.autotvm import matmul

distributed = pytest.importorskip("distributed")


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
    ) as cluster:
        yield cluster


def slow_square(number: int, folder: str) -> int:
    Path(folder, f"{number}-{os.getpid()}").touch()
    time.sleep(0.5)
    return number * number


def fails(kind: str) -> int:
    if kind == "hangs":
        time.sleep(60)
    if kind == "crashes":
        os.kill(os.getpid(), signal.SIGKILL)
    raise ValueError(kind)


def test_what_hangs_crashes_or_raises_costs_its_own_call_only(cluster: Any) -> None:
    fleet = Fleet(cluster.scheduler_address)
    (hung,) = fleet.call(fails, [("hangs",)], seconds=2)
    crashed, raised = fleet.call(fails, [("crashes",), ("raises",)], seconds=120)
    kinds = [type(outcome) for outcome in (hung, crashed, raised)]
    assert kinds == [TimeoutError, ChildProcessError, ValueError]


def test_a_worker_is_killed_and_another_one_added_meanwhile(cluster: Any, tmp_path: Path) -> None:
    fleet = Fleet(cluster)
    found: list[Any] = []
    items = [(number, str(tmp_path)) for number in range(12)]
    thread = threading.Thread(
        target=lambda: found.extend(fleet.call(slow_square, items, seconds=30))
    )
    thread.start()
    while not any(tmp_path.iterdir()):
        time.sleep(0.05)
    victim = next(iter(cluster.workers.values()))
    os.kill(victim.pid, signal.SIGKILL)
    cluster.scale(3)
    thread.join(60)
    assert found == [number * number for number in range(12)]


def test_autotvm_finds_on_a_fleet_what_it_finds_here(cluster: Any) -> None:
    assert matmul is not None
    task = autotvm.task.create("testing/matmul", args=(32, 32, 32, "float32"), target="llvm")
    inputs = [MeasureInput(task.target, task, task.config_space.get(i)) for i in range(3)]
    builder = autotvm.DaskBuilder(cluster, timeout=60)
    runner = autotvm.DaskRunner(cluster, number=2, repeat=1, timeout=60)
    for each in (builder, runner):
        each.set_task(task)
    built = builder.build(inputs)
    assert all(Path(result.filename).parent == Path(builder.tmp_dir) for result in built)
    results = runner.run(inputs, built)
    here = autotvm.LocalRunner(number=2, repeat=1, timeout=60)
    assert [r.error_no for r in results] == [r.error_no for r in here.run(inputs, built)] == [0] * 3


def searched(log: str, **how: Any) -> list[str]:
    """The steps that a search with a fixed seed measures."""
    task = auto_scheduler.SearchTask(
        func=matmul_auto_scheduler_test, args=(32, 32, 32), target="llvm"
    )
    policy = auto_scheduler.SketchPolicy(
        task, auto_scheduler.RandomModel(), seed=3, verbose=0,
        params={"sample_init_min_population": 8, "evolutionary_search_population": 8},
    )  # fmt: skip
    options = auto_scheduler.TuningOptions(
        num_measure_trials=4, verbose=0, measure_callbacks=[auto_scheduler.RecordToFile(log)],
        **how,
    )  # fmt: skip
    task.tune(options, policy)
    records = list(auto_scheduler.load_records(log))
    assert all(res.error_no == MeasureErrorNo.NO_ERROR for _, res in records)
    return [str(inp.state.transform_steps) for inp, _ in records]


def test_a_search_on_a_fleet_measures_what_a_search_here_does(cluster: Any, tmp_path: Path) -> None:
    fleet = searched(
        str(tmp_path / "fleet.json"),
        builder=auto_scheduler.DaskBuilder(cluster, timeout=60),
        runner=auto_scheduler.DaskRunner(cluster, timeout=60, min_repeat_ms=1),
    )
    here = searched(
        str(tmp_path / "here.json"),
        builder=auto_scheduler.LocalBuilder(timeout=60, n_parallel=2),
        runner=auto_scheduler.LocalRunner(timeout=60, min_repeat_ms=1),
    )
    assert fleet == here and len(here) == 4


def test_nobody_there_is_told() -> None:
    with pytest.raises(TVMError, match=r"no Dask scheduler answers at 127\.0\.0\.1:9"):
        autotvm.DaskBuilder("127.0.0.1:9")
