"""The order of bindings."""

from __future__ import annotations

from collections.abc import Sequence

from tvm.relax.expr import Binding, Var

from .variables import used_vars


def definitions_first(bindings: Sequence[Binding]) -> list[Binding]:
    """Bindings in their order, but for definitions that come after a use."""
    by_var = {binding.var: binding for binding in bindings}
    found: dict[Var, Binding] = {}
    for last in bindings:
        pending = [last]
        while pending:
            binding = pending[-1]
            needed = [by_var[v] for v in used_vars(binding.value) if v in by_var and v not in found]
            needed = [b for b in needed if b is not binding]
            if binding.var in found or not needed:
                found.setdefault(binding.var, binding)
                pending.pop()
            else:
                pending += needed[::-1]
    return list(found.values())
