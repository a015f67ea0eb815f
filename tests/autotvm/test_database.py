from __future__ import annotations

import logging
import sys

import pytest

import tvm
from tvm import autotvm
from tvm.autotvm.database import DummyDatabase, RedisDatabase, filter_inputs

from .templates import matmul_task, record_of


def test_results_are_kept_by_candidate() -> None:
    db = DummyDatabase()
    task = matmul_task()
    inp, res = record_of(task, 1, 0.5)
    assert db.load(inp) is None
    later = res._replace(costs=(0.4,), timestamp=5.0)
    db.save(inp, later)
    db.save(inp, res, extend=True)
    assert db.load(inp).costs == (0.4,)
    assert [found.costs for found in db.load(inp, get_all=True)] == [(0.4,), (0.5,)]
    db.save(inp, res)
    assert db.load(inp).costs == (0.5,)
    assert db.load(record_of(task, 2, 0)[0]) is None
    db.flush()
    assert db.load(inp) is None


def test_candidates_without_a_result_are_found() -> None:
    db = DummyDatabase()
    task = matmul_task()
    good, bad = record_of(task, 1, 0.5), record_of(task, 2, 0.5, error_no=4)
    for record in (good, bad):
        db.save(*record)
    inputs = [good[0], bad[0], record_of(task, 3, 0)[0]]
    found, unsaved = filter_inputs(db, inputs)
    assert [res is None for res in found] == [False, False, True]
    assert [inp.config.index for inp in unsaved] == [3]
    _, unsaved = filter_inputs(db, inputs, retry=True)
    assert [inp.config.index for inp in unsaved] == [2, 3]


def test_records_are_filtered_by_a_function() -> None:
    db = DummyDatabase()
    for index, cost in ((1, 0.5), (2, 0.1)):
        autotvm.callback.log_to_database(db)(
            None, *[[x] for x in record_of(matmul_task(), index, cost)]
        )
    db.set("something else", "no record")
    fast = db.filter(lambda inp, results: min(results[0].costs) < 0.2)
    assert [inp.config.index for inp, _ in fast] == [2]


def test_redis_needs_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "redis", None)
    with pytest.raises(
        tvm.TVMError, match=r"requires the package redis[\s\S]*classic-tvm\[redis\]"
    ):
        RedisDatabase()


def test_nothing_is_downloaded(caplog: pytest.LogCaptureFixture) -> None:
    task = matmul_task()
    with caplog.at_level(logging.DEBUG, logger="autotvm"), autotvm.tophub.context("llvm") as best:
        assert best.query(task.target, task.workload).is_fallback
    assert "No records are downloaded for llvm" in caplog.text
    assert autotvm.tophub.load_reference_log("llvm", "unknown", "conv2d_NCHWc.x86") == []
    assert autotvm.tophub.check_backend("", "llvm") is False
    with pytest.raises(tvm.TVMError, match="no records are downloaded"):
        autotvm.tophub.download_package("", "llvm_v0.04.log")
