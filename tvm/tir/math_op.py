"""Mathematical functions: calls of pure intrinsics, folded for constants where that is exact."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tvm._ffi.registry import get_global_func
from tvm.error import RuntimeTypeError, RuntimeValueError
from tvm.ir.expr import PrimExpr
from tvm.support.docstrings import described_by, returns
from tvm.support.dtype import DType
from tvm.support.dtype import dtype as as_dtype
from tvm.tir.arithmetic import require_integers

from . import arithmetic as _op
from .expr import BOOL, FLOAT32, INT32, Call, FloatImm, IntImm, as_expr, const, int_imm  # fmt: skip
from .fold import float_imm
from .intrinsics import INTRINSICS
from .rounding import ceil, floor, nearbyint, round, trunc

if TYPE_CHECKING:
    from tvm.ir.span import Span

make_call: Callable[..., PrimExpr] = Call._make


def _operands(
    x: Any, y: Any, x1: Any, x2: Any, cond: Any, t: Any, f: Any, dtype: Any, value: Any, q: Any,
    s: Any, ls: Any, rs: Any, is_lshift_required: Any, is_rshift_required: Any, span: Any,
) -> None:  # fmt: skip
    """What parameters of the functions below are.

    Parameters
    ----------
    x, y, x1, x2, value : PrimExpr or number
        The operands.
    cond : PrimExpr or bool
        The condition.
    t, f : PrimExpr or number
        The values, which are brought to one dtype.
    dtype : str
        The data type.
    q, s : PrimExpr or int
        The number of fractional bits; the distance of the shift to the right.
    ls, rs : PrimExpr or int
        The distances of the shifts to the left, before the product, and to the right.
    is_lshift_required, is_rshift_required : PrimExpr or bool
        Whether there is such a shift.
    span : Span, optional
        The place in a source.
    """


_described = described_by(_operands)


def _call(name: str, dtype: DType, *args: PrimExpr, span: Span | None = None) -> PrimExpr:
    return make_call(dtype, INTRINSICS[name], args, span)


def _unary(name: str) -> Callable[[Any], PrimExpr]:
    intrinsic = INTRINSICS[name]

    def build(x: Any) -> PrimExpr:
        value = as_expr(x)
        return make_call(value.dtype, intrinsic, (value,), None)

    build.__name__ = build.__qualname__ = name
    build.__doc__ = f"``{name}`` of each element."
    return _described(returns("PrimExpr", "Of the operand's dtype.")(build))


exp, exp2, exp10 = _unary("exp"), _unary("exp2"), _unary("exp10")
log, log2, log10, log1p = _unary("log"), _unary("log2"), _unary("log10"), _unary("log1p")
sin, cos, tan = _unary("sin"), _unary("cos"), _unary("tan")
sinh, cosh, tanh = _unary("sinh"), _unary("cosh"), _unary("tanh")
asin, acos, atan = _unary("asin"), _unary("acos"), _unary("atan")
asinh, acosh, atanh = _unary("asinh"), _unary("acosh"), _unary("atanh")
sqrt, rsqrt, sigmoid, erf = _unary("sqrt"), _unary("rsqrt"), _unary("sigmoid"), _unary("erf")


@_described
@returns("PrimExpr", "Of dtype int32, with as many lanes as the operand.")
def clz(x: Any) -> PrimExpr:
    """The number of leading zero bits, as int32."""
    value = as_expr(x)
    return _call("clz", INT32.with_lanes(value.dtype.lanes), value)


@_described
@returns("PrimExpr", "Of the operand's dtype.")
def popcount(x: Any) -> PrimExpr:
    """The number of bits that are one."""
    value = as_expr(x)
    return _call("popcount", value.dtype, value)


# ---- two operands


def _binary(name: str) -> Callable[[Any, Any], PrimExpr]:
    intrinsic = INTRINSICS[name]

    def build(x1: Any, x2: Any) -> PrimExpr:
        a, b = _op.unify(x1, x2)
        return make_call(a.dtype, intrinsic, (a, b), None)

    build.__name__ = build.__qualname__ = name
    build.__doc__ = f"``{name}`` of each pair of elements."
    return _described(returns("PrimExpr", "Of the operands' common dtype.")(build))


atan2, nextafter, hypot = _binary("atan2"), _binary("nextafter"), _binary("hypot")
copysign = _binary("copysign")


@_described
@returns("PrimExpr", "Of the dtype of the first operand.")
def ldexp(x1: Any, x2: Any) -> PrimExpr:
    """``x1 * 2**x2``; the exponent is an integer."""
    value = as_expr(x1)
    return _call("ldexp", value.dtype, value, as_expr(x2))


@_described
@returns("PrimExpr", "Of the operands' common dtype.")
def fmod(x: Any, y: Any) -> PrimExpr:
    """The remainder of the division rounded towards zero, of floats."""
    a, b = _op.unify(x, y)
    return _call("fmod", a.dtype, a, b)


@_described
@returns("PrimExpr", "Of the operands' common dtype.")
def power(x: Any, y: Any, span: Span | None = None) -> PrimExpr:
    """``x`` to the power of ``y``, of floats.

    Raises
    ------
    TypeError
        If the operands are no floats.
    """
    a, b = _op.unify(x, y)
    if not a.dtype.is_float:
        raise RuntimeTypeError(f"power requires floating-point operands, got {a.dtype}")
    return _call("pow", a.dtype, a, b, span=span)


pow = power


# ---- bits


def _bitwise(name: str, combine: Callable[[int, int], int], text: str) -> Callable[..., PrimExpr]:
    intrinsic = INTRINSICS[name]

    def build(x: Any, y: Any, span: Span | None = None) -> PrimExpr:
        a, b = _op.unify(x, y)
        require_integers(name, a)
        if type(a) is IntImm and type(b) is IntImm:
            return int_imm(a.dtype, combine(a.value, b.value))
        return make_call(a.dtype, intrinsic, (a, b), span)

    build.__name__ = build.__qualname__ = name
    build.__doc__ = f"``x {text} y``, of integers."
    return _described(returns("PrimExpr", "Of the operands' common dtype.")(build))


bitwise_and = _bitwise("bitwise_and", int.__and__, "&")
bitwise_or = _bitwise("bitwise_or", int.__or__, "|")
bitwise_xor = _bitwise("bitwise_xor", int.__xor__, "^")


@_described
@returns("PrimExpr", "Of the operand's dtype.")
def bitwise_not(x: Any, span: Span | None = None) -> PrimExpr:
    """``~x``; the negation of a truth value.

    Raises
    ------
    TypeError
        If the operand is no integer.
    """
    value = as_expr(x)
    require_integers("bitwise_not", value)
    if type(value) is IntImm:
        return int_imm(value.dtype, not value.value if value.dtype.is_bool else ~value.value)
    return _call("bitwise_not", value.dtype, value, span=span)


@_described
@returns("PrimExpr", "Of the operands' common dtype.")
def shift_left(x: Any, y: Any, span: Span | None = None) -> PrimExpr:
    """``x << y``

    Raises
    ------
    ValueError
        If a known distance is negative, or not below the number of bits.
    """
    a, b = _shift_operands("shift_left", x, y)
    if type(b) is IntImm:
        if type(a) is IntImm:
            return int_imm(a.dtype, a.value << b.value)
        if b.value == 0:
            return a
    return _call("shift_left", a.dtype, a, b, span=span)


@_described
@returns("PrimExpr", "Of the operands' common dtype.")
def shift_right(x: Any, y: Any, span: Span | None = None) -> PrimExpr:
    """``x >> y``; signed numbers are rounded down.

    Raises
    ------
    ValueError
        If a known distance is negative, or not below the number of bits.
    """
    a, b = _shift_operands("shift_right", x, y)
    if type(b) is IntImm:
        if type(a) is IntImm:
            return int_imm(a.dtype, a.value >> b.value)
        if b.value == 0:
            return a
    return _call("shift_right", a.dtype, a, b, span=span)


def _shift_operands(name: str, x: Any, y: Any) -> tuple[PrimExpr, PrimExpr]:
    a, b = _op.unify(x, y)
    require_integers(name, a)
    if type(b) is IntImm and not 0 <= b.value < a.dtype.bits:
        raise RuntimeValueError(
            f"{name} requires a distance from 0 to {a.dtype.bits - 1} for {a.dtype}, got {b.value}"
        )
    return a, b


# ---- signs


@_described
@returns("PrimExpr", "Of the operand's dtype.")
def abs(x: Any, span: Span | None = None) -> PrimExpr:
    """The absolute value.

    Raises
    ------
    TypeError
        If the operand is no number.
    """
    value = as_expr(x)
    kind = value.dtype
    if kind.is_uint:
        return value
    if type(value) is IntImm:
        return int_imm(kind, value.value.__abs__())
    if type(value) is FloatImm:
        return float_imm(kind, math.fabs(value.value))
    if kind.is_int:
        return _op.select(_op.greater_equal(value, 0), value, _op.negative(value))
    if not kind.is_float:
        raise RuntimeTypeError(f"abs requires a number, got {kind}")
    return _call("fabs", kind, value, span=span)


# ---- special values


@_described
@returns("PrimExpr", "A truth value for each lane.")
def isnan(x: Any, span: Span | None = None) -> PrimExpr:
    """Whether each element is not a number."""
    value = as_expr(x)
    kind = BOOL.with_lanes(value.dtype.lanes)
    if not value.dtype.is_float:
        return const(False, kind)
    if type(value) is FloatImm:
        return int_imm(BOOL, value.value != value.value)
    if value.dtype.bits < 32:
        value = _op.cast(value, FLOAT32.with_lanes(value.dtype.lanes))
    return _call("isnan", kind, value, span=span)


@_described
@returns("PrimExpr", "A truth value for each lane.")
def isinf(x: Any, span: Span | None = None) -> PrimExpr:
    """Whether each element is infinite."""
    value = as_expr(x)
    if not value.dtype.is_float:
        return const(False, BOOL.with_lanes(value.dtype.lanes))
    if value.dtype.bits < 32:
        value = _op.cast(value, FLOAT32.with_lanes(value.dtype.lanes))
    limit = infinity(value.dtype)
    return _op.logical_and(_op.equal(abs(value), limit), logical_not_nan(value), span)


def logical_not_nan(value: PrimExpr) -> PrimExpr:
    return _op.logical_not(isnan(value))


@_described
@returns("PrimExpr", "A truth value for each lane.")
def isfinite(x: Any, span: Span | None = None) -> PrimExpr:
    """Whether each element is neither infinite nor NaN."""
    value = as_expr(x)
    return _op.logical_and(_op.logical_not(isinf(value)), logical_not_nan(value), span)


@_described
@returns("PrimExpr", "A truth value.")
def isnullptr(x: Any, span: Span | None = None) -> PrimExpr:
    """Whether a pointer, or an address as an integer, is null.

    Raises
    ------
    TypeError
        If the operand is neither a pointer nor an integer.
    """
    value = as_expr(x)
    if not (value.dtype.is_handle or value.dtype.is_int or value.dtype.is_uint):
        raise RuntimeTypeError(f"isnullptr requires a pointer, got {value.dtype}")
    return _call("isnullptr", BOOL, value, span=span)


_FLOAT_LIMITS = {
    "float64": 1.7976931348623157e308,
    "float32": 3.4028234663852886e38,
    "float16": 65504.0,
    "bfloat16": 3.3895313892515355e38,
    "e4m3_float8": 448.0,
    "e5m2_float8": 57344.0,
}


def _custom_limit(which: str, kind: DType) -> PrimExpr:
    """What the function registered for a custom type says of its numbers."""
    name = kind.code[len("custom[") : -1]
    limit = get_global_func(f"tvm.datatype.{which}.{name}", allow_missing=True)
    if limit is None:
        raise RuntimeTypeError(
            f"{which}_value requires a function for the type {kind}: "
            "tvm.target.datatype.register_min_func(func, type_name)"
        )
    found: PrimExpr = limit(kind.bits)
    return found


@_described
@returns("PrimExpr", "A constant of that dtype.")
def max_value(dtype: Any, span: Span | None = None) -> PrimExpr:
    """The largest finite value of a dtype."""
    kind = as_dtype(dtype)
    if kind.is_custom:
        return _custom_limit("max", kind)
    if kind.is_float:
        return const(_FLOAT_LIMITS[kind.element], kind, span)
    if kind.is_bool:
        return const(True, kind, span)
    return const((1 << kind.bits - (1 if kind.is_int else 0)) - 1, kind, span)


@_described
@returns("PrimExpr", "A constant of that dtype.")
def min_value(dtype: Any, span: Span | None = None) -> PrimExpr:
    """The smallest (most negative) finite value of a dtype."""
    kind = as_dtype(dtype)
    if kind.is_custom:
        return _custom_limit("min", kind)
    if kind.is_float:
        return const(-_FLOAT_LIMITS[kind.element], kind, span)
    return const(-(1 << kind.bits - 1) if kind.is_int else 0, kind, span)


@_described
@returns("PrimExpr", "A constant of that dtype.")
def infinity(dtype: Any, span: Span | None = None) -> PrimExpr:
    """The infinity of a floating-point dtype.

    Raises
    ------
    TypeError
        If the dtype has no infinity.
    """
    kind = as_dtype(dtype)
    if not kind.is_float or kind.code == "e4m3_float":
        raise RuntimeTypeError(f"infinity requires a floating-point dtype that has one, got {kind}")
    return const(math.inf, kind, span)


@_described
@returns("PrimExpr", "Of dtype `dtype`; the operand itself if it is that already.")
def reinterpret(dtype: Any, value: Any, span: Span | None = None) -> PrimExpr:
    """The bits of ``value`` taken as another dtype of the same size.

    Raises
    ------
    TypeError
        If the sizes differ.
    """
    kind, operand = as_dtype(dtype), as_expr(value)
    if kind.bits * kind.lanes != operand.dtype.bits * operand.dtype.lanes:
        raise RuntimeTypeError(
            f"reinterpret requires as many bits as {kind} has, got {operand.dtype}"
        )
    return operand if operand.dtype is kind else _call("reinterpret", kind, operand, span=span)


# ---- choices and fixed point


@_described
@returns("PrimExpr", "Of the dtype that both values have in common.")
def if_then_else(cond: Any, t: Any, f: Any, span: Span | None = None) -> PrimExpr:
    """``t`` if the condition holds, else ``f``; only one of them is evaluated.

    Raises
    ------
    TypeError
        If the condition is no truth value, or has several lanes.
    """
    condition = as_expr(cond, BOOL)
    if not condition.dtype.is_bool or condition.dtype.lanes != 1:
        raise RuntimeTypeError(f"if_then_else requires a bool condition, got {condition.dtype}")
    a, b = _op.unify(t, f)
    if type(condition) is IntImm:
        return a if condition.value else b
    return _call("if_then_else", a.dtype, condition, a, b, span=span)


@_described
@returns("PrimExpr", "The condition; a constant as it is.")
def likely(cond: Any, span: Span | None = None) -> PrimExpr:
    """The condition, marked as true most of the time."""
    condition = as_expr(cond)
    if type(condition) is IntImm:
        return condition
    return _call("likely", condition.dtype, condition, span=span)


@_described
@returns("PrimExpr", "Of dtype int32, with as many lanes as `x`.")
def q_multiply_shift(x: Any, y: Any, q: Any, s: Any) -> PrimExpr:
    """The fixed-point product ``round(x * y * 2**-s)`` of Q-numbers with ``q`` fractional bits."""
    args = [as_expr(v) for v in (x, y, q, s)]
    return _call("q_multiply_shift", INT32.with_lanes(args[0].dtype.lanes), *args)


@_described
@returns("PrimExpr", "Of dtype int32, with as many lanes as `x`.")
def q_multiply_shift_per_axis(
    x: Any, y: Any, ls: Any, rs: Any, q: Any, is_lshift_required: Any, is_rshift_required: Any
) -> PrimExpr:
    """:func:`q_multiply_shift` with left and right shifts that vary along an axis."""
    args = [as_expr(v) for v in (x, y, ls, rs, q, is_lshift_required, is_rshift_required)]
    return _call("q_multiply_shift_per_axis", INT32.with_lanes(args[0].dtype.lanes), *args)


__all__ = [
    "abs", "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "bitwise_and",
    "bitwise_not", "bitwise_or", "bitwise_xor", "ceil", "clz", "copysign", "cos", "cosh", "erf",
    "exp", "exp10", "exp2", "floor", "fmod", "hypot", "if_then_else", "infinity", "isfinite",
    "isinf", "isnan", "isnullptr", "ldexp", "likely", "log", "log10", "log1p", "log2", "max_value",
    "min_value", "nearbyint", "nextafter", "popcount", "pow", "power", "q_multiply_shift",
    "q_multiply_shift_per_axis", "reinterpret", "round", "rsqrt", "shift_left", "shift_right",
    "sigmoid", "sin", "sinh", "sqrt", "tan", "tanh", "trunc",
]  # fmt: skip
