"""Children of fork() use the runtime, whatever other threads of the parent did."""

from __future__ import annotations

import multiprocessing
import os

import pytest

from tests.runtime import stress


@pytest.fixture(scope="module")
def runs() -> dict[str, stress.Run]:
    return {name: run for name, run in stress.executors().items() if "run" in name}


def test_children_run_models_while_other_threads_of_the_parent_do(
    runs: dict[str, stress.Run],
) -> None:
    assert dict(stress.forks(runs, 10)) == {"ran": 10}


def test_a_child_forks_in_turn(runs: dict[str, stress.Run]) -> None:
    with stress.load(runs):
        child = os.fork()
        if child == 0:
            outcome = stress.forks(runs, 2)
            os._exit(0 if dict(outcome) == {"ran": 2} else 1)
        assert stress._outcome(child, 120) == "ran"


def test_a_pool_of_forked_workers_runs_models(runs: dict[str, stress.Run]) -> None:
    run = runs["graph, run(x=...)"]
    globals()["_run"] = run
    with stress.load(runs), multiprocessing.get_context("fork").Pool(2) as pool:
        found = pool.map_async(_first_element, [1.0, 2.0, 3.0, 4.0]).get(timeout=120)
    assert found == [stress.answers(number)[0] for number in (1.0, 2.0, 3.0, 4.0)]


def _first_element(number: float) -> float:
    return float(globals()["_run"](number)[0][0, 0])
