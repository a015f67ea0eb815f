"""Passes about a module's functions rather than their bodies: choose, mark, apply."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm.ir.module import IRModule
from tvm.ir.pass_context import PassContext
from tvm.ir.transform import ModulePass, PassInfo
from tvm.tir.function import PrimFunc
from tvm.tir.transform.common import PrimFuncPass

_APPLY = PassInfo(0, "tir.Apply")


def Apply(ftransform: Callable[[PrimFunc], PrimFunc | None]) -> PrimFuncPass:
    """Rewrite each function by ``ftransform``; None removes it."""

    def run(func: PrimFunc, mod: IRModule, context: PassContext) -> PrimFunc | None:
        return ftransform(func)

    return PrimFuncPass(run, _APPLY)


_FILTER = PassInfo(0, "tir.Filter")


def Filter(fcond: Callable[[PrimFunc], bool]) -> PrimFuncPass:
    """Keep the functions for which ``fcond`` holds."""

    def run(func: PrimFunc, mod: IRModule, context: PassContext) -> PrimFunc | None:
        return func if fcond(func) else None

    return PrimFuncPass(run, _FILTER)


_BIND_TARGET = PassInfo(0, "tir.BindTarget")


def BindTarget(target: Any) -> PrimFuncPass:
    """Give the functions that have no target yet this one; host functions get its host."""

    def run(func: PrimFunc, mod: IRModule, context: PassContext) -> PrimFunc:
        if func.get_attr("target") is not None:
            return func
        host = getattr(target, "host", None)
        is_host = bool(func.get_attr("tir.is_host_func", False)) and host is not None
        return func.with_attr("target", host if is_host else target)

    return PrimFuncPass(run, _BIND_TARGET)


_ANNOTATE_ENTRY_FUNC = PassInfo(0, "tir.AnnotateEntryFunc")


def AnnotateEntryFunc() -> ModulePass:
    """Mark the only function, or the one called ``main``, as the entry of the module."""

    def run(mod: IRModule, context: PassContext) -> IRModule:
        functions = {g: f for g, f in mod.functions.items() if isinstance(f, PrimFunc)}
        entries = [g for g in functions if len(functions) == 1 or g.name_hint == "main"]
        if len(entries) != 1 or functions[entries[0]].get_attr("tir.is_entry_func"):
            return mod
        entry = functions[entries[0]].with_attr("tir.is_entry_func", True)
        return mod.with_functions({**mod.functions, entries[0]: entry})

    return ModulePass(run, _ANNOTATE_ENTRY_FUNC)
