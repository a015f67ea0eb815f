"""Functions get the names that they are found by in a library.

def f(x): ...    ->    def f(x): attr {"global_symbol": "f"}; ...
"""

from __future__ import annotations

from typing import Any

from tvm.ir.module import IRModule
from tvm.ir.transform import ModulePass, Pass, PassInfo
from tvm.relax.expr import Function
from tvm.tir import PrimFunc


def attach_global_symbol(mod: IRModule) -> IRModule:
    """The module with names for functions that have none; loop programs bear the library's prefix."""
    prefix = mod.get_attr("system_lib_prefix") or ""

    def named(gvar: Any, func: Any) -> Any:
        if not isinstance(func, (Function, PrimFunc)) or func.attrs.get("global_symbol"):
            return func
        name = gvar.name_hint if isinstance(func, Function) else f"{prefix}{gvar.name_hint}"
        return func.with_attr("global_symbol", name)

    return mod.map_functions(named)


def AttachGlobalSymbol() -> Pass:
    """Name functions after their global variables."""
    return ModulePass(
        lambda mod, context: attach_global_symbol(mod), PassInfo(0, "AttachGlobalSymbol", ())
    )
