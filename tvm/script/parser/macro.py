"""Macros: pieces of script that are read anew wherever they are called.

@T.macro
def add_one(A, i):
    A[i] = A[i] + 1
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Callable
from types import FrameType, FunctionType
from typing import Any

from .source import ScriptError, closure_of, source_of_file
from .statements import StatementReader, current_reader


class Macro:
    """A definition with the names it may use."""

    def __init__(self, func: FunctionType, outer: FrameType, hygienic: bool) -> None:
        self.signature = inspect.signature(func)
        self.source = source_of_file(func.__code__.co_filename, outer)
        node = self.source.definitions.get(func.__code__.co_firstlineno)
        if not isinstance(node, ast.FunctionDef):
            raise ScriptError(f"the definition of {func.__name__} cannot be found")
        self.node = node
        self.hygienic = hygienic
        inner = {} if outer.f_locals is outer.f_globals else dict(outer.f_locals)
        self.names = {**func.__globals__, **inner, **closure_of(func)}

    def __call__(self, *args: Any, **keywords: Any) -> None:
        """Read the definition's statements where it is called."""
        caller = current_reader("a macro")
        bound = self.signature.bind(*args, **keywords)
        bound.apply_defaults()
        names = {**caller.variables, **self.names} if self.hygienic else dict(caller.variables)
        for name in ("range", "__builtins__", *caller.helpers):
            names[name] = caller.variables[name]
        names.update(bound.arguments)
        reader = StatementReader(self.source, caller.builder, names)
        reader.statements(self.node.body)


def macro(*args: Any, hygienic: bool = True) -> Any:
    """Make a function a macro.

    Parameters
    ----------
    hygienic : bool
        Whether names in the macro are those at its definition, rather than at its call.
    """
    outer = sys._getframe(1)
    build: Callable[[Any], Macro] = lambda func: Macro(func, outer, hygienic)  # noqa: E731
    if len(args) == 1 and isinstance(args[0], FunctionType):
        return build(args[0])
    return build
