"""The decorators, and programs in strings."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Mapping
from types import FrameType, FunctionType
from typing import Any

from tvm.ir.module import IRModule
from tvm.support import deep
from tvm.tir.function import PrimFunc

from . import namespace
from .functions import read_function, read_module
from .source import ScriptError, Source, closure_of, source_of_file, source_of_text
from .statements import StatementReader


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
        Accepted for compatibility.
    """
    if func is None:
        outer = sys._getframe(1)
        return lambda definition: prim_func_of(definition, outer, private)
    return prim_func_of(func, sys._getframe(1), private)


@deep
def prim_func_of(func: Any, outer: FrameType, private: bool = False) -> Any:
    """A definition as a loop-level function; ``outer`` is the scope that it stands in."""
    if not isinstance(func, FunctionType):
        raise TypeError(f"T.prim_func requires a function, got {type(func).__name__}")
    source = source_of_file(func.__code__.co_filename, outer)
    if _is_in_module(source, outer):
        return func  # the decorator of the class reads it
    node = source.definitions.get(func.__code__.co_firstlineno)
    if not isinstance(node, ast.FunctionDef):
        raise ScriptError(f"the definition of {func.__name__} cannot be found in {source.name}")
    return read_function(source, node, _captured(func, outer), func.__annotations__, private)


def _is_in_module(source: Source, frame: FrameType) -> bool:
    """Whether the frame is the body of a class with ``ir_module``."""
    if "__qualname__" not in frame.f_locals:
        return False
    node = source.definitions.get(frame.f_code.co_firstlineno)
    return isinstance(node, ast.ClassDef) and any(
        "ir_module" in ast.unparse(decorator) for decorator in node.decorator_list
    )


def _captured(func: Any, outer: FrameType) -> dict[str, Any]:
    """The names that a definition may use: globals, the scope around it, its closure."""
    return {**func.__globals__, **_locals(outer), **closure_of(func)}


def _locals(frame: FrameType) -> dict[str, Any]:
    return {} if frame.f_locals is frame.f_globals else dict(frame.f_locals)


def ir_module(mod: type | None = None, check_well_formed: bool = True) -> Any:
    """Read a Python class as a module; its functions are those with ``T.prim_func``."""
    if mod is None:
        outer = sys._getframe(1)
        return lambda definition: module_of_class(definition, outer)
    return module_of_class(mod, sys._getframe(1))


@deep
def module_of_class(mod: Any, outer: FrameType, line: int | None = None) -> IRModule:
    """A class as a module; ``outer`` is the scope that it stands in, and is at its line by default."""
    if not isinstance(mod, type):
        raise TypeError(f"I.ir_module requires a class, got {type(mod).__name__}")
    source = source_of_file(outer.f_code.co_filename, outer)
    node = _class_at(source, mod.__name__, line or outer.f_lineno)
    functions = {k: v for k, v in vars(mod).items() if isinstance(v, FunctionType)}
    names = {**outer.f_globals, **_locals(outer)}
    for function in functions.values():
        names.update(closure_of(function))
    annotations = {name: function.__annotations__ for name, function in functions.items()}
    return read_module(source, node, names, annotations)


def _class_at(source: Source, name: str, line: int) -> ast.ClassDef:
    """The class whose definition is at a line (of its decorator or its head)."""
    for first, node in source.definitions.items():
        if isinstance(node, ast.ClassDef) and node.name == name and first <= line <= node.lineno:
            return node
    raise ScriptError(f"the definition of class {name} cannot be found in {source.name}")


@deep
def from_source(program: str | Any, extra_vars: Mapping[str, Any] | None = None) -> Any:
    """Read a program in a string: a function or a module, with its decorator.

    Parameters
    ----------
    program : str
        The text, such as ``node.script()`` gives it.
    extra_vars : dict, optional
        Names that the program may use, beside ``T``, ``I``, ``tir`` and ``ir``.
    """
    source = source_of_text(program)
    names = {"__name__": "__script__", **namespace.default_names(), **(extra_vars or {})}
    found: Any = None
    for node in source.tree.body:
        if isinstance(node, ast.FunctionDef):
            found = _function_of_text(source, node, names)
        elif isinstance(node, ast.ClassDef):
            found = read_module(source, node, names)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            continue
        elif not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
            raise source.error("a program requires a function or a class", node)
    if found is None:
        raise ScriptError("a program requires a function or a class, got none")
    return found


def _function_of_text(source: Source, node: ast.FunctionDef, names: dict[str, Any]) -> PrimFunc:
    from_decorator = [d for d in node.decorator_list if isinstance(d, ast.Call)]
    private = any(
        keyword.arg == "private" and getattr(keyword.value, "value", False) is True
        for decorator in from_decorator
        for keyword in decorator.keywords
    )
    return read_function(source, node, names, None, private)


parse = from_source

__all__ = ["StatementReader", "from_source", "ir_module", "parse", "prim_func"]
