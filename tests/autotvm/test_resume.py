"""Tuning goes on where it stopped."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tvm import autotvm
from tvm.autotvm.record import encode, own_records
from tvm.autotvm.tuner import DropletTuner, GATuner, GridSearchTuner, RandomTuner, XGBTuner

from .made_up import far_from_16_by_32, tune
from .templates import matmul_task, record_of

TUNERS = {
    "grid": GridSearchTuner,
    "random": RandomTuner,
    "ga": lambda task: GATuner(task, pop_size=8),
    "droplet": DropletTuner,
    "xgb": lambda task: XGBTuner(task, plan_size=8, feature_type="knob", num_threads=1),
}


def _stopped_after(count: int, make: Any, log: Path) -> list[int]:
    write = autotvm.callback.log_to_file(log)
    return tune(make(matmul_task()), n_trial=count, callbacks=[write])


@pytest.mark.parametrize("name", [name for name in TUNERS if name != "droplet"])
def test_each_point_is_measured_once_in_both_runs_together(name: str, tmp_path: Path) -> None:
    log = tmp_path / "records.log"
    first = _stopped_after(12, TUNERS[name], log)
    tuner = TUNERS[name](matmul_task())
    assert tuner.resume(autotvm.record.load_from_file(log)) == 12
    fastest = min(first, key=lambda i: far_from_16_by_32(tuner.space.get(i)))
    assert tuner.best_flops == pytest.approx(
        tuner.task.flop / far_from_16_by_32(tuner.space.get(fastest))
    )
    assert sorted(first + tune(tuner, n_trial=30)) == list(range(42))


def test_a_droplet_goes_on_from_the_fastest(tmp_path: Path) -> None:
    log = tmp_path / "records.log"
    first = _stopped_after(4, DropletTuner, log)
    tuner = DropletTuner(matmul_task())
    tuner.resume(autotvm.record.load_from_file(log))
    assert not set(first) & set(tune(tuner))
    assert tuner.best_flops == pytest.approx(tuner.task.flop / 1e-3)


def test_records_of_others_are_left_out() -> None:
    task = matmul_task()
    other = matmul_task(64, 16, 64)
    changed, result = record_of(task, 3, 0.1)
    changed.config.index = 4  # as if the template had listed its tiles in another order
    assert own_records(task, [record_of(other, 3, 0.1), (changed, result)]) == []


def test_what_failed_is_tried_again_and_what_is_illegal_is_not() -> None:
    task = matmul_task()
    records = [record_of(task, i, 1.0, error_no=i) for i in (0, 1, 2, 4, 6, 7)]
    tuner = GridSearchTuner(task)
    assert tuner.resume(records) == 2
    assert tune(tuner, n_trial=3) == [2, 3, 4]


def test_of_two_records_of_a_point_the_faster_counts() -> None:
    task = matmul_task()
    found = own_records(task, [record_of(task, 5, cost) for cost in (0.3, 0.1, 0.2)])
    assert [result.costs for _, result in found] == [(0.1,)]


def test_a_line_that_was_cut_off_costs_itself_only(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log, task = tmp_path / "records.log", matmul_task()
    first, second = [record_of(task, i, 0.1) for i in (1, 2)]
    log.write_text(f"{encode(*first)}\n{encode(*first)[:40]}")
    autotvm.callback.log_to_file(log)(None, [second[0]], [second[1]])
    for _ in range(2):
        found = [inp.config.index for inp, _ in autotvm.record.load_from_file(log)]
        assert found == [1, 2]
    assert [r.getMessage() for r in caplog.records] == [
        f"{log}: incomplete records are left out: line 2"
    ]


def test_a_damaged_byte_costs_its_line_only(tmp_path: Path) -> None:
    log, task = tmp_path / "records.log", matmul_task()
    first, second = [encode(*record_of(task, i, 0.1)).encode() for i in (1, 2)]
    log.write_bytes(b"\xef\xbb\xbf" + first + b"\n" + first[:50] + b"\xff\n" + second + b"\n")
    found = [inp.config.index for inp, _ in autotvm.record.load_from_file(log)]
    assert found == [1, 2]


def test_what_is_no_log_is_rejected(tmp_path: Path) -> None:
    for content in (b"\x08\x07\x12\xff\xfe model", b"some text\nmore text", b"text"):
        path = tmp_path / "model.onnx"
        path.write_bytes(content)
        with pytest.raises(ValueError):
            list(autotvm.record.load_from_file(path))
        assert path.read_bytes() == content
