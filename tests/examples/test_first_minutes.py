"""What a new user tries first, as a script."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_first_minutes_end_well(tmp_path: Path) -> None:
    done = subprocess.run(
        ["bash", ROOT / "examples" / "first_minutes.sh", tmp_path],
        env={**os.environ, "PYTHON": sys.executable, "PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "all done" in done.stdout
    assert "Traceback" not in done.stderr
    # which processor was compiled for, the virtual machine, and the mistake are each said in one line
    assert done.stderr.count("-mcpu=native") >= 1
    assert done.stderr.count("compiled for the virtual machine") == 1
    assert "llvm" in done.stderr.split("lvm", 1)[1]
