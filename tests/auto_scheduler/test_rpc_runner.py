"""Candidates of searches are measured on machines of a tracker."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tvm
from tvm import auto_scheduler, rpc
from tvm.auto_scheduler.measure import MeasureErrorNo, MeasureInput, rpc_runner_run
from tvm.auto_scheduler.search_task import register_task_input_buffer
from tvm.testing.auto_scheduler import matmul_auto_scheduler_test


@pytest.fixture(scope="module")
def context() -> Iterator[auto_scheduler.LocalRPCMeasureContext]:
    yield auto_scheduler.LocalRPCMeasureContext(timeout=60, number=1)


def candidate(size: int, **options: Any) -> MeasureInput:
    task = auto_scheduler.SearchTask(
        func=matmul_auto_scheduler_test, args=(size, size, size), target="llvm", **options
    )
    return MeasureInput(task, task.compute_dag.init_state)


def test_candidates_are_measured_through_the_local_tracker(context: Any) -> None:
    builder = auto_scheduler.LocalBuilder(timeout=60, n_parallel=1)
    inputs = [candidate(16), candidate(24)]
    built = builder.build(inputs)
    results = context.runner.run(inputs, built)
    assert [res.error_no for res in results] == [MeasureErrorNo.NO_ERROR] * 2
    assert all(res.seconds > 0 for res in results)
    again = rpc_runner_run(
        inputs[:1], built[:1], context.runner.key, "127.0.0.1", context.tracker.port,
        timeout=60, number=2, repeat=3,
    )  # fmt: skip
    assert len(again[0].costs) == 3


def test_failed_builds_are_not_sent(context: Any) -> None:
    failed = auto_scheduler.measure.BuildResult(
        None, [], MeasureErrorNo.COMPILE_HOST, "no compiler", 0.5
    )
    (result,) = context.runner.run([candidate(16)], [failed])
    assert (result.error_no, result.error_msg) == (MeasureErrorNo.COMPILE_HOST, "no compiler")


def test_given_inputs_go_to_the_machine(context: Any) -> None:
    values = np.ones((16, 16), dtype="float32")
    register_task_input_buffer(
        candidate(16).task.workload_key, "A", tvm.nd.array(values), overwrite=True
    )
    inp = candidate(16, task_inputs=["A"])
    built = auto_scheduler.LocalBuilder(timeout=60, n_parallel=1).build([inp])
    (result,) = context.runner.run([inp], built)
    assert result.error_no == MeasureErrorNo.NO_ERROR, result.error_msg


def test_a_runner_without_a_machine_says_so() -> None:
    with (
        rpc.Tracker(port=0) as tracker,
        pytest.raises(RuntimeError, match="no machine for the key 'board'"),
    ):
        auto_scheduler.RPCRunner("board", "127.0.0.1", tracker.port, timeout=0.5)
