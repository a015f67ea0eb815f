"""LLVM's types and constants for data types.

    int8x4 -> <4 x i8>      float32 1.0 -> 0x3FF0000000000000      bool in a vector -> i1

bfloat16 and the 8-bit floats are carried as integers: arithmetic on them goes through float
(:mod:`tvm.codegen.llvm.narrow_float`), so that every processor gives the same results.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass

import ml_dtypes
import numpy as np

from tvm.error import LoweringError
from tvm.support.dtype import DType, ScalableLanes
from tvm.support.dtype import dtype as as_dtype

INT32 = as_dtype("int32")
INT64 = as_dtype("int64")
FLOAT32 = as_dtype("float32")
BOOL = as_dtype("bool")
HANDLE = as_dtype("handle")

# DLPack's DLTensor: data, device type and number, ndim, type code, bits, lanes, shape, strides, byte offset
TENSOR = "%DLTensor"
TENSOR_FIELDS = "{ ptr, i32, i32, i32, i8, i8, i16, ptr, ptr, i64 }"

_FLOATS = {16: "half", 32: "float", 64: "double"}


@dataclass(frozen=True, slots=True)
class LLVMType:
    """How values of a data type look in LLVM."""

    text: str  # in registers
    memory: str  # in memory: a bool takes a byte there
    scalar: str  # one lane
    kind: str  # signed, unsigned, float, bool, pointer, narrow (a float carried as an integer)
    bits: int
    lanes: int
    item_bytes: int  # bytes of one lane in memory


class TypeTable(dict[DType, LLVMType]):
    """``dtype -> LLVMType``, filled on first use."""

    def __missing__(self, dtype: DType) -> LLVMType:
        found = self[dtype] = _make_type(dtype)
        return found


TYPES = TypeTable()


def _make_type(dtype: DType) -> LLVMType:
    bits, lanes = dtype.bits, dtype.lanes
    memory = None
    if dtype.is_void:
        return LLVMType("void", "void", "void", "void", 0, 0, 0)
    if dtype.is_handle:
        kind, scalar = "pointer", "ptr"
    elif dtype.is_bool:
        kind, scalar, memory = "bool", "i1", "i8"
    elif dtype.code == "float":
        kind, scalar = "float", _FLOATS.get(bits, "")
    elif dtype.is_float:
        kind, scalar = "narrow", f"i{bits}"
    else:
        kind, scalar = ("signed" if dtype.is_int else "unsigned"), f"i{bits}"
    if not scalar or (bits % 8 and not dtype.is_bool):
        raise LoweringError(
            f"the LLVM code generator needs 8, 16, 32 or 64-bit data, got {dtype}",
            hint="cast to a wider type",
        )
    memory = memory or scalar
    if lanes == 1:
        return LLVMType(scalar, memory, scalar, kind, bits, 1, max(bits // 8, 1))
    return LLVMType(
        vector_text(lanes, scalar), vector_text(lanes, memory), scalar, kind, bits, lanes,
        max(bits // 8, 1),
    )  # fmt: skip


def vector_text(lanes: int, scalar: str) -> str:
    """A vector type: ``<4 x i32>``, ``<vscale x 4 x i32>``."""
    if isinstance(lanes, ScalableLanes):
        return f"<vscale x {lanes.factor} x {scalar}>"
    return f"<{lanes} x {scalar}>"


_NUMPY = {
    ("float", 16): np.float16,
    ("bfloat", 16): ml_dtypes.bfloat16,
    ("e4m3_float", 8): ml_dtypes.float8_e4m3fn,
    ("e5m2_float", 8): ml_dtypes.float8_e5m2,
}


def integer_text(dtype: DType, value: int) -> str:
    """A scalar integer, bool or null constant."""
    if dtype.is_bool:
        return "true" if value else "false"
    if dtype.is_handle:
        return "null" if value == 0 else f"inttoptr (i64 {value} to ptr)"
    return str(value)


def float_text(dtype: DType, value: float) -> str:
    """A scalar floating-point constant, rounded to the type."""
    if dtype.code == "float" and dtype.bits >= 32:
        # a float constant is written as the double of the same value
        return f"0x{_double_bits(_round_to_float(value) if dtype.bits == 32 else value):016X}"
    with np.errstate(over="ignore"):
        rounded = np.asarray(value).astype(_NUMPY[dtype.code, dtype.bits])
    if dtype.code == "float":
        return f"0xH{int(rounded.view(np.uint16)):04X}"
    return str(int(rounded.view(np.uint8 if dtype.bits == 8 else np.uint16)))


def _round_to_float(value: float) -> float:
    try:
        return float(struct.unpack("<f", struct.pack("<f", value))[0])
    except OverflowError:
        return math.copysign(math.inf, value)


def _double_bits(value: float) -> int:
    # the sign and payload of a NaN differ between platforms, constants must not
    value = math.nan if math.isnan(value) else value
    return int(struct.unpack("<Q", struct.pack("<d", value))[0])


def splat(type_: LLVMType, constant: str) -> str:
    """A constant vector with the same value in each lane."""
    return constant if type_.lanes == 1 else f"splat ({type_.scalar} {constant})"


def is_constant(operand: str) -> bool:
    """Whether the operand is spelled out, rather than a value computed by an instruction."""
    return not operand.startswith("%")


def mask_type(lanes: int) -> str:
    """The type of ``lanes`` truth values."""
    return "i1" if lanes == 1 else vector_text(lanes, "i1")


def quoted(name: str) -> str:
    """A symbol's name as LLVM writes it after ``@``."""
    if name.replace("_", "a").replace(".", "a").isalnum() and name.isascii():
        return name
    escaped = "".join(
        [
            c if 32 <= ord(c) < 127 and c not in '"\\' else f"\\{b:02X}"
            for c in name
            for b in c.encode()
        ]
    )
    return f'"{escaped}"'


def byte_string(data: bytes) -> str:
    """A constant of bytes: ``c"ab\\00"``."""
    return 'c"' + "".join([_BYTES[b] for b in data]) + '"'


_BYTES = [chr(b) if 32 <= b < 127 and chr(b) not in '"\\' else f"\\{b:02X}" for b in range(256)]
