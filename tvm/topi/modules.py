"""Modules that are reached as attributes of their package, without an import of their own.

topi.generic.conv2d.schedule_depthwise_conv2d_nhwc(outs)
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from types import ModuleType


def module_attribute(package: str) -> Callable[[str], ModuleType]:
    """A package's ``__getattr__``, which imports the module of the name that is asked for."""

    def __getattr__(name: str) -> ModuleType:
        path = f"{package}.{name}"
        if not name.startswith("_"):
            try:
                return import_module(path)
            except ModuleNotFoundError as error:
                if error.name != path:
                    raise
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return __getattr__


__all__ = ["module_attribute"]
