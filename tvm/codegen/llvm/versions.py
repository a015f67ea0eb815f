"""Several versions of one module's functions in one library, of which its loader takes one.

The functions of a version have its name behind theirs; ``__tvm_versions`` names the versions and the
features that they need, a line each: ``x86-64-v4 x86_64:avx,avx2,avx512f``.
"""

from __future__ import annotations

from collections.abc import Sequence

from tvm import knobs
from tvm.target import Target, cpu_info
from tvm.target.cpu_features import required_features

from .foreign import foreign_to
from .types import byte_string

VERSIONS = "__tvm_versions"
# what `TVM_KERNEL_VERSION` calls the functions without a version
BASE = "base"


def version_suffix(name: str) -> str:
    """What follows the names of a version's functions."""
    return f".{name}"


def versions_note(targets: Sequence[Target]) -> str:
    """The global that lists the versions."""
    if not targets:
        return ""
    cpus = [cpu_info(target) for target in targets]
    lines = [
        f"{target.mcpu} {cpu.arch}:{','.join(required_features(cpu.arch, cpu.features))}\n"
        for target, cpu in zip(targets, cpus, strict=True)
    ]
    data = "".join(lines).encode() + b"\0"
    return f"@{VERSIONS} = weak constant [{len(data)} x i8] {byte_string(data)}\n"


def chosen_version(targets: Sequence[Target]) -> int | None:
    """The position of the version for this process; None for the functions without one."""
    wanted = knobs.KERNEL_VERSION.value
    if wanted == BASE:
        return None
    runs = [i for i, target in enumerate(targets) if not foreign_to(cpu_info(target))]
    named = [i for i in runs if targets[i].mcpu == wanted]
    return next(reversed(named or runs), None)
