"""The board of examples/aarch64_board computes what this machine does; its server is cross-compiled."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.system_tools import needs_tool

ROOT = Path(__file__).parents[2]


@needs_tool("aarch64-linux-gnu-g++", "qemu-aarch64")
def test_the_board_agrees_with_this_machine(tmp_path: Path) -> None:
    folder = tmp_path / "examples" / "aarch64_board"
    ignored = shutil.ignore_patterns("board", "build")
    shutil.copytree(ROOT / "examples" / "aarch64_board", folder, ignore=ignored)
    (tmp_path / "native").symlink_to(ROOT / "native")
    tools = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # cmake and ninja
    done = subprocess.run(
        ["make", "run", "FLAGS=-O0", f"PYTHON={sys.executable}"], cwd=folder, capture_output=True,
        text=True, check=False, env={**os.environ, "PATH": tools},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "largest difference from this machine" in done.stdout
