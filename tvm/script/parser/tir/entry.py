"""The decorators of the loop level."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

from ..core.diagnostics import Source
from ..core.entry import decorated, read_function, read_macro
from ..core.parser import Parser, ScriptMacro, VarTable, current_parser


def prim_func(
    func: Callable[..., Any] | None = None, private: bool = False, check_well_formed: bool = True
) -> Any:
    """Read a Python function as a loop-level function.

    Parameters
    ----------
    func : function
        The definition; its source is read, it is never run.
    private : bool
        Leave out the attribute ``global_symbol``, which is the function's name.
    check_well_formed : bool
        Whether a function that is not well formed is rejected.
    """
    return decorated(prim_func_of, func, sys._getframe(1), check_well_formed)


prim_func.dispatch_token = "tir"  # type: ignore[attr-defined]


def prim_func_of(func: Any, outer: FrameType, check_well_formed: bool = True) -> Any:
    """A definition as a loop-level function; ``outer`` is the scope that it stands in."""
    result = read_function(func, outer, "T.prim_func", "tir", check_well_formed)
    result.__name__ = func.__name__
    return result


class TIRMacro(ScriptMacro):
    """A macro of the loop level; its statements stand where it is called.

    @T.macro
    def add_one(A, i):
        A[i] = A[i] + 1
    """

    def __init__(
        self, source: Source, closure_vars: dict[str, Any], func: Callable[..., Any], hygienic: bool
    ) -> None:
        super().__init__(source, closure_vars, func, hygienic)
        self.signature = inspect.signature(func)

    def __get__(self, owner: Any, kind: type | None = None) -> Any:
        """As a method of an object, the macro has that as its first argument."""
        if owner is None:
            return self
        return lambda *args, **keywords: self(owner, *args, **keywords)

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        """Read the definition's statements where it is called."""
        parser = current_parser("a macro")
        bound = self.signature.bind(*args, **keywords)
        bound.apply_defaults()
        outer = parser.var_table
        names = {**outer.values, **self.closure_vars} if self.hygienic else outer.values
        parser.var_table = VarTable({**names, "range": outer.values["range"]})
        try:
            with parser.with_diag_source(self.source), parser.var_table.with_frame():
                for name, value in bound.arguments.items():
                    parser.var_table.add(name, value)
                return self.parse_macro(parser)
        finally:
            parser.var_table = outer

    def parse_macro(self, parser: Parser) -> None:
        definition: Any = self.source.as_ast().body[0]
        with parser.with_dispatch_token("tir"):
            parser.visit_body(definition.body)


def macro(*args: Any, hygienic: bool = True) -> Any:
    """Make a function a macro.

    Parameters
    ----------
    hygienic : bool
        Whether names in the macro are those at its definition, rather than at its call.
    """
    return read_macro(TIRMacro, "T.macro", args, hygienic, sys._getframe(1))


__all__ = ["TIRMacro", "macro", "prim_func", "prim_func_of"]
