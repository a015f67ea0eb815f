"""Records: lines of the classic format, tasks, torn logs."""

from __future__ import annotations

from pathlib import Path

import pytest

import tvm
from tvm import auto_scheduler
from tvm.auto_scheduler.measure_record import dump_record_to_string, load_record_from_string
from tvm.error import TVMError
from tvm.testing.auto_scheduler import matmul_auto_scheduler_test

LINE = (
    r'{"i": [["[\"matmul_auto_scheduler_test\", 512, 512, 512]", "llvm -keys=cpu ", '
    r"[6, 64, 64, 0, 0, 0, 0, 0], "
    r'"", 1, []], [[], [["CHW", 2, "local"], ["SP", 2, 0, 512, [1, 16, 32], 1], '
    r'["SP", 2, 4, 512, [4, 1, 16], 1], ["SP", 2, 8, 512, [2], 1], '
    r'["RE", 2, [0, 4, 1, 5, 8, 2, 6, 9, 3, 7]], ["FSP", 3, 0, 1, 2], ["FSP", 3, 3, 2, 2], '
    r'["RE", 3, [0, 3, 1, 4, 2, 5]], ["CA", 2, 3, 3], ["FU", 3, [0, 1, 2]], ["AN", 3, 0, 3], '
    r'["PR", 2, 0, "auto_unroll_max_step$64"], ["AN", 2, 9, 2], ["AN", 3, 3, 2]]]], '
    r'"r": [[0.00536798, 1.25e-05], 0, 2.49277, 1585564852], "v": "v0.6"}' + "\n"
)


def task(n: int = 64) -> auto_scheduler.SearchTask:
    return auto_scheduler.SearchTask(func=matmul_auto_scheduler_test, args=(n, n, n), target="llvm")


def test_classic_lines_load_and_save_byte_for_byte() -> None:
    line = LINE.replace("llvm -keys=cpu ", str(tvm.target.Target("llvm")))
    inp, res = load_record_from_string(line)
    assert dump_record_to_string(inp, res) == line
    assert inp.task.hardware_params.num_cores == 6
    assert [float(cost.value) for cost in res.costs] == [0.00536798, 1.25e-05]


def test_states_of_records_are_recovered() -> None:
    inp, _ = load_record_from_string(LINE)
    dag = task(512).compute_dag
    state = dag.infer_bound_from_state(inp.state)
    assert [op.name for op in state.stage_ops] == ["A", "B", "C.local", "C"]
    assert str(state).startswith("Placeholder: A, B\nparallel i.0@j.0@i.1@ (0,")
    assert dump_record_to_string(auto_scheduler.MeasureInput(inp.task, state), _)


def test_all_steps_go_through_a_line() -> None:
    t = task()
    s = t.compute_dag.get_init_state()
    c = s.stage_ops[2]
    s.split(c, s[c].iters[2], [8])
    partial = s.rfactor(c, s[c].iters[3], 2)
    s.storage_align(partial, s[partial].iters[1], 8, 4)
    s.cache_read(s.stage_ops[0], "global", [partial])
    s.bind(c, s[c].iters[0], "vthread")
    inp = auto_scheduler.MeasureInput(t, s)
    res = auto_scheduler.MeasureResult([0.1], 0, "", 0.2, 1)
    loaded, result = load_record_from_string(dump_record_to_string(inp, res))
    assert loaded.state.transform_steps == s.transform_steps and str(result) == str(res)
    # the names of loops tell that the rows do the same
    assert str(t.compute_dag.full_state(loaded.state)) == str(s)


def test_torn_lines_are_left_out(tmp_path: Path) -> None:
    log = tmp_path / "log.json"
    log.write_text(LINE + LINE[: len(LINE) // 2])
    assert len(list(auto_scheduler.load_records(log))) == 1
    auto_scheduler.save_records(log, *[[x] for x in load_record_from_string(LINE)])
    inputs, results = auto_scheduler.RecordReader(log).read_lines()
    assert len(inputs) == len(results) == 2


def test_a_damaged_byte_costs_its_line_only(tmp_path: Path) -> None:
    log = tmp_path / "log.json"
    log.write_bytes(LINE.encode() + b"\xff\xfe\n" + b'{"i": \xff\n' + LINE.encode())
    assert len(list(auto_scheduler.load_records(log))) == 2


@pytest.mark.parametrize(
    ("step", "message"),
    [
        ('["SP", 99, 0, 64, [4], 1]', "stages and loops that the state has"),
        ('["SP", 2, 7, 64, [4], 1]', "stages and loops that the state has"),
        ('["SP", 2, 0, 64, [0], 1]', "lengths for all splits"),
    ],
)
def test_steps_that_no_state_has_are_rejected(tmp_path: Path, step: str, message: str) -> None:
    log = tmp_path / "log.json"
    inp = auto_scheduler.MeasureInput(task(), task().compute_dag.init_state)
    line = dump_record_to_string(inp, auto_scheduler.MeasureResult([0.1], 0, "", 0.2, 1))
    log.write_text(line.replace("[[], []]", f"[[], [{step}]]"))
    with pytest.raises(TVMError, match=message):
        task().apply_best(log)


def test_times_of_records_are_numbers(tmp_path: Path) -> None:
    with pytest.raises(TVMError, match="a record needs a candidate and a result"):
        load_record_from_string(LINE.replace("0.00536798", '"fast"'))


def test_best_record_is_of_the_workload(tmp_path: Path) -> None:
    log = tmp_path / "log.json"
    for n, cost in ((64, 0.2), (64, 0.1), (32, 0.01)):
        inp = auto_scheduler.MeasureInput(task(n), task(n).compute_dag.init_state)
        res = auto_scheduler.MeasureResult([cost], 0, "", 0.2, 1)
        auto_scheduler.save_records(log, [inp], [res])
    key = task().workload_key
    _, best = auto_scheduler.load_best_record(log, key)
    assert float(best.costs[0].value) == pytest.approx(0.1)
    _, compatible = auto_scheduler.load_best_record(log, key, "llvm", include_compatible=True)
    assert float(compatible.costs[0].value) == pytest.approx(0.01)
    sch, args = task().apply_best(log)
    assert len(args) == 3 and "C" in repr(sch)
    with pytest.raises(RuntimeError, match="Cannot find any valid schedule"):
        task(128).apply_best(log)


def test_old_records_have_fewer_fields() -> None:
    text = '["[\\"matmul_auto_scheduler_test\\", 64, 64, 64]", "llvm", [6, 64, 64, 0, 0, 0, 0, 0], "", 1]'
    loaded = auto_scheduler._ffi_api.DeserializeSearchTask(text)
    assert loaded.workload_key == task().workload_key and loaded.task_input_names == []
    again = auto_scheduler._ffi_api.DeserializeSearchTask(
        auto_scheduler._ffi_api.SerializeSearchTask(task())
    )
    assert str(again.target) == str(task().target)


def test_targets_of_older_releases_are_read() -> None:
    inp, _ = load_record_from_string(
        LINE.replace("llvm -keys=cpu ", "llvm -keys=cpu -link-params=0")
    )
    assert str(inp.task.target) == "llvm -keys=cpu"


def test_what_is_no_record_is_refused() -> None:
    with pytest.raises(tvm.TVMError, match="a record needs"):
        load_record_from_string('{"i": []}')
    with pytest.raises(tvm.TVMError, match="begins with one of"):
        load_record_from_string(LINE.replace('"CHW"', '"XYZ"'))
