"""Arithmetic, comparisons and logic: constructors that convert, unify data types and fold constants."""

from __future__ import annotations

import builtins
import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from tvm.error import RuntimeTypeError, RuntimeValueError
from tvm.ir.expr import PrimExpr
from tvm.support.docstrings import described_by, returns
from tvm.support.dtype import DType
from tvm.support.dtype import dtype as as_dtype

from . import fold
from .constants import fits
from .expr import (
    BOOL,
    EQ,
    FLOAT32,
    GE,
    GT,
    INDEX_DTYPES,
    INT32,
    KINDS,
    LE,
    LT,
    NE,
    SMALL_INTS,
    Add,
    And,
    Broadcast,
    Cast,
    Div,
    FloatImm,
    FloorDiv,
    FloorMod,
    IntImm,
    Kind,
    Max,
    Min,
    Mod,
    Mul,
    Not,
    Or,
    Ramp,
    Select,
    Sub,
    as_expr,
    const,
    div_ambiguity_error,
    int_imm,
)  # fmt: skip
from .operators import NotAnOperand
from .rounding import floor

if TYPE_CHECKING:
    from tvm.ir.span import Span


FOREIGN = Kind.FOREIGN

# constructors without conversion and checks
make_add: Callable[..., PrimExpr] = Add._make
make_and: Callable[..., PrimExpr] = And._make
make_broadcast: Callable[..., PrimExpr] = Broadcast._make
make_cast: Callable[..., PrimExpr] = Cast._make
make_div: Callable[..., PrimExpr] = Div._make
make_floor_div: Callable[..., PrimExpr] = FloorDiv._make
make_floor_mod: Callable[..., PrimExpr] = FloorMod._make
make_max: Callable[..., PrimExpr] = Max._make
make_min: Callable[..., PrimExpr] = Min._make
make_mod: Callable[..., PrimExpr] = Mod._make
make_mul: Callable[..., PrimExpr] = Mul._make
make_not: Callable[..., PrimExpr] = Not._make
make_or: Callable[..., PrimExpr] = Or._make
make_ramp: Callable[..., PrimExpr] = Ramp._make
make_sub: Callable[..., PrimExpr] = Sub._make

# ---- the index-dtype rule
#
# Operands are brought to one dtype in this order:
#   1. a Python number takes the dtype of the other operand (a float beside an integer or a
#      custom type: float32);
#   2. a scalar beside a vector is broadcast;
#   3. a bool or an integer beside a float becomes that float; of two floats the wider wins, and
#      a custom type becomes the float beside it;
#   4. of two integers the wider wins, and of one width the unsigned one: int32 indices beside
#      int64 shapes are computed in int64.


def unify(a: Any, b: Any) -> tuple[PrimExpr, PrimExpr]:
    """Both operands as expressions of one dtype, by the rule above."""
    if KINDS[type(a)] is FOREIGN:
        a = _operand(a, b)
    if KINDS[type(b)] is FOREIGN:
        b = _operand(b, a)
    if a.dtype is b.dtype:
        return a, b
    lanes = builtins.max(a.dtype.lanes, b.dtype.lanes)
    kind = common_dtype(a.dtype.element, b.dtype.element).with_lanes(lanes)
    return cast(a, kind), cast(b, kind)


def _operand(value: Any, other: Any) -> PrimExpr:
    kind = type(value)
    if kind is int and KINDS[type(other)] is not FOREIGN and other.dtype in INDEX_DTYPES:
        # small numbers in index arithmetic are by far the most common case
        found = SMALL_INTS[other.dtype].get(value)
        if found is not None:
            return found
    if kind is str and not _is_text(other):
        raise NotAnOperand(f"an expression or a number is required, got the text {value!r}")
    if kind is not int and kind is not float:
        return as_expr(value)
    if KINDS[type(other)] is FOREIGN:
        if type(other) in (int, float, bool):
            return as_expr(value)
        other = as_expr(other)
    element = other.dtype.element
    if kind is int:
        if element.is_bool or element.is_handle or not _holds(element, value):
            return as_expr(value)
        return const(value, element) if element.is_float else int_imm(element, value)
    return const(value, element if element.is_float and not element.is_custom else FLOAT32)


def _is_text(value: Any) -> bool:
    """A text, or what may be one when the program runs."""
    return type(value) is str if KINDS[type(value)] is FOREIGN else value.dtype.is_handle


def _holds(dtype: DType, value: int) -> bool:
    """A number that is no index of int32 makes the whole expression int64, and one that a smaller
    type cannot hold makes it int32."""
    if dtype.is_float or dtype.bits > 32:
        return True
    return fits(value, dtype) if dtype.bits < 32 else -(1 << 31) <= value < 1 << 32


def common_dtype(a: DType, b: DType) -> DType:
    """The scalar dtype in which values of two scalar dtypes are combined."""
    if a is b:
        return a
    if a.is_handle or b.is_handle or a.is_void or b.is_void:
        raise RuntimeTypeError(f"an operator requires operands of one dtype, got {a} and {b}")
    if a.is_float or b.is_float:
        if a.is_custom is not b.is_custom and a.is_float and b.is_float:
            return b if a.is_custom else a
        if a.is_float and b.is_float:
            wider = a if a.bits >= b.bits else b
            return FLOAT32 if a.bits == b.bits else wider
        return a if a.is_float else b
    if a.is_bool or b.is_bool:
        return b if a.is_bool else a
    if a.bits != b.bits:
        return a if a.bits > b.bits else b
    # of one width, the unsigned one
    return b if a.is_int else a


# ---- arithmetic


def _operands(
    lhs: Any, rhs: Any, a: Any, b: Any, src: Any, dtype: Any, args: Any, span: Any
) -> None:
    """What parameters of the functions below are.

    Parameters
    ----------
    lhs, rhs, a, b : PrimExpr or number
        The operands, which are brought to one dtype: the wider one of two.
    src : PrimExpr or number
        The operand.
    dtype : str
        The wanted data type.
    args : PrimExpr or bool
        The conditions, or one list of them.
    span : Span, optional
        The place in a source.
    """


_described = described_by(_operands)

# The fast path of each function below: two ordinary expressions of one dtype need no conversion
# and do not fold.


@_described
@returns("PrimExpr", "Of the operands' common dtype.")
def add(lhs: Any, rhs: Any, span: Span | None = None) -> PrimExpr:
    """``lhs + rhs``"""
    if KINDS[type(lhs)] or KINDS[type(rhs)] or lhs.dtype is not rhs.dtype:
        if type(lhs) is int and lhs == 0 and isinstance(rhs, PrimExpr) and rhs.dtype.is_float:
            return rhs  # where a sum of Python begins, which is no number of the program
        lhs, rhs = unify(lhs, rhs)
        if (folded := fold.fold_add(lhs, rhs)) is not None:
            return folded
    return make_add(lhs, rhs, span)


@_described
@returns("PrimExpr", "Of the operands' common dtype.")
def subtract(lhs: Any, rhs: Any, span: Span | None = None) -> PrimExpr:
    """``lhs - rhs``"""
    if KINDS[type(lhs)] or KINDS[type(rhs)] or lhs.dtype is not rhs.dtype:
        lhs, rhs = unify(lhs, rhs)
        if (folded := fold.fold_sub(lhs, rhs)) is not None:
            return folded
    return make_sub(lhs, rhs, span)


@_described
@returns("PrimExpr", "Of the operands' common dtype.")
def multiply(lhs: Any, rhs: Any, span: Span | None = None) -> PrimExpr:
    """``lhs * rhs``"""
    if KINDS[type(lhs)] or KINDS[type(rhs)] or lhs.dtype is not rhs.dtype:
        lhs, rhs = unify(lhs, rhs)
        if (folded := fold.fold_mul(lhs, rhs)) is not None:
            return folded
    return make_mul(lhs, rhs, span)


def negative(value: Any) -> PrimExpr:
    """``-value``"""
    value = as_expr(value)
    if type(value) is IntImm:
        return int_imm(value.dtype, -value.value)
    if type(value) is FloatImm:
        return const(-value.value, value.dtype)
    return multiply(value, const(-1, value.dtype))


def product(factors: Sequence[PrimExpr]) -> PrimExpr:
    """All factors multiplied; the constant 1 of int32 for none."""
    result = factors[0] if factors else int_imm(INT32, 1)
    for factor in factors[1:]:
        result = multiply(result, factor)
    return result


def true_divide(lhs: Any, rhs: Any, span: Span | None = None) -> PrimExpr:
    """``lhs / rhs`` of floats; integers are rejected, there being several divisions for them."""
    lhs, rhs = unify(lhs, rhs)
    if not lhs.dtype.is_float:
        raise div_ambiguity_error()
    return div(lhs, rhs, span)


@_described
@returns("PrimExpr", "Of the operands' common dtype.")
def div(a: Any, b: Any, span: Span | None = None) -> PrimExpr:
    """``a / b`` as in C: integers are rounded towards zero."""
    a, b = unify(a, b)
    folded = fold.fold_div(a, b)
    return make_div(a, b, span) if folded is None else folded


@_described
@returns("PrimExpr", "Of the operands' common dtype.")
def truncdiv(a: Any, b: Any, span: Span | None = None) -> PrimExpr:
    """The quotient of integers rounded towards zero.

    Raises
    ------
    TypeError
        If the operands are no integers.
    """
    a, b = unify(a, b)
    require_integers("truncdiv", a)
    return div(a, b, span)


@_described
@returns("PrimExpr", "Of the operands' common dtype.")
def truncmod(a: Any, b: Any, span: Span | None = None) -> PrimExpr:
    """The remainder of :func:`truncdiv`: it has the sign of ``a``.

    Raises
    ------
    TypeError
        If the operands are no integers.
    """
    a, b = unify(a, b)
    require_integers("truncmod", a)
    folded = fold.fold_mod(a, b)
    return make_mod(a, b, span) if folded is None else folded


@_described
@returns("PrimExpr", "Of the operands' common dtype.")
def floordiv(a: Any, b: Any, span: Span | None = None) -> PrimExpr:
    """The quotient rounded down.

    Raises
    ------
    TypeError
        If the operands are neither integers nor floats.
    """
    if KINDS[type(a)] or KINDS[type(b)] or a.dtype is not b.dtype:
        a, b = unify(a, b)
        if (folded := fold.fold_floordiv(a, b)) is not None:
            return folded
    if a.dtype.is_float:
        return floor(div(a, b, span), span)
    require_integers("floordiv", a)
    return make_floor_div(a, b, span)


@_described
@returns("PrimExpr", "Of the operands' common dtype.")
def floormod(a: Any, b: Any, span: Span | None = None) -> PrimExpr:
    """The remainder of :func:`floordiv`: it has the sign of ``b``.

    Raises
    ------
    TypeError
        If the operands are neither integers nor floats.
    """
    if KINDS[type(a)] or KINDS[type(b)] or a.dtype is not b.dtype:
        a, b = unify(a, b)
        if (folded := fold.fold_floormod(a, b)) is not None:
            return folded
    if a.dtype.is_float:
        return subtract(a, multiply(b, floordiv(a, b, span)), span)
    require_integers("floormod", a)
    return make_floor_mod(a, b, span)


@_described
@returns("PrimExpr", "Of the operands' common dtype.")
def ceildiv(lhs: Any, rhs: Any, span: Span | None = None) -> PrimExpr:
    """The quotient rounded up."""
    lhs, rhs = unify(lhs, rhs)
    return floordiv(add(lhs, subtract(rhs, 1)), rhs, span)


@_described
@returns("PrimExpr", "Of the operands' common dtype.")
def indexdiv(a: Any, b: Any, span: Span | None = None) -> PrimExpr:
    """:func:`floordiv` of indices, which are never negative."""
    return floordiv(a, b, span)


@_described
@returns("PrimExpr", "Of the operands' common dtype.")
def indexmod(a: Any, b: Any, span: Span | None = None) -> PrimExpr:
    """:func:`floormod` of indices, which are never negative."""
    return floormod(a, b, span)


def require_integers(what: str, value: PrimExpr) -> None:
    """Reject operands of other types."""
    if not (value.dtype.is_int or value.dtype.is_uint):
        raise RuntimeTypeError(f"{what} requires integers, got {value.dtype}")


@_described
@returns("PrimExpr", "Of the operands' common dtype.")
def minimum(a: Any, b: Any, span: Span | None = None) -> PrimExpr:
    """The smaller of two values."""
    a, b = unify(a, b)
    folded = fold.fold_min(a, b)
    return make_min(a, b, span) if folded is None else folded


@_described
@returns("PrimExpr", "Of the operands' common dtype.")
def maximum(a: Any, b: Any, span: Span | None = None) -> PrimExpr:
    """The larger of two values."""
    a, b = unify(a, b)
    folded = fold.fold_max(a, b)
    return make_max(a, b, span) if folded is None else folded


# ---- comparisons


def _comparison(
    node: type[PrimExpr], compare: Callable[[float, float], bool], text: str
) -> Callable[..., PrimExpr]:
    make: Callable[..., PrimExpr] = node._make

    def build(lhs: Any, rhs: Any, span: Span | None = None) -> PrimExpr:
        if KINDS[type(lhs)] or KINDS[type(rhs)] or lhs.dtype is not rhs.dtype:
            lhs, rhs = unify(lhs, rhs)
            if (folded := fold.fold_compare(lhs, rhs, compare)) is not None:
                return folded
        return make(lhs, rhs, span)

    build.__doc__ = f"``lhs {text} rhs``"
    return _described(returns("PrimExpr", "A truth value for each lane.")(build))


equal = _comparison(EQ, operator.eq, "==")
not_equal = _comparison(NE, operator.ne, "!=")
less = _comparison(LT, operator.lt, "<")
less_equal = _comparison(LE, operator.le, "<=")
greater = _comparison(GT, operator.gt, ">")
greater_equal = _comparison(GE, operator.ge, ">=")


# ---- logic


def logical_and(lhs: Any, rhs: Any, span: Span | None = None) -> PrimExpr:
    """Both of two truth values."""
    lhs, rhs = _truth_values("and", lhs, rhs)
    for value, other in ((lhs, rhs), (rhs, lhs)):
        if type(value) is IntImm:
            return other if value.value else value
    return make_and(lhs, rhs, span)


def logical_or(lhs: Any, rhs: Any, span: Span | None = None) -> PrimExpr:
    """Either of two truth values."""
    lhs, rhs = _truth_values("or", lhs, rhs)
    for value, other in ((lhs, rhs), (rhs, lhs)):
        if type(value) is IntImm:
            return value if value.value else other
    return make_or(lhs, rhs, span)


def logical_not(value: Any, span: Span | None = None) -> PrimExpr:
    """The other truth value."""
    value = as_expr(value)
    _require_bool("not", value)
    return int_imm(BOOL, not value.value) if type(value) is IntImm else make_not(value, span)


def _truth_values(what: str, lhs: Any, rhs: Any) -> tuple[PrimExpr, PrimExpr]:
    lhs, rhs = unify(lhs, rhs)
    _require_bool(what, lhs)
    return lhs, rhs


def _require_bool(what: str, value: PrimExpr) -> None:
    if not value.dtype.is_bool:
        raise RuntimeTypeError(f"logical {what} requires bool operands, got {value.dtype}: {value}")


@_described
@returns("PrimExpr", "A truth value.")
def all(*args: Any, span: Span | None = None) -> PrimExpr:
    """Whether all conditions hold; they may be given as one list.

    Raises
    ------
    ValueError
        If there is no condition.
    """
    return _join(logical_and, "all", args, span)


@_described
@returns("PrimExpr", "A truth value.")
def any(*args: Any, span: Span | None = None) -> PrimExpr:
    """Whether any condition holds; they may be given as one list.

    Raises
    ------
    ValueError
        If there is no condition.
    """
    return _join(logical_or, "any", args, span)


def _join(
    combine: Callable[..., PrimExpr], name: str, args: tuple[Any, ...], span: Span | None
) -> PrimExpr:
    if len(args) == 1 and isinstance(args[0], (list, tuple)):
        args = tuple(args[0])
    if not args:
        raise RuntimeValueError(f"{name} requires at least one condition, got none")
    result = as_expr(args[0])
    for condition in args[1:]:
        result = combine(result, condition, span)
    return result


def select(condition: Any, true_value: Any, false_value: Any, span: Span | None = None) -> PrimExpr:
    """One of two values, both of which may be evaluated."""
    chosen = as_expr(condition)
    a, b = unify(true_value, false_value)
    if type(chosen) is IntImm:
        return a if chosen.value else b
    return Select(chosen, a, b, span=span)


# ---- conversion


@_described
@returns("PrimExpr", "Of dtype `dtype`; the operand itself if it is that already.")
def cast(src: Any, dtype: Any, span: Span | None = None) -> PrimExpr:
    """``src`` converted to ``dtype``; a scalar is broadcast to a vector.

    Raises
    ------
    TypeError
        If both have several lanes, and not as many.
    """
    kind = as_dtype(dtype)
    value = as_expr(src)
    if value.dtype is kind:
        return value
    if kind.lanes == value.dtype.lanes:
        return _convert(value, kind, span)
    if value.dtype.lanes != 1:
        raise RuntimeTypeError(f"a cast requires as many lanes as {kind} has, got {value.dtype}")
    return make_broadcast(_convert(value, kind.element, span), kind.lanes, span)


def _convert(value: PrimExpr, kind: DType, span: Span | None) -> PrimExpr:
    """Convert to a dtype of as many lanes."""
    if value.dtype is kind:
        return value
    if kind.lanes == 1 and (folded := fold.fold_cast(value, kind)) is not None:
        return folded
    if type(value) is Broadcast:
        return make_broadcast(_convert(value.value, kind.element, span), value.lanes, span)
    if type(value) is Ramp and kind.is_int and value.dtype.is_int and kind.bits > value.dtype.bits:
        base = _convert(value.base, kind.element, span)
        return make_ramp(base, _convert(value.stride, kind.element, span), value.lanes, span)
    return make_cast(kind, value, span)
