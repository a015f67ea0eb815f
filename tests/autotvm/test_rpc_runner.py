"""Candidates are measured on machines of a tracker."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tvm import autotvm, rpc
from tvm.auto_scheduler.utils import check_remote
from tvm.autotvm.measure import MeasureErrorNo, MeasureInput
from tvm.testing.autotvm import matmul


@pytest.fixture(scope="module")
def candidates() -> Iterator[tuple[Any, list[MeasureInput], list[Any]]]:
    task = autotvm.task.create("testing/matmul", args=(32, 32, 32, "float32"), target="llvm")
    assert matmul is not None
    inputs = [MeasureInput(task.target, task, task.config_space.get(i)) for i in range(2)]
    builder = autotvm.LocalBuilder(n_parallel=1)
    builder.set_task(task)
    yield task, inputs, builder.build(inputs)  # the builder keeps the files


def test_candidates_are_measured_on_another_machine(candidates: Any) -> None:
    task, inputs, built = candidates
    with rpc.Tracker(port=0) as tracker:
        address = ("127.0.0.1", tracker.port)
        with rpc.Server(port=0, key="board", tracker_addr=address):
            runner = autotvm.RPCRunner("board", *address, n_parallel=1, number=2, timeout=30)
            runner.set_task(task)
            assert runner.get_build_kwargs() == {}
            results = runner.run(inputs, built)
            assert [result.error_no for result in results] == [MeasureErrorNo.NO_ERROR] * 2
            assert all(result.costs[0] > 0 for result in results)
            assert check_remote("board", *address)
        none = autotvm.measure.measure_methods.check_remote(
            task.target, "none", *address, timeout=0.5
        )
        assert not none


def test_the_local_runner_may_go_through_a_tracker(candidates: Any) -> None:
    task, inputs, built = candidates
    runner = autotvm.LocalRunner(number=2, use_tracker=True, timeout=30)
    runner.set_task(task)
    assert [result.error_no for result in runner.run(inputs, built)] == [0, 0]
