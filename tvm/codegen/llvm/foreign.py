"""Code for other machines than this one, and what a library asks of the machine that loads it.

A library names the processor's features that its code uses in ``__tvm_required_features``; a loader that
knows the symbol rejects the library where one is missing, rather than die of an unknown instruction.
"""

from __future__ import annotations

from tvm.target import CpuInfo
from tvm.target.cpu_features import missing_here, required_features
from tvm.target.host import host_triple
from tvm.target.triple import runs_here

from .types import byte_string

REQUIRED_FEATURES = "__tvm_required_features"


def foreign_to(cpu: CpuInfo) -> str:
    """Why this process cannot run code for the processor; empty if it can."""
    if not runs_here(cpu.triple):
        return f"it is for {cpu.triple}, and this machine is {host_triple()}"
    missing = missing_here(required_features(cpu.arch, cpu.features))
    if missing:
        return f"it is for a processor with {', '.join(missing)}, which this one lacks"
    return ""


def features_note(cpu: CpuInfo) -> str:
    """The global that names the features, as ``x86_64:avx,avx2``; none if the code uses no special one."""
    required = required_features(cpu.arch, cpu.features)
    if not required:
        return ""
    data = f"{cpu.arch}:{','.join(required)}".encode() + b"\0"
    text = f"[{len(data)} x i8] {byte_string(data)}"
    return f"@{REQUIRED_FEATURES} = weak constant {text}"
