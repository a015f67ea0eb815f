"""Functions that call each other, and what needs no input at run time."""

from __future__ import annotations

from typing import Any

from tvm.ir.expr import GlobalVar
from tvm.ir.module import IRModule
from tvm.relax.expr import Function, Var, relax_functions
from tvm.relax.expr_functor import ExprVisitor
from tvm.relax.struct_info_relations import definable_tir_vars_in_struct_info, tir_vars_in

from .variables import all_global_vars, bindings_of, used_vars


def detect_recursion(mod: IRModule) -> list[list[GlobalVar]]:
    """Groups of functions that call each other in turn, or themselves.

    Returns
    -------
    list of list of GlobalVar
        Each group by name.
    """
    functions = relax_functions(mod)
    calls = {g: [c for c in all_global_vars(f) if c in functions] for g, f in functions.items()}
    reach = {g: _reached(g, calls) for g in functions}
    groups: list[list[GlobalVar]] = []
    done: set[str] = set()
    for gvar in sorted(functions, key=lambda g: g.name_hint):
        if gvar.name_hint in done or gvar not in reach[gvar]:
            continue
        group = [o for o in reach[gvar] if gvar in reach[o]]
        done.update([o.name_hint for o in group])
        groups.append(sorted(group, key=lambda g: g.name_hint))
    return groups


def _reached(start: GlobalVar, calls: dict[GlobalVar, list[GlobalVar]]) -> dict[GlobalVar, None]:
    found: dict[GlobalVar, None] = {}
    pending = list(calls[start])
    while pending:
        gvar = pending.pop()
        if gvar not in found:
            found[gvar] = None
            pending.extend(calls[gvar])
    return found


def computable_at_compile_time(func: Function) -> list[Var]:
    """The variables of a function that depend on its model's parameters alone.

    Parameters
    ----------
    func : Function
        Its attribute ``num_input`` says how many parameters are inputs at run time.
    """
    count = func.attrs.get("num_input")
    if count is None:
        return []
    inputs = int(count)
    known: dict[Var, None] = dict.fromkeys(func.params[inputs:])
    symbols: dict[Any, None] = {}
    for param in func.params[inputs:]:
        for var in definable_tir_vars_in_struct_info(param.struct_info):
            symbols[var] = None
    found = []
    for block in func.body.blocks:
        for binding in block.bindings:
            if all([v in known for v in used_vars(binding.value)]) and all(
                [s in symbols for s in tir_vars_in(binding)]
            ):
                known[binding.var] = None
                found.append(binding.var)
    return found


__all__ = ["ExprVisitor", "bindings_of", "computable_at_compile_time", "detect_recursion"]
