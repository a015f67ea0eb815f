"""The classic tensor compiler: te, tir, relay and a runtime, under their classic names.

import tvm
from tvm import te, relay
"""

import importlib as _importlib
from typing import Any as _Any

from . import _ffi, arith, driver, error, ir, runtime, support, target, te, tir
from ._ffi.base import TVMError, __version__
from ._ffi.registry import get_global_func, register_extension, register_func, register_object
from ._ffi.runtime_ctypes import DataTypeCode
from .compat.paths import install as _install_classic_paths
from .driver import build, lower
from .ir import IRModule, instrument, transform
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
from .support.excepthook import tvm_wrap_excepthook
from .tir.expr import const

_install_classic_paths()

# imported at the first use of the name: `import tvm` alone stays quick
_LATER = (
    "auto_scheduler", "autotvm", "contrib", "dlight", "exec", "meta_schedule", "micro", "relax",
    "relay", "rpc", "script", "testing", "topi",
)  # fmt: skip


_TUNED = "kernels are chosen by a cost model, and tvm.autotvm tunes them"
_GRAPHS = "relay is the language of graphs here"
# what there is where a part of classic releases is not
_INSTEAD = {
    "auto_scheduler": _TUNED, "meta_schedule": _TUNED, "dlight": _TUNED, "relax": _GRAPHS,
    "rpc": "models are run and measured on this machine; for another one, "
    "lib.export_library(path, fcompile=tvm.contrib.cc.cross_compiler('aarch64-linux-gnu-gcc'))",
}  # fmt: skip


def __getattr__(name: str) -> _Any:
    if name in _LATER:
        return _import_later(f"tvm.{name}")
    if not name.startswith("_"):
        compat = _importlib.import_module("tvm.compat")
        if name in compat.NAMES or name in compat.MODULES:
            # kept, so that each old name warns once
            return globals().setdefault(name, compat.find_old_name(name))
    raise AttributeError(f"module 'tvm' has no attribute {name!r}")


def _import_later(name: str) -> _Any:
    try:
        return _importlib.import_module(name)
    except ModuleNotFoundError as failure:
        if failure.name != name:
            raise
        instead = _INSTEAD[name.removeprefix("tvm.")]
        raise ModuleNotFoundError(f"{name} is not in this release; {instead}", name=name) from None


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER})
