"""What every layer may use: data types, scopes, names. Imports nothing else of ours."""

import importlib as _importlib
from typing import Any as _Any

from .dtype import DType, ScalableLanes, dtype, dtype_from_code
from .naming import UniqueNames
from .scope import Scoped, compiling, deep, deep_recursion

__all__ = [
    "DType",
    "ScalableLanes",
    "Scoped",
    "UniqueNames",
    "compiling",
    "deep",
    "deep_recursion",
    "dtype",
    "dtype_from_code",
]


def __getattr__(name: str) -> _Any:
    # reading the metadata of packages costs 20 ms, which `import tvm` need not pay
    if name in ("describe", "libinfo"):
        return getattr(_importlib.import_module(".report", __name__), name)
    if name == "FrontendTestModule":  # its classic place; modules are above this layer
        return _importlib.import_module("tvm.runtime.frontend_module").FrontendTestModule
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
