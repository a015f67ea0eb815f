"""Programs of any language: as functions and classes, or as text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import FrameType, FunctionType
from typing import Any

from tvm.ir.diagnostics import reported
from tvm.ir.function import BaseFunc
from tvm.ir.module import IRModule
from tvm.support import deep
from tvm.tir.analysis.verify_well_formed import scope_problems
from tvm.tir.function import PrimFunc

from ...ir_builder import IRBuilder
from .diagnostics import Source
from .error import ScriptError
from .parser import Parser
from .utils import inspect_class_capture, inspect_function_capture, is_defined_in_class

# the languages that programs in strings may use without an import, by the names they have there
LANGUAGES: dict[str, Any] = {}

# what is wrong with a module or a function of a language that stands higher, in sentences
WELL_FORMED_CHECKS: list[Callable[[IRModule | BaseFunc], list[str]]] = []


def parse(
    program: Any, extra_vars: Mapping[str, Any] | None = None, check_well_formed: bool = True
) -> Any:
    """Read a program: a function, a class, or a text with one of them.

    Parameters
    ----------
    program : function, class or str
        The text is such as ``node.script()`` gives it.
    extra_vars : dict, optional
        Names that the program may use; beside those of the languages if it is a text.
    check_well_formed : bool
        Whether a program that is not well formed is rejected.

    Raises
    ------
    DiagnosticError
        With the place in the source.
    """
    names = dict(extra_vars or {})
    if isinstance(program, str):
        names = {"__name__": "__script__", **LANGUAGES, **names}
    with reported():
        parser = Parser(Source(program), _annotations(program))
        return _read(parser, names, check_well_formed)


from_source = parse


def parse_function(
    func: FunctionType, outer: FrameType | None, token: str, check_well_formed: bool = True
) -> Any:
    """Read a function of a language; ``outer`` is the scope that it stands in."""
    with reported():
        parser = Parser(Source(func, outer), _annotations(func), token)
        return _read(parser, inspect_function_capture(func, outer), check_well_formed)


def decorated(
    read: Callable[[Any, FrameType, bool], Any],
    definition: Any,
    outer: FrameType,
    check_well_formed: bool,
) -> Any:
    """What a decorator makes of a definition; of none, as with parentheses, the decorator."""
    if definition is None:
        return lambda given: read(given, outer, check_well_formed)
    return read(definition, outer, check_well_formed)


def read_function(
    func: Any, outer: FrameType, decorator: str, token: str, check_well_formed: bool
) -> Any:
    """A definition as a function of a language; in a class it stays, the class's decorator reads it."""
    if not isinstance(func, FunctionType):
        raise TypeError(f"{decorator} requires a function, got {type(func).__name__}")
    if is_defined_in_class(Source(func, outer).text, outer):
        return func
    return parse_function(func, outer, token, check_well_formed)


def parse_class(
    cls: type,
    outer: FrameType,
    token: str,
    check_well_formed: bool = True,
    line: int | None = None,
) -> Any:
    """Read a class of a language; ``outer`` is the scope that it stands in, and is at its line by default."""
    with reported():
        parser = Parser(Source(cls, outer, line), _annotations(cls), token)
        return _read(parser, inspect_class_capture(cls, outer), check_well_formed)


def _annotations(program: Any) -> dict[str, dict[str, Any]]:
    if isinstance(program, FunctionType):
        return {program.__name__: program.__annotations__}
    if not isinstance(program, type):
        return {}
    functions = {k: v for k, v in vars(program).items() if isinstance(v, FunctionType)}
    return {name: function.__annotations__ for name, function in functions.items()}


@deep
def _read(parser: Parser, names: dict[str, Any], check_well_formed: bool) -> Any:
    with IRBuilder() as builder:
        parser.parse(names)
    if builder.result is None:
        raise ScriptError("a program requires a function or a class, got none")
    result = builder.get()
    if check_well_formed and isinstance(result, (IRModule, BaseFunc)):
        _check(result, parser)
    return result


def _check(program: IRModule | BaseFunc, parser: Parser) -> None:
    """Reject what is used outside of its scope: no later pass can work on it."""
    functions = list(program.functions.values()) if isinstance(program, IRModule) else [program]
    found = [p for func in functions if isinstance(func, PrimFunc) for p in scope_problems(func)]
    problems = found or [p for check in WELL_FORMED_CHECKS for p in check(program)]
    if problems:
        source = parser.diag.source
        what = "module" if isinstance(program, IRModule) else "function"
        parser.report_error(
            source.node or source.text.tree.body[-1],
            f"the {what} is not well formed: {problems[0].rstrip('.')}; "
            "hint: check_well_formed=False allows it",
        )


def scan_macro(
    program: Any, extra_vars: Mapping[str, Any] | None = None
) -> tuple[Source, dict[str, Any]]:
    """The source of a macro, and the names that it may use."""
    return Source(program), dict(extra_vars or {})


def read_macro(
    kind: Callable[..., Any],
    decorator: str,
    given: tuple[Any, ...],
    hygienic: bool,
    outer: FrameType,
) -> Any:
    """What a decorator of macros makes of a function; of no arguments, the decorator."""

    def build(func: Any) -> Any:
        source, names = scan_macro(func, inspect_function_capture(func, outer))
        return kind(source, names, func, hygienic)

    if not given:
        return build
    if len(given) == 1 and isinstance(given[0], FunctionType):
        return build(given[0])
    raise ValueError(f"{decorator} takes no arguments but by name: {decorator}(hygienic=...)")


__all__ = ["from_source", "parse", "parse_class", "parse_function", "scan_macro"]
