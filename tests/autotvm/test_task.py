from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import tvm
from tvm import autotvm, te, tir
from tvm.autotvm.task.dispatcher import ApplyConfig, ApplyFixedConfig, FallbackContext
from tvm.autotvm.task.task import args_to_workload, compute_flop, deserialize_args, serialize_args
from tvm.contrib.popen_pool import PopenWorker

from .templates import matmul, matmul_task, record_of


def test_a_task_collects_its_space_and_counts_operations() -> None:
    task = matmul_task(32, 16, 64)
    assert task.workload == ("tests/matmul", 32, 16, 64, "float32")
    assert len(task.config_space) == 6 * 7
    assert task.flop == 2 * 32 * 16 * 64
    assert str(task.target) == str(tvm.target.Target("llvm"))


def test_each_configuration_computes_the_same() -> None:
    task = matmul_task(8, 4, 8)
    a, b = np.random.rand(8, 4).astype("float32"), np.random.rand(4, 8).astype("float32")
    for index in (0, 5, len(task.config_space) - 1):
        with task.target:
            s, args = task.instantiate(task.config_space.get(index))
            func = tvm.build(s, args)
        out = tvm.nd.array(np.zeros((8, 8), "float32"))
        func(tvm.nd.array(a), tvm.nd.array(b), out)
        np.testing.assert_allclose(out.numpy(), a @ b, rtol=1e-5)


def test_arguments_are_serialized_and_back() -> None:
    a = te.placeholder((2, 3), "int8")
    args = (a, [a, 1], (1, 2.5), "NCHW", None, tir.const(3, "int32"), np.int64(4), True)
    packed = serialize_args(args)
    tensor = ("TENSOR", (2, 3), "int8")
    assert packed == (tensor, (tensor, 1), (1, 2.5), "NCHW", None, 3, 4, True)
    live = deserialize_args(packed)
    assert live[0].dtype == "int8"
    assert live[1][0].shape[1] == 3
    assert args_to_workload([a], "name") == ("name", tensor)
    with pytest.raises(RuntimeError, match='Do not support type "object"'):
        serialize_args([object()])


def test_tasks_of_scripts_and_closures_go_to_other_processes() -> None:
    @autotvm.template("tests/closure")
    def add(n: int) -> tuple[Any, list[Any]]:
        x = te.placeholder((n,), name="x")
        y = te.compute((n,), lambda i: x[i] + 1.0)
        autotvm.get_config().define_knob("k", [1, 2])
        return te.create_schedule(y.op), [x, y]

    task = autotvm.task.create("tests/closure", args=(4,), target="llvm")
    worker = PopenWorker()
    worker.send(_instantiate, [task, task.config_space.get(1)], timeout=60)
    assert worker.recv() == 2
    assert len(pickle.loads(pickle.dumps(task)).config_space) == 2


def test_tasks_of_modules_are_sent_by_their_names() -> None:
    data = te.placeholder((16,), name="data")
    tasks = [matmul_task(), autotvm.task.create("tests/scale.x86", (data, 2.0), "llvm")]
    for task in tasks:
        message = pickle.dumps(task.without_space())
        assert len(message) < 2000
        assert pickle.loads(message).func is task.func
    assert tasks[0].func.home() == matmul.__module__

    @autotvm.template("tests/nowhere else")
    def local(n: int) -> None:
        """In this function only."""

    assert autotvm.task.Task("tests/nowhere else", (1,)).func.home() is None


def _instantiate(task: Any, config: Any) -> int:
    _, args = task.instantiate(config)
    return len(args)


def test_a_missing_template_is_named_when_it_is_called() -> None:
    task = autotvm.task.Task("tests/matmull", (1,))
    with pytest.raises(RuntimeError, match="missing task tests/matmull.*did you mean"):
        task.instantiate(autotvm.ConfigSpace())


def test_a_name_is_registered_once_and_arguments_are_positional() -> None:
    with pytest.raises(ValueError, match="already registered in autoTVM task tests/matmul"):
        autotvm.template("tests/matmul", lambda n: None)
    with pytest.raises(TypeError, match="by place only"):
        matmul(8, 8, 8, dtype="float32")


def flop_of(function: Any, *shapes: tuple[int, ...]) -> int:
    out = function(*[te.placeholder(shape) for shape in shapes])
    return compute_flop(te.create_schedule(out.op))


def test_operations_are_counted_in_every_stage_once() -> None:
    def chain(a: Any) -> Any:
        b = te.compute((4, 4), lambda i, j: te.exp(a[i + 1, j] * 2.0))
        return te.compute((4, 4), lambda i, j: b[i, j] + b[j, i])

    assert flop_of(chain, (5, 4)) == 16 * 1 + 16 * 1

    def select(a: Any) -> Any:
        return te.compute((4,), lambda i: tir.Select(i < 2, a[i] * 2.0 + 1.0, a[i]))

    assert flop_of(select, (4,)) == 4 * (1 + 2)

    def total(a: Any) -> Any:
        k = te.reduce_axis((0, 8))
        return te.compute((4,), lambda i: te.sum(a[i, k].astype("float64"), axis=k))

    assert flop_of(total, (4, 8)) == 32


def test_programs_whose_operations_cannot_be_counted_need_add_flop() -> None:
    a = te.placeholder((4,))
    with pytest.raises(RuntimeError, match="Cannot find float number operation.*add_flop"):
        compute_flop(te.create_schedule(te.compute((4,), lambda i: a[i]).op))
    copy = te.extern((4,), [a], lambda ins, outs: tir.Evaluate(0))
    with pytest.raises(RuntimeError, match="FLOP estimator fails.*Only support te.compute"):
        compute_flop(te.create_schedule(copy.op))


def test_the_fastest_record_of_a_target_decides() -> None:
    task = matmul_task()
    records = [record_of(task, 3, 0.5), record_of(task, 9, 0.2), record_of(task, 4, 0.1, 1)]
    with autotvm.apply_history_best(records) as best, tvm.target.Target("llvm"):
        assert best.query(task.target, task.workload).index == 9
        s, args = matmul(32, 16, 64, "float32")
    text = str(tvm.lower(s, args))
    with task.target:
        assert text == str(tvm.lower(*task.instantiate(task.config_space.get(9))))


def test_records_by_model_come_before_records_by_key() -> None:
    task = matmul_task()
    near, far = record_of(task, 1, 0.1), record_of(task, 2, 0.5)
    far = (far[0]._replace(target=tvm.target.Target("llvm -model=mine")), far[1])
    best = autotvm.apply_history_best([near, far])
    assert best.query(tvm.target.Target("llvm -model=mine"), task.workload).index == 2
    assert best.query(tvm.target.Target("llvm -model=other"), task.workload).index == 1


def test_what_is_updated_counts_as_the_fastest() -> None:
    task = matmul_task()
    best = autotvm.apply_history_best([record_of(task, 1, 1e-9)])
    best.update(task.target, task.workload, task.config_space.get(7))
    assert best.query(task.target, task.workload).index == 7


def test_unknown_workloads_go_to_the_contexts_around() -> None:
    task = matmul_task()
    with ApplyConfig(task.config_space.get(5)), autotvm.apply_history_best([]) as best:
        assert best.query(task.target, task.workload).index == 5
    assert best.query(task.target, task.workload).index == 5
    assert autotvm.apply_history_best(None).query(task.target, ("never",)).is_fallback
    with pytest.raises(RuntimeError, match="Need a target context"), best:
        matmul(32, 16, 64, "float32")


def test_a_fallback_is_kept_until_it_is_cleared() -> None:
    target = tvm.target.Target("llvm")
    with FallbackContext() as context:
        first = context.query(target, ("w", 1))
        assert first.is_fallback
        assert context.query(target, ("w", 1)) is first
        autotvm.task.clear_fallback_cache(target, ("w", 1))
        assert context.query(target, ("w", 1)) is not first
    with target:
        assert len(matmul(8, 8, 8, "float32")[1]) == 3


def test_a_fixed_schedule_gets_the_low_cost() -> None:
    task = matmul_task()
    with ApplyFixedConfig([task], "tests/matmul") as context:
        assert context.query(task.target, task.workload).cost == 1e-6
        with pytest.raises(RuntimeError, match="does not exist"):
            context.query(task.target, ("other",))
    with ApplyFixedConfig([task], ["another"]) as context:
        assert context.query(task.target, task.workload).cost == 100000.0


def test_a_graph_takes_the_records_of_each_workload_in_their_order() -> None:
    one, two = matmul_task(32), matmul_task(64)
    records = [record_of(one, 1, 1), record_of(two, 2, 1), record_of(one, 3, 1)]
    with autotvm.apply_graph_best(records) as graph:
        found = [graph.query(t.target, t.workload).index for t in (one, one, two, one)]
    assert found == [1, 3, 2, 3]
    assert graph.query(one.target, ("none",)).is_fallback


def test_the_template_text_is_hashed_into_its_space() -> None:
    @autotvm.template("tests/hashed")
    def add(n: int) -> tuple[Any, list[Any]]:
        x = te.placeholder((n,))
        y = te.compute((n,), lambda i: x[i] + 1.0)
        s = te.create_schedule(y.op)

        @autotvm.task.attach_code_hash(s)
        def schedule(knobs: Any) -> None:
            knobs.define_knob("k", [1])

        schedule(autotvm.get_config())
        return s, [x, y]

    task = autotvm.task.create("tests/hashed", args=(4,), target="llvm")
    int(task.config_space.code_hash, 16)
    assert task.config_space.get(0).code_hash == task.config_space.code_hash


def test_a_plain_decorator_names_the_task_after_its_function() -> None:
    @autotvm.template
    def plainly_named(n: int) -> tuple[Any, list[Any]]:
        x = te.placeholder((n,))
        y = te.compute((n,), lambda i: x[i] + 1.0)
        return te.create_schedule(y.op), [x, y]

    assert autotvm.task.create(plainly_named, args=(4,), target="llvm").name == "plainly_named"
