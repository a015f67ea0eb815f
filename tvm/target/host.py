"""The machine this process runs on, as LLVM and the operating system describe it."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from tvm.support.cores import usable_cores


@cache  # a fact of the machine, asked for on every build
def host_name() -> str:
    """LLVM's name of this processor, such as ``znver4``."""
    import llvmlite.binding as llvm

    return str(llvm.get_host_cpu_name())


@cache
def host_features() -> tuple[str, ...]:
    """This processor's features as ``+avx2`` or ``-avx2``."""
    import llvmlite.binding as llvm

    # virtual machines hide features that the processor's name implies: LLVM is given all of them
    return tuple(sorted(llvm.get_host_cpu_features().flatten().split(",")))


@cache
def host_triple() -> str:
    """This process's triple, such as ``x86_64-unknown-linux-gnu``."""
    import llvmlite.binding as llvm

    return str(llvm.get_process_triple())


def host_cores() -> int:
    """Cores this process may use."""
    return usable_cores()


@cache
def host_caches() -> dict[str, int]:
    """Bytes of the data caches that one core sees: ``{"l1": ..., "l2": ..., "l3": ...}``."""
    found = {}
    for index in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        try:
            level = (index / "level").read_text().strip()
            if (index / "type").read_text().strip() == "Instruction":
                continue
            found[f"l{level}"] = _bytes((index / "size").read_text().strip())
        except (OSError, ValueError):
            continue  # some containers hide parts of the directory
    return found


def _bytes(text: str) -> int:
    match = re.fullmatch(r"(\d+)([KMG]?)", text)
    if match is None:
        raise ValueError(text)
    return int(match[1]) << {"": 0, "K": 10, "M": 20, "G": 30}[match[2]]
