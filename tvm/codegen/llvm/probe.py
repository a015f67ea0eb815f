"""Bitcode of others, parsed in another process first: LLVM ends the process on some damaged files."""

from __future__ import annotations

import subprocess
import sys

_CHILD = """
import sys
import llvmlite.binding as llvm
try:
    llvm.parse_bitcode(sys.stdin.buffer.read()).verify()
except RuntimeError as error:
    sys.exit(str(error).strip().splitlines()[0])
"""


def check_bitcode(data: bytes) -> None:
    """Raise ValueError, with LLVM's reason, if it rejects the bitcode or ends the process."""
    child = subprocess.run(
        [sys.executable, "-c", _CHILD], input=data, capture_output=True, check=False
    )
    if child.returncode != 0:
        lines = child.stderr.decode(errors="replace").strip().splitlines()
        raise ValueError(lines[0] if lines else f"LLVM ended with status {child.returncode}")
