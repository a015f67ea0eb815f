"""The code generators of examples/byoc work, with Python and without."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def run(folder: Path, *command: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False, env=environment
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    ignored = shutil.ignore_patterns("*.so", "*.bin", "deploy", "__pycache__")
    return Path(shutil.copytree(ROOT / "examples" / "byoc", tmp_path / "byoc", ignore=ignored))


def test_generated_c_agrees_with_numpy(copied: Path) -> None:
    printed = run(copied / "c_source", sys.executable, "main.py", "--show", "--folder", ".")
    assert "int tvmgen_default_example_c_main_0(TVMValue* args" in printed
    assert "the results agree with numpy" in printed


def test_a_runtime_of_its_own_runs_with_python_and_without(copied: Path) -> None:
    printed = run(
        copied / "json_runtime", "make", "run", "OPTIMIZE=-O0", f"PYTHON={sys.executable}"
    )
    assert "the results agree with numpy" in printed
    assert "the results agree without Python" in printed
