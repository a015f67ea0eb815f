"""The tuning programs of examples/ run as a user starts them, with xgboost and without."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# runs a program under its name, as `python file` does, in an interpreter that lacks a package
_WITHOUT = "import runpy, sys; sys.modules['xgboost'] = None; sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name='__main__')"
# imports the script as a process started by multiprocessing does, and runs it there
_STARTED_BY = """
import multiprocessing, runpy, sys
if __name__ == "__main__":
    sys.argv = sys.argv[1:]
    process = multiprocessing.get_context(sys.argv.pop(0)).Process(
        target=runpy.run_path, args=(sys.argv[0],), kwargs={"run_name": "__main__"}
    )
    process.start()
    process.join()
    sys.exit(process.exitcode)
"""


def _run(folder: Path, *command: object) -> str:
    done = subprocess.run(
        [sys.executable, *map(str, command)], cwd=folder, capture_output=True, text=True,
        check=False, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


_MATMUL = [ROOT / "examples" / "tune_matmul.py", "--size", 32, "--trials", 2]


def test_a_template_of_a_script_is_tuned(tmp_path: Path) -> None:
    printed = _run(tmp_path, *_MATMUL)
    assert "the results agree with numpy" in printed
    assert len((tmp_path / "matmul.log").read_text().splitlines()) == 2


def test_without_xgboost_the_script_says_what_it_takes_instead(tmp_path: Path) -> None:
    printed = _run(tmp_path, "-c", _WITHOUT, *_MATMUL)
    assert "requires the package xgboost" in printed and "a genetic search instead" in printed
    assert "the results agree with numpy" in printed


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_templates_of_scripts_are_tuned_in_processes_of_multiprocessing(
    method: str, tmp_path: Path
) -> None:
    (tmp_path / "start.py").write_text(_STARTED_BY)
    assert "the results agree with numpy" in _run(tmp_path, "start.py", method, *_MATMUL)


def test_a_network_is_tuned_and_goes_on_with_its_log(tmp_path: Path) -> None:
    command = [ROOT / "examples" / "tune_network.py", "--layers", 8, "--image", 28, "--tasks", 1]
    assert "1 tasks, median" in _run(tmp_path, *command, "--trials", 2)
    log = tmp_path / "network.log"
    first = log.read_text()
    assert len(first.splitlines()) == 2
    _run(tmp_path, *command, "--trials", 3)
    assert log.read_text().startswith(first) and len(log.read_text().splitlines()) == 3
