"""The programs of examples/deploy_cpp print what Python prints."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "examples" / "deploy_cpp"


def run(*command: str | Path, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A copy of the folder after ``make``, and what the compiling program printed."""
    folder = tmp_path_factory.mktemp("examples") / "deploy_cpp"
    shutil.copytree(FOLDER, folder, ignore=shutil.ignore_patterns("deploy", "*.so", "*.a", "*.bin"))
    done = run("make", "all", "deploy_static", "SIZE=64", f"PYTHON={sys.executable}", folder=folder)
    assert done.returncode == 0, done.stderr
    best = "".join(re.findall(r"^class .*\n", done.stdout, re.MULTILINE))
    assert best.count("\n") == 5
    return folder, best


@pytest.mark.parametrize(
    "command",
    [
        ("./deploy", "resnet18.so", "input.bin"),
        ("./deploy_c", "resnet18.so", "input.bin"),
        ("./deploy_static", "input.bin"),
    ],
)
def test_programs_print_what_python_prints(
    command: tuple[str, ...], built: tuple[Path, str]
) -> None:
    folder, best = built
    done = run(*command, folder=folder)
    assert (done.returncode, done.stdout) == (0, best), done.stderr


def test_programs_need_the_runtime_only(built: tuple[Path, str]) -> None:
    folder, _ = built
    needed = run("readelf", "-d", "deploy", "deploy_c", "deploy_static", folder=folder).stdout
    libraries = set(re.findall(r"\(NEEDED\).*\[(.*)\]", needed))
    assert "libtvm_runtime.so" in libraries
    system = {"libc.so.6", "libm.so.6", "libstdc++.so.6", "libgcc_s.so.1"}
    assert libraries - system == {"libtvm_runtime.so"}


@pytest.mark.parametrize("program", ["./deploy", "./deploy_c"])
def test_mistakes_are_told_in_one_line(program: str, built: tuple[Path, str]) -> None:
    folder, _ = built
    done = run(program, "missing.so", "input.bin", folder=folder)
    assert done.returncode == 1
    assert "cannot load module: there is no readable file missing.so" in done.stderr
    (folder / "short.bin").write_bytes(b"1234")
    done = run(program, "resnet18.so", "short.bin", folder=folder)
    assert done.returncode == 1 and done.stderr.count("\n") == 1
    assert "49152 bytes" in done.stderr
