from __future__ import annotations

import os
import time
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tvm
from tvm import autotvm, te
from tvm.autotvm.measure import MeasureErrorNo, create_measure_batch, request_remote
from tvm.autotvm.measure.measure_methods import (
    default_module_loader,
    gpu_verify_pass,
    set_cuda_target_arch,
)
from tvm.autotvm.task.space import InstantiationError

from .templates import matmul_task, record_of


@autotvm.template("tests/faulty")
def faulty(n: int) -> tuple[Any, list[Any]]:
    """A sum that is built and run, or fails in the way that its knob says."""
    a = te.placeholder((n,), name="a")
    b = te.compute((n,), lambda i: a[i] + 1.0, name="b")
    s = te.create_schedule(b.op)
    cfg = autotvm.get_config()
    cfg.define_knob("fault", ["none", "illegal", "raises", "schedule", "hangs", "ends"])
    fault = cfg["fault"].val
    if fault == "illegal":
        cfg.raise_error("no such tile")
    elif fault == "raises":
        raise RuntimeError("the template broke")
    elif fault == "schedule":
        s[b].vectorize(s[b].split(b.op.axis[0], nparts=te.var("k"))[1])
    elif fault == "hangs":
        time.sleep(3600)
    elif fault == "ends":
        os._exit(3)
    return s, [a, b]


def candidates(indices: Any, n: int = 16) -> list[Any]:
    task = autotvm.task.create("tests/faulty", args=(n,), target="llvm")
    return [record_of(task, index, 0)[0] for index in indices]


@pytest.fixture(scope="module")
def builder() -> Any:
    return autotvm.LocalBuilder(timeout=60, n_parallel=1)


@pytest.fixture(scope="module")
def runner() -> Any:
    return autotvm.LocalRunner(number=1, repeat=4, cooldown_interval=0, timeout=60)


def test_every_kind_of_failure_is_recorded(builder: Any, runner: Any) -> None:
    inputs = candidates(range(4))
    measure = create_measure_batch(inputs[0].task, autotvm.measure_option(builder, runner))
    assert measure.n_parallel == 1
    results = measure(inputs)
    assert [int(res.error_no) for res in results] == [0, 1, 2, 2]
    assert len(results[0].costs) == 2  # the fastest and the slowest of four are dropped
    assert all(cost > 0 for cost in results[0].costs)
    for result, message in zip(
        results[1:], ("no such tile", "the template broke", "vectorize"), strict=True
    ):
        trace, error = result.costs
        assert message in str(error)
        assert "Traceback" in trace
    assert isinstance(results[1].costs[1], InstantiationError)


def test_builds_that_hang_or_end_their_process_are_recorded(builder: Any) -> None:
    (ended,) = builder.build(candidates([5]))
    assert ended.error_no == MeasureErrorNo.COMPILE_HOST
    assert "ended" in str(ended.costs[1])
    builder.executor._timeout = 0.5
    (hung,) = builder.build(candidates([4]))
    builder.executor._timeout = 60
    assert hung.error_no == MeasureErrorNo.BUILD_TIMEOUT


@contextmanager
def loader_that_hangs(remote_kwargs: Any, built: Any) -> Iterator[Any]:
    time.sleep(3600)
    yield None


@contextmanager
def loader_that_ends(remote_kwargs: Any, built: Any) -> Iterator[Any]:
    os._exit(3)
    yield None


def test_runs_that_hang_end_or_raise_are_recorded(builder: Any, runner: Any) -> None:
    inputs = candidates([0])
    built = builder.build(inputs)
    original, runner.module_loader = runner.module_loader, loader_that_ends
    assert runner.run(inputs, built)[0].error_no == MeasureErrorNo.RUNTIME_DEVICE
    runner.module_loader = original
    runner.ref_input = [np.zeros(3, "float32")] * 2
    (failed,) = runner.run(inputs, built)
    runner.ref_input = None
    assert failed.error_no == MeasureErrorNo.RUNTIME_DEVICE
    assert "shape" in str(failed.costs[1])
    assert runner.run(inputs, built)[0].error_no == 0
    runner.module_loader, runner.timeout = loader_that_hangs, 0.5
    assert runner.run(inputs, built)[0].error_no == MeasureErrorNo.RUN_TIMEOUT
    runner.module_loader, runner.timeout = original, 60


def test_given_arguments_and_cold_caches_are_measured(builder: Any) -> None:
    task = matmul_task(16, 16, 16)
    inputs = [record_of(task, 3, 0)[0]]

    def before(session: Any, built: Any) -> None:
        assert Path(built.filename).exists()

    runner = autotvm.LocalRunner(
        number=1,
        repeat=1,
        cooldown_interval=0,
        timeout=60,
        enable_cpu_cache_flush=True,
        module_loader=default_module_loader(before),
    )
    runner.ref_input = [np.ones((16, 16), "float32")] * 3
    assert runner.ref_input[0].sum() == 256
    (result,) = runner.run(inputs, builder.build(inputs))
    assert result.error_no == 0, result.costs


def test_candidates_may_run_elsewhere(builder: Any) -> None:
    class Here:
        def submit(self, function: Any, *args: Any) -> Future[Any]:
            future: Future[Any] = Future()
            future.set_result(function(*args))
            return future

    runner = autotvm.LocalRunner(number=1, repeat=1, cooldown_interval=0)
    runner.executor = Here()
    inputs = [record_of(matmul_task(16, 16, 16), 3, 0)[0]]
    (result,) = runner.run(inputs, builder.build(inputs))
    assert result.error_no == MeasureErrorNo.NO_ERROR and len(result.costs) == 1


def test_a_library_of_another_form_is_linked_by_a_function(builder: Any) -> None:
    with pytest.raises(AttributeError, match="output_format"):
        autotvm.LocalBuilder(build_func=lambda name, files: None)
    with pytest.raises(ValueError, match="'default' or a function"):
        autotvm.LocalBuilder(build_func="ndk")
    assert autotvm.LocalBuilder(build_func=tvm.contrib.tar.tar).build_func.output_format == "tar"


def test_what_is_no_builder_or_runner_is_rejected(builder: Any, runner: Any) -> None:
    with pytest.raises(ValueError, match="Invalid builder: remote"):
        autotvm.measure_option("remote", runner)
    with pytest.raises(ValueError, match="needs a Builder as its builder, got LocalRunner"):
        autotvm.measure_option(runner, runner)
    assert isinstance(autotvm.measure_option("local", runner)["builder"], autotvm.LocalBuilder)
    with pytest.raises(ValueError, match="needs a Runner as its runner, got NoneType"):
        autotvm.measure_option(builder, None)


def test_other_machines_need_a_tracker() -> None:
    with pytest.raises(tvm.TVMError, match="requires the address of a tracker"):
        request_remote("key")
    with pytest.raises(ValueError, match="deprecated"):
        set_cuda_target_arch("sm_80")


def test_kernels_beyond_the_limits_of_a_gpu_are_illegal() -> None:
    a = te.placeholder((2048,), name="a")
    b = te.compute((2048,), lambda i: a[i] + 1.0, name="b")
    s = te.create_schedule(b.op)
    s[b].bind(b.op.axis[0], te.thread_axis("threadIdx.x"))
    for limit, is_legal in ((4096, True), (1024, False)):
        verify = gpu_verify_pass(max_threads_per_block=limit)
        with tvm.transform.PassContext(config={"tir.add_lower_pass": [(2, verify)]}):
            if is_legal:
                tvm.lower(s, [a, b])
                continue
            with pytest.raises(InstantiationError, match="invalid gpu kernel"):
                tvm.lower(s, [a, b])
