"""The peaks of CUDA devices, which this release does not run on."""

from __future__ import annotations

from typing import Any, NoReturn

from tvm._ffi.runtime_ctypes import Device
from tvm.error import TVMError
from tvm.target import Target


def estimate_peak_flops_tensorcore(
    target: Target,
    dev: Device,
    remote: Any = None,
    mat_dtype: str = "float16",
    acc_dtype: str = "float32",
) -> float:
    """Operations a second of tensor cores."""
    return _reject("tensor cores")


def estimate_peak_flops_fma(
    target: Target, dev: Device, remote: Any = None, dtype: str = "float32"
) -> float:
    """Operations a second of fused multiply-adds."""
    return _reject("multiply-adds")


def estimate_peak_bandwidth_global_mem(target: Target, dev: Device, remote: Any = None) -> float:
    """Bytes a second of the global memory."""
    return _reject("global memory")


def _reject(what: str) -> NoReturn:
    raise TVMError(
        f"measuring {what} requires a CUDA device, which kernels of this release do not run on",
        hint="tvm.utils.roofline.x86 measures processors",
    )
