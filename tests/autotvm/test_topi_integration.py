from __future__ import annotations

import pytest

import tvm
from tvm import autotvm, te
from tvm.autotvm.task.topi_integration import TaskExtractEnv, get_workload

from .templates import record_of, scale, schedule_scale


def test_compute_and_schedule_are_joined_to_a_task() -> None:
    data = te.placeholder((16,), name="data")
    task = autotvm.task.create("tests/scale.x86", args=(data, 2.0), target="llvm")
    assert len(task.config_space) == 2 * 5
    assert task.workload == ("tests/scale.x86", ("TENSOR", (16,), "float32"), 2.0)
    with task.target:
        _, args = task.instantiate(task.config_space.get(9))
    assert [tensor.op.name for tensor in args] == ["scale", "placeholder"]


def test_the_schedule_finds_the_workload_behind_an_epilogue() -> None:
    data = te.placeholder((16,), name="data")
    task = autotvm.task.create("tests/scale.x86", args=(data, 2.0), target="llvm")
    with task.target, autotvm.apply_history_best([record_of(task, 6, 0.1)]):
        out = scale(data, 2.0)
        shifted = te.compute((16,), lambda i: out[i] + 1.0)
        assert get_workload(shifted) == task.workload
        assert get_workload([shifted], "other") is None
        text = str(tvm.lower(schedule_scale([out]), [data, out]))
    assert "i_inner in range(8)" in text or ", 8)" in text


def test_a_schedule_of_foreign_tensors_is_rejected() -> None:
    data = te.placeholder((16,))
    with pytest.raises(RuntimeError, match="Cannot find TOPI workload tests/scale.x86"):
        schedule_scale([te.compute((16,), lambda i: data[i])])


def test_the_workload_is_no_part_of_the_program() -> None:
    data = te.placeholder((16,), name="data")
    out = scale(data, 2.0)
    assert "workload" not in str(te.create_prim_func([data, out]))


def test_calls_inside_an_environment_are_collected_once() -> None:
    data = te.placeholder((16,))
    with TaskExtractEnv.get() as env:
        scale(data, 2.0)
        scale(data, 2.0)
        scale(data, 3.0)
        assert TaskExtractEnv.current is env
    tensor = ("TENSOR", (16,), "float32")
    assert env.get_tasks() == [("tests/scale.x86", (tensor, f)) for f in (2.0, 3.0)]
    assert TaskExtractEnv.current is None
    env.reset()
    assert env.get_tasks() == []
