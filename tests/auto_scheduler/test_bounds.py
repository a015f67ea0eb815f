"""Bounds are those that te infers for the schedule of a state."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from tvm import auto_scheduler, te
from tvm.auto_scheduler.affine import AffineForm, Quotient, Remainder
from tvm.auto_scheduler.bounds import infer_bounds
from tvm.auto_scheduler.loops import ComputeAt
from tvm.auto_scheduler.steps import Replay
from tvm.te.tensor import ComputeOp
from tvm.testing.auto_scheduler import (
    conv2d_nchw_bn_relu_auto_scheduler_test,
    conv2d_winograd_nhwc_auto_scheduler_test,
    matmul_auto_scheduler_test,
    softmax_nm_auto_scheduler_test,
)
from tvm.tir.expr import IntImm


def differences(dag: auto_scheduler.ComputeDAG, state: Any) -> list[tuple[str, str, int, int]]:
    """The loops whose constant extent te finds to be another one."""
    full = dag.full_state(state)
    found = infer_bounds(full)
    read = {tensor.op for op in dag.ops for tensor in op.input_tensors}
    replay = Replay(dag.ops, [op for op in dag.ops if op not in read])
    replay.run(full.transform_steps)
    ranges = te.schedule.InferBound(replay.schedule.normalize())
    wrong = []
    for place, stage in enumerate(full.stages):
        if stage.compute_at == ComputeAt.INLINED or not isinstance(stage.op, ComputeOp):
            continue
        extents = found.extents[place]
        for loop, axis, extent in zip(stage.iters, replay.axes[place], extents, strict=True):
            real = ranges[axis].extent
            if isinstance(real, IntImm) and int(real.value) != extent:
                wrong.append((stage.op.name, loop.name, extent, int(real.value)))
    return wrong


@pytest.mark.parametrize(
    ("func", "args"),
    [
        (matmul_auto_scheduler_test, (48, 64, 36)),
        (conv2d_nchw_bn_relu_auto_scheduler_test, (2, 15, 13, 3, 10, 5, 2, 2)),
        (softmax_nm_auto_scheduler_test, (16, 250)),
        (conv2d_winograd_nhwc_auto_scheduler_test, (1, 14, 14, 8, 8, 3, 1, 1)),
        (conv2d_winograd_nhwc_auto_scheduler_test, (2, 10, 14, 4, 8, 3, 1, 1)),
    ],
)
def test_bounds_of_random_programs_are_those_of_te(func: Any, args: Sequence[int]) -> None:
    hardware = auto_scheduler.HardwareParams(num_cores=4, target="llvm")
    task = auto_scheduler.SearchTask(func=func, args=args, target="llvm", hardware_params=hardware)
    policy = auto_scheduler.SketchPolicy(task, seed=7, verbose=0)
    for state in policy.rng.sample(policy.sample_initial_population(), 8):
        assert differences(task.compute_dag, state) == []


def test_quotients_of_what_runs_from_zero_start_there() -> None:
    # w // 4 for w = f % 14 and f below 196: four values
    loop = AffineForm(0, {0: 1})
    tile = Quotient(AffineForm(0, {Remainder(loop, 14): 1}), 4)
    assert tile.count(lambda _: 196) == 4
    assert tile.at_start(lambda _: 196) == 0


def test_multiples_leave_quotients() -> None:
    # (8 * a + b) // 4 = 2 * a + b // 4, of which each a gives two values of b's eight
    form = AffineForm(0, {0: 8, 1: 1}).floordiv(4)
    assert form == AffineForm(0, {0: 2, Quotient(AffineForm(0, {1: 1}), 4): 1})
    assert form.floormod(4).count(lambda loop: 8 if loop else 1) == 2
