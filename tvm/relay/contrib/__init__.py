"""What external compilers take: tables of patterns, and operators with the attribute `target.<name>`."""

import importlib as _importlib
from typing import Any as _Any

from tvm.support.absent_helpers import absent_compilers as _absent_compilers

from . import (
    arm_compute_lib,
    bnns,
    clml,
    cmsisnn,
    coreml,
    cublas,
    cudnn,
    cutlass,
    dnnl,
    libtorch,
    register,
    tensorrt,
)
from .register import get_pattern_table, register_pattern_table

__all__ = [
    "arm_compute_lib",
    "bnns",
    "clml",
    "cmsisnn",
    "coreml",
    "cublas",
    "cudnn",
    "cutlass",
    "dnnl",
    "get_pattern_table",
    "libtorch",
    "register",
    "register_pattern_table",
    "tensorrt",
]


def __getattr__(name: str) -> _Any:
    """The functions that partition for a compiler; compilers that are not there, and their functions."""
    if name.startswith("partition_for_"):
        module = globals().get(name.removeprefix("partition_for_"))
        if hasattr(module, name):
            return getattr(module, name)
    for compiler, names in _absent_compilers().items():
        if name == compiler or name in names:
            module = _importlib.import_module(f"tvm.relay.op.contrib.{compiler}")
            return module if name == compiler else getattr(module, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
