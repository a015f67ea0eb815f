"""The arithmetic functions under the names that libraries of operators know."""

from __future__ import annotations

from typing import Any

from tvm.ir.expr import PrimExpr
from tvm.ir.span import Span

from . import op
from .op import add, cast, multiply, subtract


def divide(lhs: Any, rhs: Any, span: Span | None = None) -> PrimExpr:
    """The quotient as in C: of integers, rounded towards zero."""
    return op.div(lhs, rhs, span)


def floordiv(lhs: Any, rhs: Any, span: Span | None = None) -> PrimExpr:
    """The quotient, rounded down."""
    return op.floordiv(lhs, rhs, span)


__all__ = ["add", "cast", "divide", "floordiv", "multiply", "subtract"]
