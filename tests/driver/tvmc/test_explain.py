"""`tvmc explain` writes a page, or its data."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tvm.driver.tvmc.main import _main

Capture = pytest.CaptureFixture[str]


def test_a_model_of_onnx_is_explained(onnx_file: str, tmp_path: Path, capsys: Capture) -> None:
    output = tmp_path / "report.json"
    argv = ["explain", onnx_file, "-o", str(output), "--repeat", "0", "--detailed", "0"]
    assert _main(argv) == 0
    told = capsys.readouterr().out
    assert told.startswith(f"{output}: ") and "calls of" in told
    report = json.loads(output.read_text())
    names = {node["name"] for node in report["imported"]["nodes"]}
    assert report["model"] == "small" and {"conv0", "relu0"} <= names
    (fused,) = [n["name"] for n in report["built"]["nodes"] if "nn.relu" in n["op"]]
    assert fused == "conv0, relu0"


def test_the_page_is_beside_the_caller_by_default(
    onnx_file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    argv = ["explain", onnx_file, "--repeat", "0", "--detailed", "0", "--quiet"]
    assert _main(argv) == 0
    assert (folder / "small.html").read_text().startswith("<!DOCTYPE html>")
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("argv", "part"),
    [
        (["missing.onnx"], "Input file 'missing.onnx' doesn't exist"),
        (["x.onnx", "-o", "page.pdf"], "explain writes .html or .json, got --output page.pdf"),
        (["x.onnx", "--repeat=-1"], "a number of at least 0 is required, got -1"),
        (["x.onnx", "--target", "dnnl, llvm"], "explain compiles for one target"),
    ],
)
def test_what_cannot_be_done_is_told(
    argv: list[str], part: str, tvmc_fails: Callable[..., str]
) -> None:
    assert part in tvmc_fails("explain", *argv)
