"""Tools for SPIR-V."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path


def optimize(spv_bin: bytes | bytearray) -> bytearray:
    """What the program spirv-opt makes of a binary.

    Parameters
    ----------
    spv_bin : bytes
        The binary.
    """
    if (program := shutil.which("spirv-opt")) is None:
        raise RuntimeError("spirv.optimize requires the program spirv-opt on the path")
    with tempfile.TemporaryDirectory() as folder:
        source, made = Path(folder) / "input.spv", Path(folder) / "output.spv"
        source.write_bytes(spv_bin)
        ran = subprocess.run(
            [program, "-O", str(source), "-o", str(made)], capture_output=True, text=True
        )
        if ran.returncode:
            raise RuntimeError(f"spirv-opt failed:\n{ran.stdout}{ran.stderr}")
        return bytearray(made.read_bytes())
