"""Global functions as attributes of a module."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from tvm._ffi import _core


def _init_api(prefix: str, target_module_name: str | None = None) -> None:
    """Put each global function ``prefix.name`` into the module as ``name``.

    Without a target, ``prefix`` is the module's own name, whose ``tvm.`` the functions' names lack.
    """
    _init_api_prefix(
        target_module_name or prefix,
        prefix if target_module_name is not None else prefix.removeprefix("tvm."),
    )


def _init_api_prefix(module_name: str, prefix: str) -> None:
    """Put each global function ``prefix.name`` into the module of that name as ``name``."""
    module = sys.modules[module_name]
    for name in _core.list_global_names():
        rest = name.removeprefix(prefix + ".")
        if rest != name and "." not in rest:
            setattr(module, rest, _core.get_global(name))


def api_lookup(module_name: str, prefix: str) -> Callable[[str], Any]:
    """A ``__getattr__`` for a module whose names are the global functions ``prefix.name``.

    They are looked up when they are used, so that it does not matter which library registers first.
    """

    def find(name: str) -> Any:
        func = None if name.startswith("__") else _core.get_global(f"{prefix}.{name}")
        if func is None:
            raise AttributeError(f"module {module_name!r} has no global function {prefix}.{name}")
        return func

    return find
