"""Global functions as nodes, which are saved by their names.

register_func("my.relation", relation)
EnvFunc.get("my.relation")(...)
"""

from __future__ import annotations

from typing import Any

from tvm._ffi import get_global_func
from tvm.error import TVMError

from .node import Node


class EnvFunc(Node, key="EnvFunc"):
    """A function of the global registry, looked up when it is called."""

    name: str

    @staticmethod
    def get(name: str) -> EnvFunc:
        """The node of a registered function."""
        if get_global_func(name, allow_missing=True) is None:
            raise TVMError(
                f"EnvFunc.get requires a global function, got {name!r}",
                hint=f'register it: @tvm.register_func("{name}")',
            )
        return EnvFunc(name)

    @property
    def func(self) -> Any:
        """The function."""
        return get_global_func(self.name)

    def __call__(self, *args: Any) -> Any:
        return self.func(*args)
