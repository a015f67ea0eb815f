"""Modules of Python functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm._ffi.registry import get_global_func
from tvm.runtime.module import Module, ModulePropertyMask


class FunctionModule(Module):
    """A module whose functions are added one by one: ``module["name"] = function``.

    Parameters
    ----------
    type_key : str
        The kind of module.
    properties : int
        What it can do: values of ModulePropertyMask.
    """

    __slots__ = ()

    def __init__(self, type_key: str, properties: int = ModulePropertyMask.RUNNABLE) -> None:
        made = get_global_func("runtime.FunctionModule")(type_key, properties)
        super().__init__(made.handle)  # a handle keeps nothing alive

    def add_function(self, name: str, func: Callable[..., Any]) -> None:
        """Let the module have the function under that name."""
        self.get_function("__add_function")(name, func)

    def __setitem__(self, name: str, func: Callable[..., Any]) -> None:
        self.add_function(name, func)


class FrontendTestModule(FunctionModule):
    """A module of functions for tests of what uses modules.

    Parameters
    ----------
    entry_name : str, optional
        The function that calling the module calls.
    """

    __slots__ = ("entry_name",)

    def __init__(self, entry_name: str | None = None) -> None:
        super().__init__("frontend_test", 0)
        self.entry_name = entry_name or Module.entry_name
