"""bfloat16 and 8-bit floats, carried as integers: conversion from and to float.

bfloat16 is the upper half of a float. Rounding is to nearest, ties to even: adding 0x7FFF plus the
lowest kept bit carries exactly when the dropped half is above the middle, or at it and odd.
"""

from __future__ import annotations

from tvm.error import LoweringError
from tvm.support.dtype import DType

from .code import Code
from .types import FLOAT32, TYPES, LLVMType, splat


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
    return scalar if like.lanes == 1 else f"<{like.lanes} x {scalar}>"


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


def _narrow_float8(code: Code, operand: str, dtype: DType) -> str:
    del code, operand
    raise LoweringError(
        f"the LLVM code generator cannot store {dtype} yet", hint="compute in bfloat16 or float16"
    )
