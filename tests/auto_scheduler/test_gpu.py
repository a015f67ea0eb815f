"""Programs for GPUs: their sketches, what random ones compute, and that they are measured."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tvm
from tests.system_tools import needs_opencl
from tvm import auto_scheduler, te
from tvm.auto_scheduler.loops import Annotation
from tvm.testing.auto_scheduler import (
    conv2d_nchw_bn_relu_auto_scheduler_test,
    double_matmul_auto_scheduler_test,
    matmul_auto_scheduler_test,
    max_pool2d_auto_scheduler_test,
    min_nm_auto_scheduler_test,
    softmax_nm_auto_scheduler_test,
    zero_rank_compute_auto_scheduler_test,
    zero_rank_reduce_auto_scheduler_test,
)
from tvm.tir.interp import interpret
from tvm.tir.pipeline import THREADS

PARAMS = {"sample_init_min_population": 4, "evolutionary_search_population": 4}


@auto_scheduler.register_workload
def norms_of_matrices(count: int, n: int) -> list[te.Tensor]:
    a = te.placeholder((count, n, n), name="A")
    i, j = [te.reduce_axis((0, n), name=name) for name in "ij"]
    c = te.compute((count,), lambda b: te.sum(a[b, i, j] * a[b, i, j], axis=[i, j]), name="C")
    return [a, te.compute((count,), lambda b: te.sqrt(c[b]), name="D")]


def policy(
    func: Any, args: tuple[int, ...], target: str = "cuda", **hardware: int
) -> auto_scheduler.SketchPolicy:
    task = auto_scheduler.SearchTask(
        func=func, args=args, target=target,
        hardware_params=auto_scheduler.HardwareParams(target=target, **hardware),
    )  # fmt: skip
    return auto_scheduler.SketchPolicy(task, params=PARAMS, seed=1, verbose=0)


@pytest.mark.parametrize(
    ("func", "args", "count"),
    [
        (matmul_auto_scheduler_test, (512, 512, 512), 1),
        (matmul_auto_scheduler_test, (8, 8, 1024), 2),
        (double_matmul_auto_scheduler_test, (512,), 1),
        (conv2d_nchw_bn_relu_auto_scheduler_test, (1, 56, 56, 64, 64, 3, 1, 1), 1),
        (max_pool2d_auto_scheduler_test, (1, 56, 56, 64, 1), 1),
        (min_nm_auto_scheduler_test, (10, 1024), 2),
        (softmax_nm_auto_scheduler_test, (2, 1024), 4),
        (norms_of_matrices, (2, 64), 2),
    ],
)
def test_sketches_of_gpus(func: Any, args: tuple[int, ...], count: int) -> None:
    assert len(policy(func, args).generate_sketches()) == count


@pytest.mark.parametrize(
    ("func", "args"),
    [
        (matmul_auto_scheduler_test, (16, 16, 16)),
        (matmul_auto_scheduler_test, (2, 2, 32)),
        (conv2d_nchw_bn_relu_auto_scheduler_test, (1, 4, 4, 4, 4, 3, 1, 1)),
        (min_nm_auto_scheduler_test, (4, 16)),
        (softmax_nm_auto_scheduler_test, (3, 16)),
        (norms_of_matrices, (2, 4)),
        (zero_rank_reduce_auto_scheduler_test, (16,)),
        (zero_rank_compute_auto_scheduler_test, (16,)),
    ],
)
def test_random_programs_compute_what_the_workload_does(func: Any, args: tuple[int, ...]) -> None:
    search = policy(func, args, warp_size=4, max_vthread_extent=4)
    dag = search.search_task.compute_dag
    plain = tvm.lower(te.create_schedule(dag.tensors[-1].op), dag.tensors)
    rng = np.random.default_rng(0)
    expected = [
        np.asarray(rng.random([int(extent) for extent in t.shape], "float32")) for t in dag.tensors
    ]
    inputs = [array.copy() for array in expected]
    interpret(plain["main"], *expected)
    programs = search.sample_initial_population()
    assert programs
    for state in programs[:3]:
        arrays = [array.copy() for array in inputs]
        interpret(as_kernels(dag, state), *arrays)
        for array, right in zip(arrays, expected, strict=True):
            np.testing.assert_allclose(array, right, rtol=1e-4, err_msg=str(state))


def as_kernels(dag: auto_scheduler.ComputeDAG, state: Any) -> tvm.tir.PrimFunc:
    schedule, args = dag.apply_steps_from_state(state)
    target = tvm.tir.transform.BindTarget(tvm.target.Target("cuda", host="llvm"))
    mod = tvm.transform.Sequential([target, *THREADS])(tvm.lower(schedule, args))
    return mod["main"]


def test_blocks_keep_within_the_limits_of_the_machine() -> None:
    search = policy(
        matmul_auto_scheduler_test, (64, 64, 64),
        warp_size=4, max_threads_per_block=16, max_shared_memory_per_block=1024,
    )  # fmt: skip
    first = search.sample_initial_population()
    for state in [*first, *search.evolutionary_search(first, 8)]:
        stages = {stage.op.name: stage for stage in state.stages}
        bound = [i.extent for i in stages["C"].iters if i.annotation == Annotation.THREAD_X]
        # mutations may go below a warp, which random programs do not
        assert (4 if state in first else 1) <= bound[0] <= 16
        schedule, args = search.search_task.compute_dag.apply_steps_from_state(state)
        limits = {"max_threads_per_block": 16, "max_shared_memory_per_block": 1024}
        assert tvm.tir.analysis.verify_gpu_code(tvm.lower(schedule, args)["main"], limits)


def test_print_best_gives_the_source_of_the_kernel(tmp_path: Path) -> None:
    search = policy(matmul_auto_scheduler_test, (64, 64, 64))
    task = search.search_task
    (state, *_) = search.sample_initial_population()
    log = str(tmp_path / "log.json")
    result = auto_scheduler.MeasureResult([0.1], 0, "", 0.1, 1)
    auto_scheduler.save_records(log, [auto_scheduler.MeasureInput(task, state)], [result])
    assert "__global__" in task.print_best(log, print_mode="cuda")
    with pytest.raises(ValueError, match="Invalid print_mode: asm"):
        task.print_best(log, print_mode="asm")


def test_defaults_of_opencl_allow_tiles() -> None:
    plain = auto_scheduler.HardwareParams(target="opencl")
    assert (plain.warp_size, plain.max_vthread_extent) == (1, 1)
    mali = auto_scheduler.HardwareParams(target="opencl -device=mali")
    assert (mali.max_threads_per_block, mali.max_shared_memory_per_block) == (256, 32768)


@needs_opencl()
def test_programs_are_measured_on_the_device() -> None:
    search = policy(matmul_auto_scheduler_test, (16, 16, 16), "opencl")
    (state, *_) = search.sample_initial_population()
    inputs = [auto_scheduler.MeasureInput(search.search_task, state)]
    built = auto_scheduler.LocalBuilder(timeout=120).build(inputs)
    (result,) = auto_scheduler.LocalRunner(timeout=120, min_repeat_ms=0).run(inputs, built)
    assert result.error_no == 0, result.error_msg
