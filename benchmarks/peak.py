"""What this machine can do at most: multiplications and additions a second, bytes a second."""

from __future__ import annotations

import tvm
from tvm.utils.roofline import x86

TARGET = "llvm"


def peak_flops() -> float:
    """Operations a second of fused multiply-adds whose operands are in registers or L1."""
    return x86.estimate_peak_fma_vector_flops(tvm.target.Target(TARGET), tvm.cpu())


def peak_bandwidth() -> float:
    """Bytes a second, read and written, of a copy that no cache holds."""
    return x86.estimate_peak_bandwidth_dram(tvm.target.Target(TARGET), tvm.cpu())
