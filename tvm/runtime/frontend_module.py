"""A module of Python functions, for tests of what uses modules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm._ffi.registry import get_global_func
from tvm.runtime.module import Module


class FrontendTestModule(Module):
    """A module whose functions are added one by one.

    Parameters
    ----------
    entry_name : str, optional
        The function that calling the module calls.
    """

    __slots__ = ("entry_name",)

    def __init__(self, entry_name: str | None = None) -> None:
        made = get_global_func("testing.FrontendTestModule")()  # a handle keeps nothing alive
        super().__init__(made.handle)
        self.entry_name = entry_name or Module.entry_name

    def add_function(self, name: str, func: Callable[..., Any]) -> None:
        """Let the module have the function under that name."""
        self.get_function("__add_function")(name, func)

    def __setitem__(self, name: str, func: Callable[..., Any]) -> None:
        self.add_function(name, func)
