"""What frontends share."""

from __future__ import annotations

from typing import Any

from tvm.ir.module import IRModule
from tvm.relax.expr import Function


def detach_params(mod: IRModule) -> tuple[IRModule, dict[str, list[Any]]]:
    """Take the values of parameters, the attribute ``params`` of functions, out of a module.

    Parameters
    ----------
    mod : IRModule
        A module of an importer.

    Returns
    -------
    (IRModule, dict)
        The module without values, and the values by the name of the function.
    """
    found: dict[str, list[Any]] = {}
    functions = {}
    for gvar, func in mod.functions.items():
        if isinstance(func, Function) and "params" in func.attrs:
            found[gvar.name_hint] = list(func.attrs["params"])
            func = func.without_attr("params")
        functions[gvar] = func
    return mod.with_functions(functions), found
