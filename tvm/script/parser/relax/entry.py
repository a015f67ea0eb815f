"""The decorators of relax."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable as AnyCallable
from types import FrameType
from typing import Any

from tvm.ir.function import BaseFunc
from tvm.ir.module import IRModule
from tvm.relax.analysis.well_formed import well_formed_problems
from tvm.relax.dpl.rewriters import PatternMatchingRewriter
from tvm.relax.expr import Function, relax_functions

from ..core.diagnostics import Source
from ..core.entry import WELL_FORMED_CHECKS, decorated, read_function, read_macro
from ..core.parser import Parser, ScriptMacro, VarTable, current_parser
from ..ir.entry import module_of_class
from .struct_infos import (
    Callable,
    MatchCastPair,
    Object,
    Prim,
    Shape,
    StructInfoProxy,
    Tensor,
    Tuple,
    match_cast,
)


def _problems(program: IRModule | BaseFunc) -> list[str]:
    if isinstance(program, Function) or (
        isinstance(program, IRModule) and relax_functions(program)
    ):
        return well_formed_problems(program)
    return []


WELL_FORMED_CHECKS.append(_problems)


def function(
    f: AnyCallable[..., Any] | None = None,
    pure: bool = True,
    private: bool = False,
    check_well_formed: bool = True,
) -> Any:
    """Read a Python function as a function of relax.

    Parameters
    ----------
    f : function
        The definition; its source is read, it is never run.
    pure : bool
        Whether it has no side effects.
    private : bool
        Leave out the attribute ``global_symbol``, which is the function's name.
    check_well_formed : bool
        Whether a function that is not well formed is rejected.
    """
    return decorated(function_of, f, sys._getframe(1), check_well_formed)


function.dispatch_token = "relax"  # type: ignore[attr-defined]


def function_of(func: Any, outer: FrameType, check_well_formed: bool = True) -> Any:
    """A definition as a function of relax; ``outer`` is the scope that it stands in."""
    return read_function(func, outer, "R.function", "relax", check_well_formed)


def rewriter(rewriter_mod: Any) -> PatternMatchingRewriter:
    """Read a class with the functions ``pattern`` and ``replacement`` as a rewriter.

    Parameters
    ----------
    rewriter_mod : class or IRModule
        The definition; it may have private functions too, which the replacement calls.
    """
    if not isinstance(rewriter_mod, IRModule):
        rewriter_mod = module_of_class(rewriter_mod, sys._getframe(1))
    return PatternMatchingRewriter.from_module(rewriter_mod)


rewriter.dispatch_token = "ir"  # type: ignore[attr-defined]


class RelaxMacro(ScriptMacro):
    """A macro of relax; its statements stand where it is called."""

    def __init__(
        self,
        source: Source,
        closure_vars: dict[str, Any],
        func: AnyCallable[..., Any],
        hygienic: bool,
    ) -> None:
        super().__init__(source, closure_vars, func, hygienic)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        parser = current_parser("R.macro")
        bound = inspect.signature(self.func).bind(*args, **kwargs)
        bound.apply_defaults()
        own = dict(bound.arguments)
        outer = parser.var_table
        if self.hygienic:
            parser.var_table = VarTable(self.closure_vars)
        try:
            with parser.var_table.with_frame():
                for name, value in own.items():
                    parser.var_table.add(name, value, True)
                return self.parse_macro(parser)
        finally:
            parser.var_table = outer

    def parse_macro(self, parser: Parser) -> Any:
        """Read the body; the value of its return statement."""
        (definition,) = self.source.as_ast().body
        result = None
        with parser.with_diag_source(self.source), parser.with_dispatch_token("relax"):
            for stmt in definition.body:  # type: ignore[attr-defined]
                if type(stmt).__name__ == "Return":
                    result = parser.eval_expr(stmt.value)
                    break
                parser.visit(stmt)
        return result


def macro(*args: Any, hygienic: bool = True) -> Any:
    """Read a function as a macro.

    Parameters
    ----------
    hygienic : bool
        Whether names in the macro are those at its definition, rather than at its call.
    """
    return read_macro(RelaxMacro, "R.macro", args, hygienic, sys._getframe(1))


__all__ = [
    "Callable", "MatchCastPair", "Object", "Prim", "Shape", "StructInfoProxy", "Tensor", "Tuple",
    "function", "macro", "match_cast", "rewriter",
]  # fmt: skip
