"""The Python operators of expressions.

They call the constructors of ``tir.op``, which convert operands and fold constants. That module stands
above the nodes, so it hands itself in when it is loaded.
"""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING, Any

from tvm.ir.expr import PrimExpr
from tvm.ir.script_printer import Scriptable

if TYPE_CHECKING:
    from tvm.ir.span import Span

    from . import op as _functions


def install_functions(module: ModuleType) -> None:
    """Tell where ``add``, ``subtract`` and the other functions behind the operators are."""
    globals()["_functions"] = module


class NotAnOperand(TypeError):
    """A value beside an operator is no expression and no number."""


class ExprOp:
    """The Python operators of expressions.

    Operands that are neither expressions nor numbers, such as tensors, bring their own.
    """

    __slots__ = ()

    def __add__(self, other: Any) -> PrimExpr:
        try:
            return _functions.add(self, other)
        except NotAnOperand:
            return NotImplemented

    def __radd__(self, other: Any) -> PrimExpr:
        return _functions.add(other, self)

    def __sub__(self, other: Any) -> PrimExpr:
        try:
            return _functions.subtract(self, other)
        except NotAnOperand:
            return NotImplemented

    def __rsub__(self, other: Any) -> PrimExpr:
        return _functions.subtract(other, self)

    def __mul__(self, other: Any) -> PrimExpr:
        try:
            return _functions.multiply(self, other)
        except NotAnOperand:
            return NotImplemented

    def __rmul__(self, other: Any) -> PrimExpr:
        return _functions.multiply(other, self)

    def __truediv__(self, other: Any) -> PrimExpr:
        try:
            return _functions.true_divide(self, other)
        except NotAnOperand:
            return NotImplemented

    def __rtruediv__(self, other: Any) -> PrimExpr:
        return _functions.true_divide(other, self)

    def __floordiv__(self, other: Any) -> PrimExpr:
        try:
            return _functions.floordiv(self, other)
        except NotAnOperand:
            return NotImplemented

    def __rfloordiv__(self, other: Any) -> PrimExpr:
        return _functions.floordiv(other, self)

    def __mod__(self, other: Any) -> PrimExpr:
        try:
            return _functions.floormod(self, other)
        except NotAnOperand:
            return NotImplemented

    def __rmod__(self, other: Any) -> PrimExpr:
        return _functions.floormod(other, self)

    def __lshift__(self, other: Any) -> PrimExpr:
        try:
            return _functions.shift_left(self, other)
        except NotAnOperand:
            return NotImplemented

    def __rlshift__(self, other: Any) -> PrimExpr:
        return _functions.shift_left(other, self)

    def __rshift__(self, other: Any) -> PrimExpr:
        try:
            return _functions.shift_right(self, other)
        except NotAnOperand:
            return NotImplemented

    def __rrshift__(self, other: Any) -> PrimExpr:
        return _functions.shift_right(other, self)

    def __and__(self, other: Any) -> PrimExpr:
        try:
            return _functions.bitwise_and(self, other)
        except NotAnOperand:
            return NotImplemented

    def __rand__(self, other: Any) -> PrimExpr:
        return _functions.bitwise_and(other, self)

    def __or__(self, other: Any) -> PrimExpr:
        try:
            return _functions.bitwise_or(self, other)
        except NotAnOperand:
            return NotImplemented

    def __ror__(self, other: Any) -> PrimExpr:
        return _functions.bitwise_or(other, self)

    def __xor__(self, other: Any) -> PrimExpr:
        try:
            return _functions.bitwise_xor(self, other)
        except NotAnOperand:
            return NotImplemented

    def __rxor__(self, other: Any) -> PrimExpr:
        return _functions.bitwise_xor(other, self)

    def __lt__(self, other: Any) -> PrimExpr:
        try:
            return _functions.less(self, other)
        except NotAnOperand:
            return NotImplemented

    def __le__(self, other: Any) -> PrimExpr:
        try:
            return _functions.less_equal(self, other)
        except NotAnOperand:
            return NotImplemented

    def __gt__(self, other: Any) -> PrimExpr:
        try:
            return _functions.greater(self, other)
        except NotAnOperand:
            return NotImplemented

    def __ge__(self, other: Any) -> PrimExpr:
        try:
            return _functions.greater_equal(self, other)
        except NotAnOperand:
            return NotImplemented

    def __eq__(self, other: Any) -> Any:
        try:
            return _functions.equal(self, other)
        except TypeError:
            return NotImplemented

    def __ne__(self, other: Any) -> Any:
        try:
            return _functions.not_equal(self, other)
        except TypeError:
            return NotImplemented

    # equality builds a node, so nodes are hashed by identity
    __hash__ = object.__hash__

    def __neg__(self) -> PrimExpr:
        return _functions.negative(self)

    def __invert__(self) -> PrimExpr:
        return _functions.bitwise_not(self)

    def __abs__(self) -> PrimExpr:
        return _functions.abs(self)

    def __bool__(self) -> bool:
        raise ValueError(
            f"a symbolic expression has no Python truth value, got {self}; "
            "hint: use tvm.tir.all, tvm.tir.any and tvm.tir.Not in place of and, or and not, and "
            "tvm.tir.if_then_else in place of if"
        )

    def equal(self, other: Any, span: Span | None = None) -> PrimExpr:
        """The expression ``self == other``."""
        return _functions.equal(self, other, span)

    def astype(self, dtype: Any, span: Span | None = None) -> PrimExpr:
        """This value converted to ``dtype``."""
        return _functions.cast(self, dtype, span)


class PrimExprWithOp(ExprOp, Scriptable, PrimExpr):
    """An expression with Python operators: the base of all nodes in this module."""

    __hash__ = ExprOp.__hash__
