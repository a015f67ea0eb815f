"""Decorators that make expressions of a function's arguments.

@args_converter.auto
def build(x: Expr, *others: Expr) -> Expr: ...

build(1, "two", (3, 4))        # a PrimValue, a StringImm, a Tuple
"""

from __future__ import annotations

import types
import typing
from collections.abc import Callable, Mapping
from functools import wraps
from inspect import Parameter, signature
from typing import Any, TypeVar, Union, get_args, get_origin

from tvm.ir.expr import RelayExpr

from .expr import as_expr

F = TypeVar("F", bound=Callable[..., Any])
Convert = Callable[[Any], Any]


def _to_expr(value: Any) -> Any:
    return None if value is None else as_expr(value)


def _to_list(value: Any) -> Any:
    if value is None:
        return None
    if not isinstance(value, (list, tuple)):
        raise TypeError(f"a list of expressions is required, got {type(value).__name__}")
    return [as_expr(item) for item in value]


class ArgsConverter:
    """Makes decorators; None stays None."""

    @staticmethod
    def to_expr(*names: str) -> Callable[[F], F]:
        """Let parameters be expressions.

        Parameters
        ----------
        names : str
            The parameters; of ``*args`` and ``**kwargs`` every value.
        """
        return _converting(dict.fromkeys(names, _to_expr))

    @staticmethod
    def to_list_expr(*names: str) -> Callable[[F], F]:
        """Let parameters be lists of expressions.

        Parameters
        ----------
        names : str
            The parameters; of ``*args`` and ``**kwargs`` every value.

        Raises
        ------
        TypeError
            When the function is called with something else than a sequence.
        """
        return _converting(dict.fromkeys(names, _to_list))

    @staticmethod
    def auto(function: F) -> F:
        """Convert the parameters that are annotated as Expr or List[Expr], which may be Optional.

        Parameters
        ----------
        function : callable
        """
        hints = typing.get_type_hints(function)
        found = {name: _of_annotation(hint) for name, hint in hints.items() if name != "return"}
        return _converting({name: c for name, c in found.items() if c is not None})(function)


def _of_annotation(hint: Any) -> Convert | None:
    """What makes the annotated value of other ones; None if values stay."""
    if get_origin(hint) in (Union, types.UnionType):
        parts = [part for part in get_args(hint) if part is not type(None)]
        return _of_annotation(parts[0]) if len(parts) == 1 else None
    if hint is RelayExpr:
        return _to_expr
    is_list = get_origin(hint) is list and get_args(hint) == (RelayExpr,)
    return _to_list if is_list else None


def _converting(converters: Mapping[str, Convert]) -> Callable[[F], F]:
    def decorate(function: F) -> F:
        form = signature(function)

        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            bound = form.bind(*args, **kwargs)
            for name, value in bound.arguments.items():
                convert = converters.get(name)
                if convert is not None:
                    bound.arguments[name] = _converted(form.parameters[name], value, convert)
            return function(*bound.args, **bound.kwargs)

        return typing.cast(F, call)

    return decorate


def _converted(parameter: Parameter, value: Any, convert: Convert) -> Any:
    if parameter.kind is Parameter.VAR_POSITIONAL:
        return tuple([convert(item) for item in value])
    if parameter.kind is Parameter.VAR_KEYWORD:
        return {name: convert(item) for name, item in value.items()}
    return convert(value)


args_converter = ArgsConverter()

__all__ = ["ArgsConverter", "args_converter"]
