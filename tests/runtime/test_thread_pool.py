"""Parallel loops of compiled code."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import tvm
import tvm.runtime.ndarray as nd
from tests.threads import run_in_threads
from tvm._ffi import get_global_func, libinfo
from tvm.runtime import Module, convert, num_threads
from tvm.script import tir as T

LAMBDA = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)


@pytest.fixture
def four_threads():
    get_global_func("runtime.config_threadpool")(0, 4)
    assert num_threads() == 4
    yield
    get_global_func("runtime.config_threadpool")(0, 0)


def launch(body, tasks: int = 0) -> int:
    runtime = ctypes.CDLL(libinfo.find_lib_path()[0])
    return runtime.TVMBackendParallelLaunch(LAMBDA(body), None, tasks)


def expect_filled(library: Module) -> None:
    array = nd.array(np.zeros(10_000, "float32"))
    library["parallel_fill"](array)
    np.testing.assert_array_equal(array.numpy(), np.arange(10_000, dtype="float32"))


@pytest.mark.usefixtures("four_threads")
def test_each_element_is_computed_once(library: Module) -> None:
    for _ in range(200):
        expect_filled(library)


@pytest.mark.usefixtures("four_threads")
def test_tasks_run_on_several_threads() -> None:
    seen = {}
    together = threading.Barrier(4, timeout=600)

    def body(task: int, _env: int, _data: int) -> int:
        seen[task] = threading.get_ident()
        together.wait()
        return 0

    assert launch(body) == 0
    assert sorted(seen) == [0, 1, 2, 3] and len(set(seen.values())) == 4


@pytest.mark.usefixtures("four_threads")
def test_more_tasks_than_threads() -> None:
    seen = []
    assert launch(lambda task, _env, _data: seen.append(task) or 0, 11) == 0
    assert sorted(seen) == list(range(11))


@pytest.mark.usefixtures("four_threads")
def test_launches_inside_a_task_run_on_its_thread() -> None:
    inner = []

    def body(_task: int, _env: int, _data: int) -> int:
        me = threading.get_ident()
        return launch(lambda t, _e, _d: inner.append(threading.get_ident() == me) or 0, 3)

    assert launch(body, 4) == 0
    assert inner == [True] * 12


@pytest.mark.usefixtures("four_threads")
def test_barriers(library: Module) -> None:
    for _ in range(20):
        assert library["barriers_hold"]() == 1


@pytest.mark.usefixtures("four_threads")
def test_errors_of_tasks_reach_the_caller(library: Module) -> None:
    for _ in range(3):
        with pytest.raises(ValueError, match=r"^a task failed$"):
            library["parallel_fail"]()
    expect_filled(library)


@pytest.mark.usefixtures("four_threads")
def test_several_callers_at_once(library: Module) -> None:
    errors = []

    def work() -> None:
        try:
            for _ in range(50):
                expect_filled(library)
        except BaseException as error:
            errors.append(error)

    run_in_threads(work, [()] * 4)
    assert not errors


@pytest.mark.usefixtures("four_threads")
def test_a_forked_child_has_its_own_pool(library: Module) -> None:
    expect_filled(library)
    child = os.fork()
    if child == 0:
        try:
            expect_filled(library)
            os._exit(0)
        except BaseException:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    expect_filled(library)


def test_number_of_threads_from_the_environment() -> None:
    code = "import tvm.runtime as r; print(r.num_threads())"
    for wanted in ("1", "3"):
        environment = {**os.environ, "TVM_NUM_THREADS": wanted}
        done = subprocess.run(
            [sys.executable, "-c", code],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.strip() == wanted


@pytest.mark.usefixtures("four_threads")
def test_a_python_error_inside_a_task_reaches_the_caller() -> None:
    @tvm.register_func("tests.fails_in_parallel", override=True)
    def fail(i: int) -> None:
        if i == 13:
            raise KeyError("of task 13")

    @T.prim_func
    def loop(a: T.Buffer((64,), "int32")):
        for i in T.parallel(64):
            T.evaluate(T.call_packed("tests.fails_in_parallel", i))
            a[i] = i

    module = tvm.build(loop, target="llvm")
    with pytest.raises(KeyError, match="of task 13"):
        module(nd.array(np.zeros(64, "int32")))


def test_a_child_of_multiprocessing_runs_parallel_loops(library: Module) -> None:
    expect_filled(library)
    child = multiprocessing.get_context("fork").Process(target=expect_filled, args=(library,))
    child.start()
    child.join(60)
    assert child.exitcode == 0


def test_threads_of_an_affinity_mask() -> None:
    code = (
        "import os; os.sched_setaffinity(0, {0}); import tvm.runtime as r; print(r.num_threads())"
    )
    unset = ("TVM_NUM_THREADS", "OMP_NUM_THREADS")
    environment = {name: value for name, value in os.environ.items() if name not in unset}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "1"


def test_threads_are_bound_to_the_cpus_of_a_list() -> None:
    configure = get_global_func("runtime.config_threadpool")
    allowed = os.sched_getaffinity(0)
    last = max(allowed)
    try:
        configure(-2, 1, [str(last)])
        assert os.sched_getaffinity(0) == {last}
    finally:
        configure(0, 0)
    assert os.sched_getaffinity(0) == allowed


def test_idle_threads_sleep(library: Module) -> None:
    expect_filled(library)
    # soon or, on a busy machine, later there is a time in which nothing is computed
    assert any(_seconds_computed_in(0.2) < 0.05 for _ in range(100))


def _seconds_computed_in(seconds: float) -> float:
    before = time.process_time()
    time.sleep(seconds)
    return time.process_time() - before


def test_python_errors_in_workers() -> None:
    packed = convert(lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        packed()
