"""Names by the classic paths: modules as attributes of their package, functions of other modules.

topi.generic.conv2d.schedule_depthwise_conv2d_nhwc(outs)
from tvm.topi.image.resize import get_2d_indices
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Any


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


def sibling_attribute(module: str) -> Callable[[str], Any]:
    """A module's ``__getattr__``, which looks a name up in the package around it."""
    package = module.rpartition(".")[0]

    def __getattr__(name: str) -> Any:
        found = vars(import_module(package)).get(name)
        if found is None or name.startswith("_"):
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        return found

    return __getattr__


__all__ = ["module_attribute", "sibling_attribute"]
