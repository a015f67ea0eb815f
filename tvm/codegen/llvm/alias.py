"""Alias scopes: which accesses of a function cannot touch the same memory.

Each piece of memory (an argument, an allocation) is a scope; an access is in its own scope and not in the
others. Unlike ``noalias`` parameters this also holds in the functions that parallel loops are moved to.
"""

from __future__ import annotations

from collections.abc import Callable

from tvm.tir.expr import Var

# each scope lists all the others, and LLVM goes through them
MOST_SCOPES = 32


class AliasScopes:
    """The scopes of one PrimFunc. Numbers of metadata nodes come from ``new_number``."""

    def __init__(self, new_number: Callable[[], int], domain: str) -> None:
        self._new_number = new_number
        self._name = domain
        self._domain = new_number()
        self._numbers: dict[Var, tuple[int, int, int]] = {}
        self._suffix: dict[Var, str] = {}

    def add(self, var: Var) -> None:
        """``var`` points to memory that no other added variable points into.

        Variables beyond the first `MOST_SCOPES` are taken to point anywhere.
        """
        if var not in self._numbers and len(self._numbers) < MOST_SCOPES:
            own, others, single = self._new_number(), self._new_number(), self._new_number()
            self._numbers[var] = own, others, single
            self._suffix[var] = f", !alias.scope !{single}, !noalias !{others}"

    def metadata(self, var: Var) -> str:
        """What to append to an access through ``var``."""
        return self._suffix.get(var, "")

    def definitions(self) -> list[str]:
        """The metadata nodes."""
        if not self._numbers:
            return []
        own = {var: numbers[0] for var, numbers in self._numbers.items()}
        lines = [f'!{self._domain} = distinct !{{!{self._domain}, !"{self._name}"}}']
        for var, (scope, others, single) in self._numbers.items():
            rest = ", ".join([f"!{number}" for other, number in own.items() if other is not var])
            lines.append(f'!{scope} = distinct !{{!{scope}, !{self._domain}, !"{var.name}"}}')
            lines.append(f"!{others} = !{{{rest}}}")
            lines.append(f"!{single} = !{{!{scope}}}")
        return lines
