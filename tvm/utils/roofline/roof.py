"""What a machine can do at most, and how near to it a kernel is."""

from __future__ import annotations

from dataclasses import dataclass

from tvm._ffi.runtime_ctypes import Device
from tvm.error import TVMError
from tvm.runtime.device import cpu
from tvm.target import Target
from tvm.target.cpu import cpu_info
from tvm.target.triple import runs_here

from . import x86


@dataclass(frozen=True)
class Roof:
    """The peaks of a machine."""

    flops: float  # operations a second
    bandwidth: float  # bytes a second

    def seconds(self, flops: float, size: float) -> float:
        """The least time for so many operations and bytes of arguments."""
        return max(flops / self.flops, size / self.bandwidth)

    def bound(self, flops: float, size: float) -> str:
        """What sets that time: ``compute`` or ``memory``."""
        return "memory" if size / self.bandwidth > flops / self.flops else "compute"


def measured_roof(target: Target, dev: Device | None = None) -> Roof | None:
    """The roof of this machine; None if a target is another machine or no processor.

    Parameters
    ----------
    target : Target
        What kernels are compiled for.
    dev : Device, optional
        The processor.
    """
    if target.kind.name != "llvm" or not runs_here(cpu_info(target).triple):
        return None
    dev = dev or cpu()
    try:
        return Roof(
            x86.estimate_peak_fma_vector_flops(target, dev),
            x86.estimate_peak_bandwidth_dram(target, dev),
        )
    except TVMError:  # code for another processor does not run here
        return None
