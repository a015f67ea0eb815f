"""C's types and constants for data types.

    int8 -> int8_t      float32 0.1 -> 0x1.99999ap-4f      bool -> bool, a byte in memory

float16, bfloat16 and the 8-bit floats are carried as integers: arithmetic on them goes through float.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from tvm.error import LoweringError
from tvm.support.dtype import DType
from tvm.support.dtype import dtype as as_dtype

INT32 = as_dtype("int32")
INT64 = as_dtype("int64")
UINT32 = as_dtype("uint32")
FLOAT32 = as_dtype("float32")
FLOAT64 = as_dtype("float64")
BOOL = as_dtype("bool")
HANDLE = as_dtype("handle")
VOID = as_dtype("void")


@dataclass(frozen=True, slots=True)
class CType:
    """How one lane of a data type looks in C."""

    text: str  # of values
    memory: str  # in memory: a bool takes a byte there
    kind: (
        str  # signed, unsigned, float, bool, pointer, narrow (a float carried as an integer), void
    )
    bits: int

    @property
    def unsigned(self) -> str:
        """The type in which numbers of this size wrap around; C computes in no smaller one."""
        return f"uint{max(self.bits, 32)}_t"


class TypeTable(dict[DType, CType]):
    """``dtype -> CType``, filled on first use."""

    def __missing__(self, dtype: DType) -> CType:
        found = self[dtype] = _make_type(dtype)
        return found


TYPES = TypeTable()


def _make_type(dtype: DType) -> CType:
    bits = dtype.bits
    if dtype.is_void:
        return CType("void", "void", "void", 0)
    if dtype.is_handle:
        return CType("void*", "void*", "pointer", 64)
    if dtype.is_bool:
        return CType("bool", "uint8_t", "bool", 8)
    if dtype.code == "float" and bits in (32, 64):
        name = "float" if bits == 32 else "double"
        return CType(name, name, "float", bits)
    if dtype.is_float and (dtype.code, bits) in NARROW_FLOATS:
        name = f"uint{bits}_t"
        return CType(name, name, "narrow", bits)
    if dtype.is_float or bits not in (8, 16, 32, 64):
        raise LoweringError(
            f"the C code generator needs 8, 16, 32 or 64-bit data, got {dtype}",
            hint="cast to a wider type",
        )
    name = f"{'' if dtype.is_int else 'u'}int{bits}_t"
    return CType(name, name, "signed" if dtype.is_int else "unsigned", bits)


# code and bits: name in helper functions, numpy's type
NARROW_FLOATS = {
    ("float", 16): ("half", np.float16),
    ("bfloat", 16): ("bfloat16", ml_dtypes.bfloat16),
    ("e4m3_float", 8): ("e4m3", ml_dtypes.float8_e4m3fn),
    ("e5m2_float", 8): ("e5m2", ml_dtypes.float8_e5m2),
}


def narrow_name(dtype: DType) -> str:
    """The name of a narrow float in the helper functions that convert it."""
    return NARROW_FLOATS[dtype.code, dtype.bits][0]


_SUFFIXES = {("signed", 64): "LL", ("unsigned", 64): "ULL", ("unsigned", 32): "U"}
_LOWEST = {32: "(-2147483647 - 1)", 64: "(-9223372036854775807LL - 1)"}


def integer_text(dtype: DType, value: int) -> str:
    """A scalar integer, bool or null constant."""
    type_ = TYPES[dtype.element]
    if type_.kind == "bool":
        return "true" if value else "false"
    if type_.kind == "pointer":
        return "NULL" if value == 0 else f"((void*)(uintptr_t){value}ULL)"
    if type_.kind == "signed" and value == -(1 << (type_.bits - 1)) and type_.bits in _LOWEST:
        return _LOWEST[type_.bits]
    text = f"{value}{_SUFFIXES.get((type_.kind, type_.bits), '')}"
    return f"({text})" if value < 0 else text


def float_text(dtype: DType, value: float) -> str:
    """A scalar floating-point constant, rounded to the type."""
    type_ = TYPES[dtype.element]
    if type_.kind == "narrow":
        with np.errstate(over="ignore"):
            rounded = np.asarray(value).astype(NARROW_FLOATS[dtype.code, dtype.bits][1])
        return f"0x{int(rounded.view(f'uint{type_.bits}')):x}"
    single = type_.bits == 32
    with np.errstate(over="ignore"):
        number = float(np.float32(value)) if single else float(value)
    if math.isnan(number):
        return "NAN" if single else "((double)NAN)"
    if math.isinf(number):
        text = "INFINITY" if single else "((double)INFINITY)"
    else:
        text = _digits(abs(number)) + ("f" if single else "")
    return f"(-{text})" if math.copysign(1.0, number) < 0 else text


def array_literals(dtype: DType, values: np.ndarray[Any, Any]) -> list[str]:
    """Constants of an array, as hexadecimal numbers: no digit is lost, and each is a single word."""
    type_ = TYPES[dtype.element]
    if type_.kind == "float":
        return [_hexadecimal(value, "f" if type_.bits == 32 else "") for value in values.tolist()]
    if type_.kind == "narrow":
        return [hex(value) for value in values.view(f"uint{type_.bits}").tolist()]
    suffix = _SUFFIXES.get((type_.kind, type_.bits), "")
    # the lowest number of a type is the negative of one that it does not hold
    lowest = -(1 << (type_.bits - 1)) if type_.bits in _LOWEST else None
    return [
        f"{value:#x}{suffix}" if value != lowest else f"({value + 1:#x}{suffix} - 1)"
        for value in map(int, values.tolist())
    ]


def _hexadecimal(value: float, suffix: str) -> str:
    if math.isnan(value):
        return "NAN"
    if math.isinf(value):
        return "-INFINITY" if value < 0 else "INFINITY"
    mantissa, _, exponent = value.hex().partition("p")
    return f"{mantissa.rstrip('0').rstrip('.') if '.' in mantissa else mantissa}p{exponent}{suffix}"


def _digits(number: float) -> str:
    """The number in decimals if few of them are exact, or else in hexadecimals."""
    decimal = f"{number:.6f}".rstrip("0")
    if number < 1e6 and float(decimal) == number:
        return decimal + "0" if decimal.endswith(".") else decimal
    mantissa, _, exponent = number.hex().partition("p")
    digits = mantissa.rstrip("0") if "." in mantissa else mantissa
    return f"{digits}0p{exponent}" if digits.endswith(".") else f"{digits}p{exponent}"


def string_text(text: str) -> str:
    """A constant C string."""
    return '"' + "".join([_CHARACTERS[b] for b in text.encode()]) + '"'


def _character(byte: int) -> str:
    character = chr(byte)
    # three octal digits end by themselves; a question mark could start a trigraph
    return character if 32 <= byte < 127 and character not in '"\\?' else f"\\{byte:03o}"


_CHARACTERS = [_character(byte) for byte in range(256)]
