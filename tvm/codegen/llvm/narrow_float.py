"""bfloat16 and 8-bit floats, carried as integers: conversion from and to float.

bfloat16 is the upper half of a float. Rounding is to nearest, ties to even: adding 0x7FFF plus the
lowest kept bit carries exactly when the dropped half is above the middle, or at it and odd.
"""

from __future__ import annotations

from dataclasses import dataclass

from tvm.support.dtype import DType

from .code import Code
from .types import FLOAT32, TYPES, LLVMType, float_text, splat, vector_text


def widen(code: Code, operand: str, dtype: DType) -> str:
    """The float that an operand of type ``dtype`` stands for."""
    narrow_type, bits, wide = _types(dtype)
    if dtype.code == "bfloat":
        extended = code.pure(f"zext {narrow_type.text} {operand} to {bits}")
        upper = code.pure(f"shl {bits} {extended}, {_int(wide, 16)}")
        return code.pure(f"bitcast {bits} {upper} to {wide.text}")
    if dtype.code == "e5m2_float":
        # the upper half of a half
        short, half = _vector("i16", wide), _vector("half", wide)
        extended = code.pure(f"zext {narrow_type.text} {operand} to {short}")
        upper = code.pure(f"shl {short} {extended}, {_int(wide, 8, 'i16')}")
        return code.pure(
            f"fpext {half} {code.pure(f'bitcast {short} {upper} to {half}')} to {wide.text}"
        )
    return _widen_e4m3(code, operand, narrow_type, wide)


def narrow(code: Code, operand: str, dtype: DType) -> str:
    """A float rounded to ``dtype``."""
    if dtype.code != "bfloat":
        return _narrow_float8(code, operand, dtype)
    narrow_type, bits, wide = _types(dtype)
    mask = _vector("i1", wide)
    raw = code.pure(f"bitcast {wide.text} {operand} to {bits}")
    upper = code.pure(f"lshr {bits} {raw}, {_int(wide, 16)}")
    odd = code.pure(f"and {bits} {upper}, {_int(wide, 1)}")
    bias = code.pure(f"add {bits} {odd}, {_int(wide, 0x7FFF)}")
    carried = code.pure(f"add {bits} {raw}, {bias}")
    rounded = code.pure(f"lshr {bits} {carried}, {_int(wide, 16)}")
    # a NaN keeps its upper bits and stays quiet
    quiet = code.pure(f"or {bits} {upper}, {_int(wide, 0x40)}")
    is_nan = code.pure(f"fcmp uno {wide.text} {operand}, {operand}")
    chosen = code.pure(f"select {mask} {is_nan}, {bits} {quiet}, {bits} {rounded}")
    return code.pure(f"trunc {bits} {chosen} to {narrow_type.text}")


def _types(dtype: DType) -> tuple[LLVMType, str, LLVMType]:
    wide = TYPES[FLOAT32.with_lanes(dtype.lanes)]
    return TYPES[dtype], _vector("i32", wide), wide


def _vector(scalar: str, like: LLVMType) -> str:
    return scalar if like.lanes == 1 else vector_text(like.lanes, scalar)


def _int(like: LLVMType, value: int, scalar: str = "i32") -> str:
    return str(value) if like.lanes == 1 else f"splat ({scalar} {value})"


def _widen_e4m3(code: Code, operand: str, narrow_type: LLVMType, wide: LLVMType) -> str:
    """Shift exponent and mantissa into a float 2**120 too small, and scale: denormals come right."""
    bits, mask = _vector("i32", wide), _vector("i1", wide)
    raw = code.pure(f"zext {narrow_type.text} {operand} to {bits}")
    magnitude = code.pure(f"and {bits} {raw}, {_int(wide, 0x7F)}")
    placed = code.pure(f"shl {bits} {magnitude}, {_int(wide, 20)}")
    small = code.pure(f"bitcast {bits} {placed} to {wide.text}")
    scale = splat(wide, "0x4770000000000000")  # 2**120
    scaled = code.pure(f"fmul {wide.text} {small}, {scale}")
    is_nan = code.pure(f"icmp eq {bits} {magnitude}, {_int(wide, 0x7F)}")
    nan = splat(wide, "0x7FF8000000000000")
    value = code.pure(f"select {mask} {is_nan}, {wide.text} {nan}, {wide.text} {scaled}")
    sign = code.pure(
        f"shl {bits} {code.pure(f'and {bits} {raw}, {_int(wide, 0x80)}')}, {_int(wide, 24)}"
    )
    whole = code.pure(f"or {bits} {code.pure(f'bitcast {wide.text} {value} to {bits}')}, {sign}")
    return code.pure(f"bitcast {bits} {whole} to {wide.text}")


@dataclass(frozen=True)
class Float8:
    """The layout of an 8-bit float, and what becomes of numbers too large for it."""

    mantissa: int
    bias: int
    overflow: int  # pattern of what is too large
    nan: int
    largest: float  # what is above this, after rounding, is too large


_FLOAT8 = {
    "e4m3_float": Float8(3, 7, 0x7F, 0x7F, 464.0),
    "e5m2_float": Float8(2, 15, 0x7C, 0x7E, 61440.0),
}


def _narrow_float8(code: Code, operand: str, dtype: DType) -> str:
    """Round on bit patterns; for results among the denormals, by adding a number of the right size."""
    layout = _FLOAT8[dtype.code]
    narrow_type, bits, wide = _types(dtype)
    mask, drop = _vector("i1", wide), 23 - layout.mantissa
    raw = code.pure(f"bitcast {wide.text} {operand} to {bits}")
    magnitude = code.pure(f"and {bits} {raw}, {_int(wide, 0x7FFFFFFF)}")
    size = code.pure(f"bitcast {bits} {magnitude} to {wide.text}")
    lowest = code.pure(f"lshr {bits} {magnitude}, {_int(wide, drop)}")
    odd = code.pure(f"and {bits} {lowest}, {_int(wide, 1)}")
    carried = code.pure(f"add {bits} {magnitude}, {_int(wide, (1 << (drop - 1)) - 1)}")
    rounded = code.pure(
        f"lshr {bits} {code.pure(f'add {bits} {carried}, {odd}')}, {_int(wide, drop)}"
    )
    rebased = (127 - layout.bias) << layout.mantissa
    normal = code.pure(f"sub {bits} {rounded}, {_int(wide, rebased)}")
    # the unit of this number's last place is that of the denormals
    exponent = 127 - layout.bias + 1 + drop
    adder = splat(wide, float_text(FLOAT32, 2.0 ** (exponent - 127)))
    total = code.pure(
        f"bitcast {wide.text} {code.pure(f'fadd {wide.text} {size}, {adder}')} to {bits}"
    )
    denormal = code.pure(f"sub {bits} {total}, {_int(wide, exponent << 23)}")
    smallest = _int(wide, (127 - layout.bias + 1) << 23)
    is_small = code.pure(f"icmp ult {bits} {magnitude}, {smallest}")
    value = code.pure(f"select {mask} {is_small}, {bits} {denormal}, {bits} {normal}")
    limit = splat(wide, float_text(FLOAT32, layout.largest))
    strict = "ogt" if layout.overflow == layout.nan else "oge"  # the tie goes to the even neighbour
    is_large = code.pure(f"fcmp {strict} {wide.text} {size}, {limit}")
    value = code.pure(
        f"select {mask} {is_large}, {bits} {_int(wide, layout.overflow)}, {bits} {value}"
    )
    is_nan = code.pure(f"fcmp uno {wide.text} {operand}, {operand}")
    value = code.pure(f"select {mask} {is_nan}, {bits} {_int(wide, layout.nan)}, {bits} {value}")
    sign = code.pure(
        f"and {bits} {code.pure(f'lshr {bits} {raw}, {_int(wide, 24)}')}, {_int(wide, 0x80)}"
    )
    return code.pure(
        f"trunc {bits} {code.pure(f'or {bits} {value}, {sign}')} to {narrow_type.text}"
    )
