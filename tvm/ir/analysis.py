"""What a module's functions call, whatever their level."""

from __future__ import annotations

from typing import Any

from .expr import GlobalVar
from .function import BaseFunc
from .module import IRModule


def collect_call_map(module: IRModule) -> dict[GlobalVar, list[GlobalVar]]:
    """The global functions that each function of a module calls.

    Parameters
    ----------
    module : IRModule
        The module.

    Returns
    -------
    call_map : dict of GlobalVar to list of GlobalVar
        For every function what it calls, each once, in the order of the first calls.
    """
    return {gvar: _callees(func) for gvar, func in module.functions.items()}


def _callees(func: BaseFunc) -> list[GlobalVar]:
    found: dict[GlobalVar, None] = {}
    seen: set[int] = set()
    stack: list[Any] = [func]
    while stack:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        # calls of the graph level and of the loop level alike
        if isinstance(callee := getattr(node, "op", None), GlobalVar):
            found.setdefault(callee)
        stack.extend(reversed(type(node).children(node)))
    return list(found)
