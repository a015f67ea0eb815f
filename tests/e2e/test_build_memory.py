"""A process that builds again and again keeps its size; benchmarks/build_memory.py counts to 10,000."""

import subprocess
import sys

import pytest

from benchmarks.build_memory import KINDS

# of compiled builds, LLVM's pass managers alone would keep more than 200 KiB each
BUILDS = 60
MOST_KIB = 20 * BUILDS


@pytest.mark.parametrize("kind", KINDS)
def test_builds_leave_no_memory_behind(kind: str) -> None:
    code = (
        f"from benchmarks.build_memory import growth_of; print(growth_of({kind!r}, {BUILDS})[-1])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert int(ran.stdout) < MOST_KIB
