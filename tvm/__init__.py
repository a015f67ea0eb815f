"""The classic tensor compiler: te, tir, relay and a runtime, under their classic names.

import tvm
from tvm import te, relay
"""

import importlib as _importlib
from sys import modules as _modules
from typing import Any as _Any

from . import _ffi, arith, driver, error, ir, runtime, support, target, te, tir
from ._ffi.base import TVMError, __version__
from ._ffi.registry import get_global_func, register_extension, register_func, register_object
from ._ffi.registry import import_for_functions as _import_for_functions
from ._ffi.runtime_ctypes import DataTypeCode
from .compat.paths import install as _install_classic_paths
from .driver import build, compile, lower
from .ir import IRModule, instrument, transform
from .ir.memory_pools import (
    ConstantMemoryPools,
    ConstantPoolInfo,
    PoolInfoProperties,
    WorkspaceMemoryPools,
    WorkspacePoolInfo,
)
from .runtime import container, object_generic
from .runtime import ndarray as nd
from .runtime.device import (
    cl,
    cpu,
    cuda,
    device,
    ext_dev,
    gpu,
    hexagon,
    metal,
    mtl,
    opencl,
    rocm,
    vpi,
    vulkan,
    webgpu,
)  # fmt: skip
from .runtime.ndarray import NDArray
from .runtime.object import Object
from .runtime.object_generic import convert
from .runtime.packed_func import PackedFunc
from .support import DType as DataType
from .support import absent as _absent
from .support.excepthook import tvm_wrap_excepthook
from .tir.expr import const

_install_classic_paths()
_absent.install()

# imported at the first use of the name: `import tvm` alone stays quick
_LATER = (
    "autotvm", "contrib", "exec", "micro", "relax", "relay", "rpc", "script", "testing", "topi",
)  # fmt: skip


def _import_for_function(name: str) -> bool:
    package = "tir.schedule" if name.startswith("tir.schedule.") else name.partition(".")[0]
    if package not in (*_LATER, "tir.schedule") or f"tvm.{package}" in _modules:
        return False
    _importlib.import_module(f"tvm.{package}")
    return True


_import_for_functions(_import_for_function)


def __getattr__(name: str) -> _Any:
    if name in _LATER:
        return _importlib.import_module(f"tvm.{name}")
    if not name.startswith("_"):
        compat = _importlib.import_module("tvm.compat")
        if name in compat.NAMES or name in compat.MODULES:
            # kept, so that each old name warns once
            return globals().setdefault(name, compat.find_old_name(name))
    raise _absent.attribute_error("tvm", name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER})
