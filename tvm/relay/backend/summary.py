"""How the kernels of a model were scheduled: a line for the log, and a table for who asks."""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence

from tvm import knobs
from tvm.relay.backend.kernels import LoweredKernel
from tvm.tir.analysis import estimate_tir_flops

_LOG = logging.getLogger("tvm.relay")


def report(kernels: Sequence[LoweredKernel]) -> None:
    """Log one line; with TVM_VERBOSE=1, print each kernel's choice too."""
    _LOG.info("%s", summary(kernels))
    if knobs.VERBOSE.value:
        print(table(kernels), file=sys.stderr)


def summary(kernels: Sequence[LoweredKernel]) -> str:
    """How many kernels have tiles of the cost model."""
    chosen = len([kernel for kernel in kernels if kernel.choices])
    return (
        f"{len(kernels)} kernels: {chosen} with tiles of the cost model, "
        f"{len(kernels) - chosen} with fixed schedules"
    )


def table(kernels: Sequence[LoweredKernel]) -> str:
    """Each kernel's operations, tile, and predicted share of the peak; the largest first."""
    counted = sorted(
        [(estimate_tir_flops(kernel.func), kernel) for kernel in kernels], key=lambda row: -row[0]
    )
    lines = [summary(kernels)]
    for flops, kernel in counted:
        chosen = [f"{choice.tile}, {choice.share:.0%} of the peak" for choice in kernel.choices]
        lines.append(f"{flops / 1e6:9.2f} MFLOP  {kernel.name}: {'; '.join(chosen) or 'fixed'}")
    return "\n".join(lines)
