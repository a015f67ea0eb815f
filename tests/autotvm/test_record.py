from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import pytest

from tvm import autotvm
from tvm.autotvm import record

from .templates import matmul_task, record_of

CLASSIC_LINE = (
    '{"input": ["llvm -keys=cpu -link-params=0", "dense_nopack.x86", [["TENSOR", [1, 512], "float32"], '
    '["TENSOR", [1000, 512], "float32"], null, "float32"], {}], "config": {"index": 42, "code_hash": '
    'null, "entity": [["tile_y", "sp", [-1, 1]], ["tile_x", "sp", [-1, 20]], ["tile_k", "sp", [-1, '
    '64]], ["unroll", "ot", [1, 2]]]}, "result": [[1.5e-05, 1.7e-05], 0, 0.31, 1613063046.1], '
    '"version": 0.2, "tvm_version": "0.8.dev0"}\n'
)


def test_a_classic_line_is_read() -> None:
    inp, res = record.decode(CLASSIC_LINE)  # type: ignore[misc]
    data = ("TENSOR", (1, 512), "float32")
    weight = ("TENSOR", (1000, 512), "float32")
    assert inp.task.workload == ("dense_nopack.x86", data, weight, None, "float32")
    assert inp.config["tile_x"].size == [-1, 20]
    assert inp.config["unroll"].val == (1, 2)
    assert inp.target.kind.name == "llvm"
    assert res.costs == (1.5e-05, 1.7e-05)
    assert inp.config.cost == pytest.approx(1.6e-5)


@pytest.mark.parametrize("protocol", ["json", "pickle"])
def test_records_are_written_and_read_back(protocol: str) -> None:
    inp, res = record_of(matmul_task(), 5, 0.25)
    back, result = record.decode(record.encode(inp, res, protocol), protocol)  # type: ignore[misc]
    assert record.measure_str_key(back) == record.measure_str_key(inp)
    assert tuple(result) == tuple(res)


def test_the_written_line_has_the_classic_fields() -> None:
    inp, res = record_of(matmul_task(), 8, 0.25)
    line = json.loads(record.encode(inp, res._replace(costs=(np.float32(0.25),))))
    assert line["input"] == [str(inp.target), "tests/matmul", [32, 16, 64, "float32"], {}]
    assert line["config"]["index"] == 8
    assert line["config"]["entity"][0] == ["tile_y", "sp", [-1, 4]]
    assert line["result"] == [[0.25], 0, 1.0, 0.0]
    assert line["version"] == 0.2


def test_failures_are_written_as_slow() -> None:
    inp, _ = record_of(matmul_task(), 5, 0.25)
    failed = autotvm.MeasureResult((RuntimeError("no"),), 4, 1.0, 0.0)
    assert json.loads(record.encode(inp, failed))["result"] == [[1e9], 4, 1.0, 0.0]


def test_the_deprecated_target_option_is_renamed() -> None:
    line = CLASSIC_LINE.replace("-link-params=0", "-target=aarch64-linux-gnu")
    inp, _ = record.decode(line)  # type: ignore[misc]
    assert inp.target.attrs["mtriple"] == "aarch64-linux-gnu"


def test_old_versions_are_left_out_and_garbage_is_rejected() -> None:
    assert record.decode('{"i": [], "v": 0.1}') is None
    with pytest.raises(ValueError, match="a line of JSON"):
        record.decode('{"input": [')
    with pytest.raises(ValueError, match="needs input, config and result"):
        record.decode('{"input": ["llvm", "x", []]}')
    with pytest.raises(RuntimeError, match="Invalid log protocol: xml"):
        record.decode("", "xml")


def test_logs_are_read_from_files_and_buffers(tmp_path: Path) -> None:
    text = f"# a comment\n\n{CLASSIC_LINE}"
    (tmp_path / "a.log").write_text(text)
    for found in (
        list(record.load_from_file(tmp_path / "a.log")),
        list(record.load_from_buffer(io.StringIO(text))),
    ):
        assert [inp.task.name for inp, _ in found] == ["dense_nopack.x86"]
    best = autotvm.apply_history_best(tmp_path / "a.log")
    assert len(best.best_by_targetkey) == 1
    assert len(autotvm.apply_history_best(io.StringIO(text)).best_by_targetkey) == 1
    assert len(autotvm.apply_history_best([str(tmp_path / "a.log")]).best_by_targetkey) == 1


def test_the_best_of_each_workload_is_picked(tmp_path: Path) -> None:
    one, two = matmul_task(32), matmul_task(64)
    records = [record_of(one, 1, 0.5), record_of(one, 2, 0.1), record_of(two, 3, 0.9)]
    records.append(record_of(one, 4, 0.01, error_no=4))
    path = tmp_path / "all.log"
    path.write_text("".join([f"{record.encode(*r)}\n" for r in [*records, records[0]]]))
    record.pick_best(str(path), str(tmp_path / "best.log"))
    best = record.load_from_file(tmp_path / "best.log")
    assert [inp.config.index for inp, _ in best] == [2, 3]
    record.split_workload(str(path))
    parts = [list(record.load_from_file(f"{path}.{number:03d}.wkl")) for number in range(2)]
    assert [len(part) for part in parts] == [2, 1]
