"""Who reads which kind of statement, by language; and operators of foreign operands.

    @dispatch.register(token="tir", type_name="For")
    def visit_for(self: Parser, node: doc.For) -> None: ...

A language is a token, which its decorator has as ``dispatch_token``.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from .parser import Parser

ParseMethod = Callable[["Parser", Any], Any]
M = TypeVar("M", bound=Callable[..., Any])

_METHODS: dict[tuple[str, str], ParseMethod] = {}
_OPERATORS: dict[tuple[type, type, int], Callable[..., Any]] = {}


def register(token: str, type_name: str) -> Callable[[M], M]:
    """Read a kind of node by a function of (parser, node), where a language is spoken.

    Parameters
    ----------
    token : str
        The language, such as ``"tir"``.
    type_name : str
        The class of nodes, such as ``"For"``, or an event such as ``"post_token_switch"``.
    """

    def add(function: M) -> M:
        _METHODS[token, type_name] = function
        return function

    return add


def get(token: str, type_name: str, default: ParseMethod | None = None) -> ParseMethod | None:
    """What reads a kind of node."""
    return _METHODS.get((token, type_name), default)


def register_op(
    operand_type: type, op_node_type: type[ast.AST], operand_index: int
) -> Callable[[M], M]:
    """Evaluate an operator by a function where the operand at an index is of a type."""

    def add(function: M) -> M:
        _OPERATORS[operand_type, op_node_type, operand_index] = function
        return function

    return add


def get_op(
    operand_type: type, op_node_type: type[ast.AST], operand_index: int, default: Any = None
) -> Any:
    """What evaluates an operator."""
    return _OPERATORS.get((operand_type, op_node_type, operand_index), default)


def find_op(kind: type[ast.AST], operands: tuple[Any, ...]) -> Callable[..., Any] | None:
    """The function for an operator with these operands, of the first that has one."""
    if not _OPERATORS:
        return None
    for index, operand in enumerate(operands):
        operand_type = getattr(operand, "_dispatch_type", type(operand))
        found = _OPERATORS.get((operand_type, kind, index))
        if found is not None:
            return found
    return None


__all__ = ["ParseMethod", "find_op", "get", "get_op", "register", "register_op"]
