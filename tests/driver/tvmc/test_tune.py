"""`tvmc tune` writes records, and `tvmc compile` uses them."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tvm.driver import tvmc
from tvm.driver.tvmc.autotuner import autotvm_get_tuning_tasks, filter_tasks, gen_task_list
from tvm.driver.tvmc.main import _main

Fails = Callable[..., str]
_QUICK = ["--trials", "2", "--tuner", "random", "--number", "1", "--parallel", "1"]


def test_records_are_written_shown_and_used(
    onnx_file: str,
    image: tuple[str, np.ndarray],
    expected: np.ndarray,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    records = str(tmp_path / "records.log")
    argv = ["tune", onnx_file, "--target", "llvm", "-o", records, "--tasks", "0", *_QUICK]
    assert _main(argv) == 0
    rows = [json.loads(line) for line in Path(records).read_text().splitlines()]
    # what the model takes by itself comes first
    assert len(rows) == 2 and all(row["version"] == 0.2 for row in rows)
    assert all(row["input"][1] == "conv2d_NCHWc.x86" and row["result"][1] == 0 for row in rows)
    assert capsys.readouterr().out == ""
    package = str(tmp_path / "small.tar")
    options = ["--target", "llvm", "-o", package, "--tuning-records", records]
    with caplog.at_level(logging.INFO, "tvm.relay"):
        assert _main(["compile", onnx_file, *options]) == 0
    assert "1 with tiles of tuned records" in caplog.text
    result = tvmc.run(tvmc.TVMCPackage(package), "cpu", inputs={"data": image[1]})
    np.testing.assert_allclose(result.outputs["output_0"], expected, rtol=1e-4, atol=1e-4)


def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines()


def test_tuning_goes_on_with_what_the_file_has(
    onnx_file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    records = tmp_path / "records.log"
    argv = ["tune", onnx_file, "--target", "llvm", "-o", str(records), "--tasks", "0", *_QUICK]
    assert _main(argv) == 0
    first = _lines(records)
    records.write_text("\n".join([*first, first[0][:50]]))  # stopped within a line
    assert _main([*argv, "--trials", "3"]) == 0
    assert "[Task  1/ 1] 2 candidates are known from" in capsys.readouterr().err
    assert _lines(records)[:3] == [*first, first[0][:50]]
    indices = [json.loads(line)["config"]["index"] for line in [*first, _lines(records)[3]]]
    assert len(set(indices)) == 3
    assert _main(argv) == 0  # has what it asks for
    assert len(_lines(records)) == 4


@pytest.mark.parametrize("option", ["--no-resume", "--overwrite"])
def test_starting_over_loses_nothing(
    option: str, onnx_file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    records = tmp_path / "records.log"
    (tmp_path / "records.log.1").write_text("# of long ago\n")
    records.write_text("# measured before\n")
    options = ["--tasks", "0", *_QUICK, "--trials", "1", option]
    assert _main(["tune", onnx_file, "--target", "llvm", "-o", str(records), *options]) == 0
    assert (tmp_path / "records.log.2").read_text() == "# measured before\n"
    assert "records of before are in" in capsys.readouterr().err
    assert len(_lines(records)) == 1 and _lines(records)[0].startswith('{"input"')


def test_without_xgboost_another_tuner_is_taken_and_named(
    onnx_file: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setitem(sys.modules, "xgboost", None)
    records = str(tmp_path / "records.log")
    options = ["--tasks", "0", "--trials", "1", "--number", "1", "--parallel", "1"]
    assert _main(["tune", onnx_file, "--target", "llvm", "-o", records, *options]) == 0
    message = capsys.readouterr().err
    assert "tuning by ga" in message and 'pip install "classic-tvm[xgboost]"' in message
    assert len(_lines(Path(records))) == 1


def test_from_python_records_belong_to_the_model(onnx_file: str) -> None:
    model = tvmc.load(onnx_file)
    options = {"trials": 1, "tuner": "gridsearch", "number": 1, "parallel": 1}
    path = tvmc.tune(model, target="llvm", tasks_filter="0", **options)
    assert path == str(model.default_tuning_records_path()) and Path(path).is_file()
    assert tvmc.compile(model, target="llvm", tuning_records=path).package_path


def test_tasks_are_listed_and_filtered(
    onnx_file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "none.log"
    assert _main(["tune", onnx_file, "--target", "llvm", "-o", str(path), "--tasks", "list"]) == 0
    assert "0. conv2d_NCHWc.x86 of 1x3x6x6, 4x3x3x3" in capsys.readouterr().out
    assert not path.exists()
    model = tvmc.load(onnx_file)
    tasks = autotvm_get_tuning_tasks(model.mod, model.params, "llvm") * 3
    for expr, places in {
        "all": range(len(tasks)),
        "0,2": [0, 2],
        "1-2": [1, 2],
        "-1": [0, 1],
    }.items():
        assert filter_tasks(tasks, expr) == ([tasks[i] for i in places], False)
    assert filter_tasks(tasks, "list,1") == ([tasks[1]], True)
    assert gen_task_list(tasks[:1], False).count("\n") == 1


@pytest.mark.parametrize(("options", "part"), [
    (["--tasks", "7"], "places from 0 to"),
    (["--tasks", "x"], "got 'x'"),
    (["--rpc-key", "pi"], "require --rpc-tracker"),
    (["--tuning-records", "none.log"], "no file of records none.log"),
    (["--tuner", "grid"], "invalid choice: 'grid'"),
])  # fmt: skip
def test_tune_rejects(
    options: list[str], part: str, onnx_file: str, tmp_path: Path, tvmc_fails: Fails
) -> None:
    records = str(tmp_path / "records.log")
    assert part in tvmc_fails(
        "tune", onnx_file, "--target", "llvm", "-o", records, "--tuner", "random", *options
    )


_SEARCH = [
    "--enable-autoscheduler", "--number", "1", "--parallel", "1", "--timeout", "60", "--trials",
]  # fmt: skip


def test_schedules_are_searched_for_and_used(
    onnx_file: str,
    image: tuple[str, np.ndarray],
    expected: np.ndarray,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    records, page = tmp_path / "records.json", tmp_path / "report.html"
    argv = ["tune", onnx_file, "--target", "llvm", "-o", str(records), *_SEARCH, "3"]
    assert _main([*argv, "--tasks", "list"]) == 0
    assert "0. fused_nn_" in capsys.readouterr().out
    assert _main([*argv, "--report", str(page)]) == 0
    rows = [json.loads(line) for line in _lines(records) if not line.startswith("#")]
    assert len(rows) == 3 and all(row["v"] == "v0.6" for row in rows)
    # with the time of the kernel as it is without records
    assert any(line.startswith("# untuned") for line in _lines(records))
    text = page.read_text()
    assert "Fastest schedule" in text and "Untuned, ms" in text
    assert "http:" not in text and "https:" not in text  # the page stands alone
    assert _main(argv) == 0  # the file has what is asked for
    assert len(_lines(records)) == len(rows) + sum(x.startswith("#") for x in _lines(records))
    package = str(tmp_path / "small.tar")
    options = ["--target", "llvm", "-o", package, "--tuning-records", str(records)]
    assert _main(["compile", onnx_file, *options]) == 0
    result = tvmc.run(tvmc.TVMCPackage(package), "cpu", inputs={"data": image[1]})
    np.testing.assert_allclose(result.outputs["output_0"], expected, rtol=1e-4, atol=1e-4)


def test_records_of_the_other_tuner_are_not_mixed_in(
    onnx_file: str, tmp_path: Path, tvmc_fails: Fails
) -> None:
    records = tmp_path / "records.log"
    argv = ["tune", onnx_file, "--target", "llvm", "-o", str(records), "--tasks", "0"]
    assert _main([*argv, *_QUICK, "--report", str(tmp_path / "report.html")]) == 0
    assert "tile_" in (tmp_path / "report.html").read_text()
    assert "records of AutoTVM" in tvmc_fails(*argv, *_SEARCH, "1")
