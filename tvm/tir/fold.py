"""Arithmetic on constants, with the semantics that generated code has.

Integers wrap around as two's complement does; floats are rounded to their dtype. Each function
takes two operands of one dtype, at least one of them a constant, and returns the simpler
expression, or None if there is none.
"""

from __future__ import annotations

import ctypes
import math
import struct
from collections.abc import Callable

from tvm.error import TVMError
from tvm.ir.expr import PrimExpr
from tvm.support.dtype import DType

from .expr import BOOL, INT64, FloatImm, IntImm, int_imm


class DivideByZeroError(TVMError, ZeroDivisionError):
    """An integer is divided by the constant zero."""


def round_float(value: float, dtype: DType) -> float:
    """The value of ``dtype`` nearest to ``value``."""
    if dtype.bits == 32:
        return ctypes.c_float(value).value
    if dtype.bits == 16 and dtype.code == "float":
        try:
            return float(struct.unpack("e", struct.pack("e", value))[0])
        except OverflowError:
            return math.copysign(math.inf, value)
    return value


def is_foldable(dtype: DType) -> bool:
    """Whether float arithmetic of this dtype is exact enough to fold here."""
    return dtype.code == "float"


def float_imm(dtype: DType, value: float) -> FloatImm:
    return FloatImm(dtype, round_float(value, dtype))


def fold_add(a: PrimExpr, b: PrimExpr) -> PrimExpr | None:
    if type(b) is IntImm:
        if type(a) is IntImm:
            return int_imm(a.dtype, a.value + b.value)
        return a if b.value == 0 else None
    if type(a) is IntImm:
        return b if a.value == 0 else None
    if type(b) is FloatImm:
        if type(a) is FloatImm and is_foldable(a.dtype):
            return float_imm(a.dtype, a.value + b.value)
        return a if _is_negative_zero(b.value) else None
    return b if type(a) is FloatImm and _is_negative_zero(a.value) else None


def _is_negative_zero(value: float) -> bool:
    """Whether x + value is x for all x: -0.0 + 0.0 is 0.0."""
    return value == 0 and math.copysign(1, value) < 0


def fold_sub(a: PrimExpr, b: PrimExpr) -> PrimExpr | None:
    if type(b) is IntImm:
        if type(a) is IntImm:
            return int_imm(a.dtype, a.value - b.value)
        return a if b.value == 0 else None
    if type(b) is FloatImm:
        if type(a) is FloatImm and is_foldable(a.dtype):
            return float_imm(a.dtype, a.value - b.value)
        return a if b.value == 0 and not _is_negative_zero(b.value) else None
    return None


def fold_mul(a: PrimExpr, b: PrimExpr) -> PrimExpr | None:
    if type(b) is IntImm:
        if type(a) is IntImm:
            return int_imm(a.dtype, a.value * b.value)
        return _times(b, a)
    if type(a) is IntImm:
        return _times(a, b)
    if type(b) is FloatImm:
        if type(a) is FloatImm and is_foldable(a.dtype):
            return float_imm(a.dtype, a.value * b.value)
        # 0.0 * x is not 0.0 for infinities and NaN
        return a if b.value == 1 else None
    return b if type(a) is FloatImm and a.value == 1 else None


def _times(factor: IntImm, other: PrimExpr) -> PrimExpr | None:
    if factor.value == 1:
        return other
    return factor if factor.value == 0 else None


def _require_divisor(b: PrimExpr, what: str) -> None:
    if type(b) is IntImm and b.value == 0:
        raise DivideByZeroError(f"{what} requires a divisor other than zero, got the constant 0")


def truncated_quotient(a: int, b: int) -> int:
    """The quotient rounded towards zero, as C has it."""
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def fold_div(a: PrimExpr, b: PrimExpr) -> PrimExpr | None:
    if type(b) is FloatImm:
        if type(a) is FloatImm and b.value != 0 and is_foldable(a.dtype):
            return float_imm(a.dtype, a.value / b.value)
        return a if b.value == 1 else None
    _require_divisor(b, "a division")
    return _fold_quotient(a, b, truncated_quotient)


def fold_floordiv(a: PrimExpr, b: PrimExpr) -> PrimExpr | None:
    _require_divisor(b, "floordiv")
    return _fold_quotient(a, b, int.__floordiv__)


def _fold_quotient(a: PrimExpr, b: PrimExpr, divide: Callable[[int, int], int]) -> PrimExpr | None:
    if type(b) is IntImm:
        if type(a) is IntImm:
            return int_imm(a.dtype, divide(a.value, b.value))
        return a if b.value == 1 else None
    return a if type(a) is IntImm and a.value == 0 else None


def fold_mod(a: PrimExpr, b: PrimExpr) -> PrimExpr | None:
    _require_divisor(b, "truncmod")
    return _fold_remainder(a, b, lambda x, y: x - truncated_quotient(x, y) * y)


def fold_floormod(a: PrimExpr, b: PrimExpr) -> PrimExpr | None:
    _require_divisor(b, "floormod")
    return _fold_remainder(a, b, int.__mod__)


def _fold_remainder(
    a: PrimExpr, b: PrimExpr, remainder: Callable[[int, int], int]
) -> PrimExpr | None:
    if type(b) is IntImm:
        if type(a) is IntImm:
            return int_imm(a.dtype, remainder(a.value, b.value))
        return int_imm(b.dtype, 0) if b.value == 1 else None
    return a if type(a) is IntImm and a.value == 0 else None


def fold_min(a: PrimExpr, b: PrimExpr) -> PrimExpr | None:
    if a is b:
        return a
    if (type(a) is IntImm and type(b) is IntImm) or _comparable_floats(a, b):
        return a if a.value <= b.value else b  # type: ignore[attr-defined]
    return None


def fold_max(a: PrimExpr, b: PrimExpr) -> PrimExpr | None:
    if a is b:
        return a
    if (type(a) is IntImm and type(b) is IntImm) or _comparable_floats(a, b):
        return a if a.value >= b.value else b  # type: ignore[attr-defined]
    return None


def _comparable_floats(a: PrimExpr, b: PrimExpr) -> bool:
    return type(a) is FloatImm and type(b) is FloatImm and a.value == a.value and b.value == b.value


def fold_compare(
    a: PrimExpr, b: PrimExpr, compare: Callable[[float, float], bool]
) -> PrimExpr | None:
    """The truth value of a comparison of two constants."""
    if type(a) is IntImm and type(b) is IntImm:
        return int_imm(BOOL, compare(a.value, b.value))
    if type(a) is FloatImm and type(b) is FloatImm and is_foldable(a.dtype):
        x, y = round_float(a.value, a.dtype), round_float(b.value, b.dtype)
        return int_imm(BOOL, compare(x, y))
    return None


def truncated(number: float, dtype: DType) -> int:
    """A float as an integer of ``dtype``, as :class:`~tvm.tir.expr.Cast` has it."""
    if dtype.is_uint and dtype.bits == 64 and not number < 2.0**63:
        return truncated(number - 2.0**63, INT64) + (1 << 63)
    if dtype.bits == 64 or (dtype.is_uint and dtype.bits == 32):
        low, high = -(2**63), 2**63
    else:
        low, high = -(2**31), 2**31
    return int(number) if low - 1 < number < high else low


def fold_cast(value: PrimExpr, dtype: DType) -> PrimExpr | None:
    """A constant converted to a scalar dtype."""
    if type(value) is IntImm:
        if dtype.is_float:
            return float_imm(dtype, float(value.value))
        return int_imm(dtype, value.value) if dtype.is_int or dtype.is_uint else None
    if type(value) is not FloatImm:
        return None
    if value.dtype.is_custom:
        return None
    number = round_float(value.value, value.dtype)
    if dtype.is_float:
        return float_imm(dtype, number)
    if dtype.is_bool:
        return int_imm(BOOL, number != 0)
    if dtype.is_int or dtype.is_uint:
        return int_imm(dtype, truncated(number, dtype))
    return None
