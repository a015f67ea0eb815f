"""Records decide how `relay.build` makes kernels, and never what they compute."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

import tvm
from tvm import autotvm, relay
from tvm.contrib import graph_executor
from tvm.relay.backend import te_compiler
from tvm.topi.configuration import knob_value

from .records import TARGET, Record, conv_and_dense, record, tasks_of, weight, with_knobs


def built(func: relay.Function, caplog: pytest.LogCaptureFixture) -> tuple[np.ndarray, str]:
    """The output for one input, and the line about how kernels were scheduled."""
    caplog.clear()
    with caplog.at_level(logging.INFO, "tvm.relay"), tvm.transform.PassContext(opt_level=3):
        module = graph_executor.GraphModule(relay.build(func, "llvm")["default"](tvm.cpu()))
    shape = [int(extent) for extent in func.params[0].checked_type.shape]
    module.set_input("x", np.random.default_rng(2).normal(size=shape).astype("float32"))
    module.run()
    line = next(r.getMessage() for r in caplog.records if "kernels:" in r.getMessage())
    return module.get_output(0).numpy(), line


def kernels_of(func: relay.Function, records: Sequence[Record]) -> str:
    """The program after the passes that choose layouts and algorithms."""
    with autotvm.apply_history_best(records), tvm.transform.PassContext(opt_level=3):
        return str(relay.optimize(tvm.IRModule.from_expr(func), TARGET)[0])


def algorithm(number: int) -> object:
    return lambda config: knob_value(config, "winograd") == number


def test_records_are_used_and_the_numbers_stay(
    caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    func = conv_and_dense()
    expected, line = built(func, caplog)
    assert "tuned records" not in line
    tasks = autotvm.task.extract_from_program(func, {}, "llvm")
    log = tmp_path / "tuned.log"
    log.write_text("".join([autotvm.record.encode(*record(task)) + "\n" for task in tasks]))
    with autotvm.apply_history_best(str(log)):
        found, line = built(func, caplog)
    assert line.startswith(
        "5 kernels: 3 with tiles of tuned records, 0 with tiles of the cost model"
    )
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("m", [0, 2, 4])
def test_a_record_chooses_the_algorithm_of_a_convolution(m: int) -> None:
    func = conv_and_dense()
    made = record(tasks_of(func)[0], algorithm(m))  # type: ignore[arg-type]
    text = kernels_of(func, [made])
    assert (f"tile_size={m}" in text) is (m > 0)
    assert ("contrib_conv2d_winograd" in text) is (m > 0)


def test_of_two_records_the_faster_counts() -> None:
    func = conv_and_dense()
    task = tasks_of(func)[0]
    slow = record(task, algorithm(4), 2e-3)  # type: ignore[arg-type]
    fast = record(task, algorithm(2), 1e-3)  # type: ignore[arg-type]
    assert "tile_size=2" in kernels_of(func, [slow, fast])


def test_a_classic_record_without_an_algorithm_is_of_the_plain_one() -> None:
    func = conv_and_dense()
    classic = with_knobs(
        tasks_of(func)[0],
        ["tile_ic", "sp", [-1, 8]],
        ["tile_oc", "sp", [-1, 8]],
        ["tile_ow", "sp", [-1, 7]],
        ["unroll_kw", "ot", True],
    )
    assert "winograd" not in kernels_of(func, [classic])


def test_an_illegal_record_is_rejected_with_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    func = conv_and_dense()
    tasks = autotvm.task.extract_from_program(func, {}, "llvm")
    illegal = with_knobs(tasks[2], ["tile_y", "sp", [-1, 4]], ["tile_x", "sp", [-1, 4096]])
    expected, _ = built(func, caplog)
    caplog.clear()
    with autotvm.apply_history_best([illegal]):
        found, line = built(func, caplog)
        warnings = [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]
        built(func, caplog)
        assert not [r for r in caplog.records if r.levelno == logging.WARNING]
    assert "tuned records" not in line
    np.testing.assert_array_equal(found, expected)
    assert len(warnings) == 1
    assert "dense_pack.x86" in warnings[0] and "tile_x=4096" in warnings[0]


def test_the_nearest_record_of_the_same_kind_is_used(caplog: pytest.LogCaptureFixture) -> None:
    func = conv_and_dense()
    task = autotvm.task.extract_from_program(func, {}, "llvm")[2]
    made = record(task, lambda config: knob_value(config, "tile_y") == 4)
    x = relay.var("x", shape=(4, 288))
    similar = relay.Function([x], relay.nn.dense(x, weight(64, 288)))
    expected, _ = built(similar, caplog)
    config = {"tile_y": knob_value(made[0].config, "tile_y")}
    close = with_knobs(made[0].task, ["tile_y", "sp", [-1, config["tile_y"]]])
    with autotvm.apply_history_best([close]):
        found, line = built(similar, caplog)
    assert "1 with tiles of the nearest records" in line
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def test_a_record_of_another_window_is_not_taken(caplog: pytest.LogCaptureFixture) -> None:
    x = relay.var("x", shape=(1, 32, 14, 14))
    other = relay.Function([x], relay.nn.conv2d(x, weight(32, 32, 1, 1)))
    made = record(autotvm.task.extract_from_program(conv_and_dense(), {}, "llvm")[0])
    with autotvm.apply_history_best([made]):
        assert "record" not in built(other, caplog)[1]


def test_the_best_of_a_graph_is_used_once_for_each_of_its_operators(
    caplog: pytest.LogCaptureFixture,
) -> None:
    func = conv_and_dense()
    tasks = autotvm.task.extract_from_program(func, {}, "llvm")
    expected, _ = built(func, caplog)
    with autotvm.apply_graph_best([record(task) for task in tasks]):
        found, line = built(func, caplog)
    assert "3 with tiles of tuned records" in line
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-3)


def test_a_fixed_configuration_leaves_other_tasks_to_the_model(
    caplog: pytest.LogCaptureFixture,
) -> None:
    tasks = autotvm.task.extract_from_program(conv_and_dense(), {}, "llvm")
    with autotvm.apply_fixed_config([tasks[2]], "dense_pack.x86"):
        line = built(conv_and_dense(), caplog)[1]
    assert "1 with tiles of tuned records, 2 with tiles of the cost model" in line


def test_the_implementation_with_the_fastest_record_is_selected() -> None:
    x = relay.var("x", shape=(4, 16))
    call = relay.Function([x], relay.nn.dense(x, weight(16, 16))).body
    op, attrs = call.op, call.attrs
    computes = {
        name: autotvm.register_topi_compute(name)(
            lambda cfg, a, b: tvm.topi.nn.dense(a, b, None, "float32")
        )
        for name in ("ways.first", "ways.second")
    }
    strategy = relay.op.OpStrategy()
    for level, (name, compute) in enumerate(computes.items()):
        autotvm.register_topi_schedule(name)(lambda cfg, outs: tvm.te.create_schedule(outs[0].op))
        strategy.add_implementation(
            lambda attrs, inputs, out_type, compute=compute: [compute(*inputs)],
            lambda attrs, outs, target: tvm.te.create_schedule(outs[0].op),
            name=name,
            plevel=20 - level,
        )
    inputs = [tvm.te.placeholder((4, 16)), tvm.te.placeholder((16, 16))]
    args = (attrs, inputs, relay.TensorType((4, 16)), tvm.target.Target("llvm"))
    task = autotvm.task.create("ways.second", args=inputs, target="llvm")
    log = [(autotvm.MeasureInput(task.target, task, task.config_space.get(0)),
            autotvm.MeasureResult((1e-3,), 0, 0.1, 0.0))]  # fmt: skip
    op.set_facets(strategy=lambda *given: strategy)
    try:
        select = te_compiler.select_implementation
        assert select(op, *args)[0].name == "ways.first"
        with autotvm.apply_history_best(log):
            assert select(op, *args)[0].name == "ways.second"
            assert select(op, *args, use_autotvm=False)[0].name == "ways.first"
    finally:
        op.set_facets(strategy=None)


def test_operations_name_their_workload_only_where_records_are() -> None:
    a, b = tvm.te.placeholder((4, 16)), tvm.te.placeholder((16, 16))
    plain = tvm.topi.nn.dense(a, b)
    assert "workload" not in plain.op.attrs
    with autotvm.apply_history_best([]):
        asked = tvm.topi.nn.dense(a, b)
    assert autotvm.task.get_workload([asked])[0] == "dense_nopack.x86"
