"""The Rust program of examples/deploy_rust prints what Python prints."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.system_tools import needs_rust

EXAMPLES = Path(__file__).parents[2] / "examples"
pytestmark = needs_rust()


def run(*command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A copy of the folder after ``make run``, and what was printed."""
    root = tmp_path_factory.mktemp("examples")
    ignored = shutil.ignore_patterns("deploy_rust", "*.so", "*.a", "*.bin")
    for name in ("deploy_cpp", "deploy_rust"):
        shutil.copytree(EXAMPLES / name, root / name, ignore=ignored)
    folder = root / "deploy_rust"
    done = run("make", "run", "SIZE=64", f"PYTHON={sys.executable}", folder=folder)
    assert done.returncode == 0, done.stderr
    return folder, done.stdout


def test_the_program_prints_what_python_prints(built: tuple[Path, str]) -> None:
    best = re.findall(r"^class .*$", built[1], re.MULTILINE)
    assert len(best) == 10 and best[:5] == best[5:]


def test_mistakes_are_told_in_one_line(built: tuple[Path, str]) -> None:
    folder, _ = built
    (folder / "short.bin").write_bytes(b"1234")
    for library, picture, text in (
        ("missing.so", "input.bin", "there is no readable file missing.so"),
        ("resnet18.so", "missing.bin", "missing.bin: No such file"),
        ("resnet18.so", "short.bin", "short.bin must have 49152 bytes, it has 4"),
    ):
        done = run("./deploy_rust", library, picture, folder=folder)
        assert done.returncode == 1 and text in done.stderr and done.stderr.count("\n") == 1
