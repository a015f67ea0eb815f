"""Global functions as attributes of a module."""

from __future__ import annotations

import sys

from tvm._ffi import _core


def _init_api(prefix: str, target_module_name: str | None = None) -> None:
    """Put each global function ``prefix.name`` into the module as ``name``.

    Without a target, ``prefix`` is the module's own name, whose ``tvm.`` the functions' names lack.
    """
    module = sys.modules[target_module_name or prefix]
    if target_module_name is None:
        prefix = prefix.removeprefix("tvm.")
    for name in _core.list_global_names():
        rest = name.removeprefix(prefix + ".")
        if rest != name and "." not in rest:
            setattr(module, rest, _core.get_global(name))
