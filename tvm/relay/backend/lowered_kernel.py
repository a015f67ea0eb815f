"""What lowering makes of a fused function."""

from __future__ import annotations

from dataclasses import dataclass

from tvm import te
from tvm.relay.function import Function
from tvm.tir import PrimFunc
from tvm.topi.choice import Choice


@dataclass(frozen=True)
class LoweredKernel:
    """One kernel: its name, its loops, and how the schedule was chosen."""

    name: str
    func: PrimFunc
    source: Function
    schedule: te.Schedule | None = None
    digest: int = 0  # the structural hash of the source
    key: str | None = None  # equal only where the loops and all that their code depends on are
    choices: tuple[Choice, ...] = ()  # of the cost model
    versions: tuple[PrimFunc, ...] = ()  # of the function, for the versions of the target
