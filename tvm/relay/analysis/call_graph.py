"""Which global function calls which."""

from __future__ import annotations

from tvm.ir.expr import GlobalVar
from tvm.ir.module import IRModule
from tvm.relay.function import relay_functions
from tvm.relay.traverse import operands, post_order


class CallGraph:
    """The references between the global functions of a module."""

    def __init__(self, module: IRModule) -> None:
        self._module = module
        self._calls: dict[str, dict[str, int]] = {}
        for gvar in module.functions:
            self._calls[gvar.name_hint] = {}
        for gvar, func in relay_functions(module).items():
            counts = self._calls[gvar.name_hint]
            for node in post_order(func):
                for used in operands(node):
                    if type(used) is GlobalVar:
                        counts[used.name_hint] = counts.get(used.name_hint, 0) + 1

    @property
    def module(self) -> IRModule:
        """The module that the graph describes."""
        return self._module

    def callees(self, var: GlobalVar | str) -> list[str]:
        """The functions that `var` refers to."""
        return list(self._calls[_name(var)])

    def ref_count(self, var: GlobalVar | str) -> int:
        """How many functions refer to `var`."""
        return sum([1 for counts in self._calls.values() if _name(var) in counts])

    def global_call_count(self, var: GlobalVar | str) -> int:
        """How many times `var` refers to global functions."""
        return sum(self._calls[_name(var)].values())

    def is_recursive(self, var: GlobalVar | str) -> bool:
        """Whether `var` refers to itself directly."""
        return _name(var) in self._calls[_name(var)]

    def reachable(self, *entries: GlobalVar | str) -> list[str]:
        """The functions that the entries use, the entries first."""
        found = dict.fromkeys([_name(e) for e in entries])
        stack = list(found)
        while stack:
            for callee in self._calls.get(stack.pop(), ()):
                if callee not in found:
                    found[callee] = None
                    stack.append(callee)
        return list(found)

    def print_var(self, var: GlobalVar | str) -> str:
        """One function's calls as text."""
        calls = ", ".join([f"{n} ({c})" for n, c in self._calls[_name(var)].items()])
        return f"{_name(var)} -> {calls or 'nothing'}"

    def __str__(self) -> str:
        return "\n".join([self.print_var(name) for name in self._calls])


def _name(var: GlobalVar | str) -> str:
    return var if isinstance(var, str) else str(var.name_hint)
