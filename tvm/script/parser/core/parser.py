"""Goes through the statements of a script; languages register who reads which of them."""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from tvm.support import Scoped

from . import dispatch
from .diagnostics import Diagnostics, Source
from .error import ParserError, ScriptError
from .evaluator import HELPERS, SCRIPT_FAULTS, Evaluator, assigned

BindValue = Callable[["Parser", ast.expr, str, Any], Any]
_MISSING = object()


class VarTable:
    """Names and their values; those that a frame adds are gone when it ends."""

    def __init__(self, values: Mapping[str, Any] | None = None) -> None:
        self.values: dict[str, Any] = {**HELPERS, **(values or {})}
        self.frames: list[dict[str, Any]] = []  # name -> what it was before the frame

    @contextmanager
    def with_frame(self) -> Iterator[None]:
        """A frame for the names inside the block."""
        self.frames.append({})
        try:
            yield
        finally:
            for name, value in self.frames.pop().items():
                if value is _MISSING:
                    self.values.pop(name, None)
                else:
                    self.values[name] = value

    def add(self, var: str, value: Any, allow_shadowing: bool = False) -> None:
        """Give a name a value.

        Raises
        ------
        ValueError
            If the frame has another value of that name.
        """
        frame = self.frames[-1]
        if var not in frame:
            frame[var] = self.values.get(var, _MISSING)
        elif self.values[var] is not value and not allow_shadowing:
            raise ValueError(f"variable {var} is already defined in the current scope")
        self.values[var] = value

    def get(self) -> dict[str, Any]:
        """All names that are visible."""
        return self.values

    def exist(self, value: Any) -> bool:
        """Whether some name has this very value."""
        return any(value is known for known in self.values.values())


class ScriptMacro(ABC):
    """A piece of script that is read anew wherever it is called.

    Parameters
    ----------
    source : Source
        The definition.
    closure_vars : dict of str to object
        The names that it may use.
    func : function
    hygienic : bool
        Whether names are those at the definition, rather than at the call.
    """

    def __init__(
        self, source: Source, closure_vars: dict[str, Any], func: Callable[..., Any], hygienic: bool
    ) -> None:
        self.source = source
        self.closure_vars = closure_vars
        self.func = func
        self.hygienic = hygienic

    @abstractmethod
    def parse_macro(self, parser: Parser) -> Any:
        """Read the macro's body by a parser."""


class Parser(ast.NodeVisitor):
    """Reads one source.

    Parameters
    ----------
    source : Source
    function_annotations : dict of str to dict
        The annotations of functions' parameters, by function, as Python evaluated them.
    token : str, optional
        The language of a definition without a decorator.
    """

    def __init__(
        self,
        source: Source,
        function_annotations: Mapping[str, Mapping[str, Any]] | None = None,
        token: str | None = None,
    ) -> None:
        self.diag = Diagnostics(source)
        self.dispatch_tokens = ["default"]
        self.function_annotations = function_annotations or {}
        self.var_table = VarTable()
        self._token = token

    def parse(self, extra_vars: Mapping[str, Any] | None = None) -> Any:
        """Read the source.

        Parameters
        ----------
        extra_vars : dict, optional
            The names that it may use.
        """
        self.var_table = VarTable(extra_vars)
        with self.var_table.with_frame(), _CURRENT.scope(self):
            self.visit_body(self.diag.source.as_ast().body)

    # ---- language and source

    @contextmanager
    def with_dispatch_token(self, token: str) -> Iterator[None]:
        """Speak a language inside the block."""
        self.dispatch_tokens.append(token)
        enter = dispatch.get(token, "enter_token")
        context = enter(self, None) if enter is not None else None
        try:
            yield
        finally:
            self.dispatch_tokens.pop()
            leave = dispatch.get(token, "exit_token")
            if leave is not None:
                leave(self, context)

    @contextmanager
    def with_diag_source(self, source: Source) -> Iterator[None]:
        """Read another source inside the block."""
        outer, self.diag = self.diag, Diagnostics(source)
        try:
            yield
        finally:
            self.diag = outer

    # ---- expressions and names

    def eval_expr(self, node: ast.expr, extra_vars: Mapping[str, Any] | None = None) -> Any:
        """The value of an expression."""
        values = self.var_table.values
        if extra_vars:
            values = {**values, **extra_vars}
        return Evaluator(self.diag.text, values).value(node)

    def eval_assign(
        self,
        target: ast.expr,
        source: Any,
        bind_value: BindValue,
        allow_shadowing: bool = False,
    ) -> dict[str, Any]:
        """Assign a value to names.

        Parameters
        ----------
        target : expr
            A name, or a tuple of targets.
        source : object
        bind_value : callable
            What a name stands for, from (parser, target, name, value).
        allow_shadowing : bool
            Whether names may be given anew in their frame.
        """
        self.duplicate_lhs_check(target)
        result = {}
        for name, value in assigned(target, source, self):
            bound = result[name] = bind_value(self, target, name, value)
            self.var_table.add(name, bound, allow_shadowing)
        return result

    def duplicate_lhs_check(self, target: ast.expr) -> set[str]:
        """The names of a target, each of which may stand there once."""
        if isinstance(target, ast.Name):
            return {target.id}
        if isinstance(target, ast.Starred):
            return self.duplicate_lhs_check(target.value)
        names: set[str] = set()
        for part in getattr(target, "elts", ()):
            more = self.duplicate_lhs_check(part)
            if again := names & more:
                self.report_error(target, f"{', '.join(sorted(again))} is assigned twice")
            names |= more
        return names

    # ---- errors

    def report_error(self, node: ast.AST, err: Exception | str) -> None:
        """Raise an error that shows a node.

        Raises
        ------
        DiagnosticError
        """
        if isinstance(err, KeyError):
            err = f"KeyError: {err}"
        if isinstance(err, Exception):
            raise self.diag.text.error(str(err), node) from err
        raise self.diag.text.error(err, node)

    # ---- statements

    def visit(self, node: ast.AST | Sequence[ast.AST]) -> Any:
        """Read a statement, or several."""
        if isinstance(node, (list, tuple)):
            for item in node:
                self.visit(item)
            return None
        assert isinstance(node, ast.AST)
        name = type(node).__name__
        method = dispatch.get(self.dispatch_tokens[-1], name) or dispatch.get("default", name)
        if method is None:
            self.report_error(node, f"a {name} statement is not part of the language")
        assert method is not None
        try:
            return method(self, node)
        except ScriptError:
            raise
        except ParserError as error:
            self.report_error(error.node, error.args[0])
        except SCRIPT_FAULTS as error:
            self.report_error(node, error)

    def visit_body(self, node: Sequence[ast.stmt]) -> Any:
        """Read statements one after the other."""
        for stmt in node:
            self.visit(stmt)

    def visit_tvm_annotation(self, node: ast.expr) -> Any:
        """The value of an annotation, as the language in use understands it."""
        method = dispatch.get(self.dispatch_tokens[-1], "tvm_annotation")
        return self.eval_expr(node) if method is None else method(self, node)

    def get_dispatch_token(self, node: ast.FunctionDef | ast.ClassDef) -> str:
        """The language of a definition, which its last decorator tells."""
        if not node.decorator_list:
            if self._token is not None:
                return self._token
            self.report_error(node, f"{node.name} requires a decorator such as T.prim_func")
        decorator = self.eval_expr(decorator_name(node.decorator_list[-1]))
        token = getattr(decorator, "dispatch_token", None)
        if token is None:
            self.report_error(node, f"the decorator of {node.name} is not one of the language")
        return str(token)

    def visit_tvm_declare_function(self, node: ast.FunctionDef) -> Any:
        """Announce a function to the module around it."""
        token = self.get_dispatch_token(node)
        with self.with_dispatch_token(token):
            method = dispatch.get(token, "tvm_declare_function")
            return None if method is None else method(self, node)


def decorator_name(decorator: ast.expr) -> ast.expr:
    """A decorator without its arguments."""
    return decorator.func if isinstance(decorator, ast.Call) else decorator


@dispatch.register(token="default", type_name="FunctionDef")
def visit_function_def(self: Parser, node: ast.FunctionDef) -> None:
    """A function in the language of its decorator."""
    token = self.get_dispatch_token(node)
    outer = self.dispatch_tokens[-1]
    before = dispatch.get(outer, "pre_visit_local_function")
    after = dispatch.get(outer, "post_visit_local_function")
    method = dispatch.get(token, "FunctionDef")
    if method is None:
        self.report_error(node, f"{token} has no functions")
    assert method is not None
    if before is not None:
        before(self, node)
    method(self, node)
    if after is not None:
        after(self, node)


@dispatch.register(token="default", type_name="ClassDef")
def visit_class_def(self: Parser, node: ast.ClassDef) -> None:
    """A class in the language of its decorator."""
    token = self.get_dispatch_token(node)
    method = dispatch.get(token, "ClassDef")
    if method is None:
        self.report_error(node, f"{token} has no classes")
    assert method is not None
    method(self, node)


@dispatch.register(token="default", type_name="Import")
@dispatch.register(token="default", type_name="ImportFrom")
@dispatch.register(token="default", type_name="Pass")
def visit_nothing(self: Parser, node: ast.stmt) -> None:
    """What a program's file has beside its definitions."""


@dispatch.register(token="default", type_name="Expr")
def visit_expr(self: Parser, node: ast.Expr) -> None:
    """A docstring."""
    if not isinstance(node.value, ast.Constant):
        self.report_error(node, "a program requires a function or a class")


@dispatch.register(token="default", type_name="Assign")
def visit_assign(self: Parser, node: ast.Assign) -> None:
    """A value that the definitions below use."""
    value = self.eval_expr(node.value)
    for target in node.targets:
        self.eval_assign(target, value, lambda parser, at, name, item: item, True)


_CURRENT: Scoped[Parser] = Scoped("tvm_script_parser")


def current_parser(what: str) -> Parser:
    """The parser of the script in which ``what`` is used."""
    parser = _CURRENT.current()
    if parser is None:
        raise RuntimeError(f"{what} requires a function that is being parsed")
    return parser


__all__ = ["Parser", "ScriptMacro", "VarTable", "current_parser"]
