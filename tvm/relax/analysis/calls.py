"""Functions that call each other, and what needs no input at run time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm.ir.expr import GlobalVar
from tvm.ir.module import IRModule
from tvm.ir.op import Op
from tvm.relax.expr import Binding, Call, Function, MatchCast, Var, relax_functions
from tvm.relax.expr_functor import ExprVisitor
from tvm.relax.purity import contains_impure_call
from tvm.relax.struct_info import TupleStructInfo
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


class CompileTimeValues:
    """What follows from the parameters of a model alone: variables and symbolic variables."""

    def __init__(self, params: Sequence[Var]) -> None:
        self.known: dict[Var, None] = {}
        self.symbols: dict[Any, None] = {}
        for param in params:
            self.add(param, param.struct_info)

    def add(self, var: Var, info: Any) -> None:
        """Let a variable be known, and the symbolic variables that it defines."""
        self.known[var] = None
        for symbol in definable_tir_vars_in_struct_info(info):
            self.symbols[symbol] = None

    def has(self, binding: Binding) -> bool:
        """Whether the value of a binding is known."""
        needed = tir_vars_in(binding.value)
        is_known = all([v in self.known for v in used_vars(binding.value)])
        return is_known and all([s in self.symbols for s in needed])

    def read(self, binding: Binding) -> bool:
        """Whether a binding is known, which it counts as from then on."""
        value = binding.value
        if isinstance(value, Call) and value.op is Op.get("relax.builtin.stop_lift_params"):
            return False
        if contains_impure_call(value) or not self.has(binding):
            return False
        defined = binding.struct_info if isinstance(binding, MatchCast) else TupleStructInfo([])
        self.add(binding.var, defined)
        return True


def computable_at_compile_time(func: Function) -> list[Var]:
    """The variables of a function that depend on its model's parameters alone, and these.

    Parameters
    ----------
    func : Function
        Its attribute ``num_input`` says how many parameters are inputs at run time; without it, all are.
    """
    count = func.attrs.get("num_input")
    if count is None:
        return []
    values = CompileTimeValues(func.params[int(count) :])
    for block in func.body.blocks:
        for binding in block.bindings:
            values.read(binding)
    return list(values.known)


__all__ = [
    "CompileTimeValues", "ExprVisitor", "bindings_of", "computable_at_compile_time",
    "detect_recursion",
]  # fmt: skip
