"""Supplies of names and of global variables, under their classic classes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tvm.error import TVMError
from tvm.support import UniqueNames

from .expr import GlobalVar


class NameSupply:
    """Hands out names with a common prefix.

    Parameters
    ----------
    prefix : str
        Put before every name, with an underscore.
    """

    def __init__(self, prefix: str = "") -> None:
        self.prefix = prefix
        self._names = UniqueNames()

    def fresh_name(self, name: str, add_prefix: bool = True, add_underscore: bool = True) -> str:
        """A name that nobody has yet."""
        return self._names.fresh(self._full(name, add_prefix), "_" if add_underscore else "")

    def reserve_name(self, name: str, add_prefix: bool = True) -> str:
        """Take a name out of the supply."""
        full = self._full(name, add_prefix)
        self._names.reserve(full)
        return full

    def contains_name(self, name: str, add_prefix: bool = True) -> bool:
        """Whether the name is taken."""
        return self._full(name, add_prefix) in self._names

    def _full(self, name: str, add_prefix: bool) -> str:
        return f"{self.prefix}_{name}" if add_prefix and self.prefix else name


class GlobalVarSupply:
    """Hands out global variables with unique names.

    Parameters
    ----------
    value : NameSupply, IRModule or list of IRModule, optional
        Where names come from, or the modules whose names are taken.
    """

    def __init__(self, value: Any = None) -> None:
        self.name_supply = value if isinstance(value, NameSupply) else NameSupply("")
        self._known: dict[str, GlobalVar] = {}
        modules = value if isinstance(value, Iterable) else [value]
        for module in [m for m in modules if hasattr(m, "functions")]:
            for gvar in module.functions:
                self.reserve_global(gvar)

    def fresh_global(self, name: str, add_prefix: bool = True) -> GlobalVar:
        """A new global variable with a unique name."""
        gvar = GlobalVar(self.name_supply.fresh_name(name, add_prefix))
        self._known[gvar.name_hint] = gvar
        return gvar

    def unique_global_for(self, name: str, add_prefix: bool = True) -> GlobalVar:
        """The one global variable of that name, made at the first request."""
        full = self.name_supply.reserve_name(name, add_prefix)
        if full not in self._known:
            self._known[full] = GlobalVar(full)
        return self._known[full]

    def reserve_global(self, global_var: GlobalVar, allow_conflict: bool = False) -> None:
        """Take a global variable's name out of the supply."""
        name = global_var.name_hint
        if not allow_conflict and self._known.get(name, global_var) is not global_var:
            raise TVMError(f"GlobalVarSupply requires unique names, got a second {name!r}")
        self.name_supply.reserve_name(name, add_prefix=False)
        self._known[name] = global_var
