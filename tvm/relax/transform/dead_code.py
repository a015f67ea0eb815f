"""Bindings and functions that nothing uses go away."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm.ir.expr import GlobalVar
from tvm.ir.module import IRModule
from tvm.ir.transform import Pass
from tvm.ir.visitor import Visitor
from tvm.relax.analysis.unused import remove_all_unused
from tvm.relax.expr import Function

from .pass_kinds import whole_module_pass


class _Called(Visitor):
    def __init__(self) -> None:
        self.found: dict[GlobalVar, None] = {}

    def visit_global_var(self, var: GlobalVar) -> None:
        self.found[var] = None


def called_functions(func: Any) -> list[GlobalVar]:
    """The global functions that a function names."""
    visitor = _Called()
    visitor.visit(func)
    return list(visitor.found)


def remove_unused_functions(mod: IRModule, entry_functions: Sequence[str] = ()) -> IRModule:
    """The module without functions that no public function, and none of the given ones, calls."""
    entries = [
        g
        for g, f in mod.functions.items()
        if g.name_hint in entry_functions or "global_symbol" in f.attrs
    ]
    used: dict[GlobalVar, None] = {}
    pending = list(entries)
    while pending:
        gvar = pending.pop()
        if gvar in used or mod.functions.get(gvar) is None:
            continue
        used[gvar] = None
        pending.extend(called_functions(mod.functions[gvar]))
    if len(used) == len(mod.functions):
        return mod
    return mod.with_functions({g: f for g, f in mod.functions.items() if g in used})


def DeadCodeElimination(entry_functions: Sequence[str] | None = None) -> Pass:
    """Remove bindings and functions that nothing uses.

    Parameters
    ----------
    entry_functions : list of str, optional
        Functions that stay, beside public ones.
    """
    entries = list(entry_functions or ())

    def run(mod: IRModule) -> IRModule:
        for name in entries:
            mod.get_global_var(name)
        # a function that is not called any more may have been the last user of others
        mod = remove_unused_functions(mod, entries)
        mod = mod.map_functions(lambda _, f: remove_all_unused(f) if isinstance(f, Function) else f)
        return remove_unused_functions(mod, entries)

    return whole_module_pass("DeadCodeElimination", run, 1)
