"""Rename functions of a module wherever they are named.

def main(x): return @f(x)        ->     def main(x): return @g(x)
def f(x): ...                           def g(x): ...
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from tvm.error import RuntimeValueError
from tvm.support import deep

from .expr import GlobalVar
from .function import BaseFunc
from .node import Node
from .visitor import Rewriter

N = TypeVar("N", bound=Node)


class GlobalVarReplacer(Rewriter, memo=True):
    """Names functions by other global variables."""

    def __init__(self, replacements: Mapping[GlobalVar, GlobalVar]) -> None:
        self.replacements = replacements

    def visit_global_var(self, var: GlobalVar) -> GlobalVar:
        return self.replacements.get(var, var)

    def rewrite_children(self, node: N) -> N:
        new: N = super().rewrite_children(node)
        op = getattr(node, "op", None)
        if not isinstance(op, GlobalVar) or op not in self.replacements:
            return new
        # loop-level calls refer to their function, so that it is no child of theirs
        return new.replace(op=self.replacements[op])


@deep
def replace_global_vars(
    functions: Mapping[GlobalVar, BaseFunc], replacements: Mapping[GlobalVar, GlobalVar]
) -> dict[GlobalVar, BaseFunc]:
    """The functions under their new names, with calls and symbols that follow.

    Raises
    ------
    ValueError
        If two functions would have one name.
    """
    owners: dict[str, GlobalVar] = {}
    for before in functions:
        name = replacements.get(before, before).name_hint
        if (other := owners.setdefault(name, before)) is not before:
            raise RuntimeValueError(
                f"replace_global_vars requires a name for each function, got {name!r} for"
                f" {other.name_hint!r} and {before.name_hint!r}"
            )
    symbols = {old.name_hint: new.name_hint for old, new in replacements.items()}
    replacer = GlobalVarReplacer(replacements)
    return {
        replacements.get(gvar, gvar): _with_symbol(replacer.visit(function), symbols)
        for gvar, function in functions.items()
    }


def _with_symbol(function: BaseFunc, symbols: Mapping[str, str]) -> BaseFunc:
    """The function, its ``global_symbol`` renamed; private functions have none."""
    symbol = function.attrs.get("global_symbol")
    name = symbols.get(str(symbol), symbol) if symbol is not None else None
    return function if name == symbol else function.with_attr("global_symbol", name)


__all__ = ["GlobalVarReplacer", "replace_global_vars"]
