"""Executors, tool chains and helpers around the compiler; each is imported at its first use."""

import importlib as _importlib
import pkgutil as _pkgutil
from types import ModuleType as _ModuleType

from tvm.support.absent import attribute_error as _attribute_error
from tvm.support.absent_helpers import HELPERS as _HELPERS

_MODULES = frozenset([found.name for found in _pkgutil.iter_modules(__path__)])


def __getattr__(name: str) -> _ModuleType:
    if name in _MODULES or f"tvm.contrib.{name}" in _HELPERS:
        return _importlib.import_module(f"tvm.contrib.{name}")
    raise _attribute_error("tvm.contrib", name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})
