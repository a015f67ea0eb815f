"""How the kernels of a model were scheduled: a line for the log, and a table for who asks."""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence
from functools import cache

from tvm import knobs
from tvm.relay.backend.lowered_kernel import LoweredKernel
from tvm.target import Target, cpu_info
from tvm.target.cpu import is_native
from tvm.tir.analysis import estimate_tir_flops
from tvm.topi.choice import Choice, Origin

_LOG = logging.getLogger("tvm.relay")


def report(kernels: Sequence[LoweredKernel], target: Target) -> None:
    """Log one line; with TVM_VERBOSE=1, print each kernel's choice too."""
    if target.kind.name == "llvm" and "mcpu" not in target.attrs and is_native(target):
        info = cpu_info(target)
        _log_default_processor(info.name, info.vector_bits)
    _LOG.info("%s", summary(kernels))
    if knobs.VERBOSE.value:
        print(table(kernels), file=sys.stderr)


@cache  # once a process
def _log_default_processor(name: str, vector_bits: int) -> None:
    """Say for which processor a target without ``-mcpu`` is compiled."""
    if not knobs.QUIET.value:
        _LOG.warning(
            "target llvm: compiling for this machine's processor, %s with %d-bit vectors, as "
            "-mcpu=native does; name another one to run elsewhere, such as -mcpu=x86-64-v3",
            name,
            vector_bits,
        )


def summary(kernels: Sequence[LoweredKernel]) -> str:
    """How many kernels have tiles of records, of the cost model, or none."""
    origins = [origin_of(kernel) for kernel in kernels]
    told = [
        f"{origins.count(origin)} with tiles of {text}"
        for origin, text in (
            (Origin.TUNED, "tuned records"),
            (Origin.NEAR, "the nearest records"),
            (Origin.MODEL, "the cost model"),
        )
        if origin is Origin.MODEL or origin in origins
    ]
    return f"{len(kernels)} kernels: {', '.join(told)}, {origins.count(None)} with fixed schedules"


def origin_of(kernel: LoweredKernel) -> Origin | None:
    """Who chose a kernel's tiles: a record, if it chose any of them; None for a fixed schedule."""
    found = {choice.origin for choice in kernel.choices}
    return next(
        (origin for origin in (Origin.TUNED, Origin.NEAR, Origin.MODEL) if origin in found), None
    )


def table(kernels: Sequence[LoweredKernel]) -> str:
    """Each kernel's operations, tile, and predicted share of the peak; the largest first."""
    counted = sorted(
        [(estimate_tir_flops(kernel.func), kernel) for kernel in kernels], key=lambda row: -row[0]
    )
    lines = [summary(kernels)]
    for flops, kernel in counted:
        chosen = "; ".join([_described(choice) for choice in kernel.choices])
        lines.append(f"{flops / 1e6:9.2f} MFLOP  {kernel.name}: {chosen or 'fixed'}")
    return "\n".join(lines)


def _described(choice: Choice) -> str:
    by = "" if choice.origin is Origin.MODEL else f" of the {choice.origin.value}"
    return f"{choice.tile}{by}, {choice.share:.0%} of the peak"
