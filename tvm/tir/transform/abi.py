"""The layout of packed arguments as the compiler sees it: fields of DLTensor and TVMValue, type codes."""

from __future__ import annotations

from enum import IntEnum

from tvm.ir.expr import PrimExpr
from tvm.support.dtype import DType
from tvm.support.dtype import dtype as as_dtype
from tvm.tir.expr import BufferLoad, Call, StringImm, as_expr, const
from tvm.tir.intrinsics import INTRINSICS

STRUCT_GET = INTRINSICS["tvm_struct_get"]
STRUCT_SET = INTRINSICS["tvm_struct_set"]
IS_NULL = INTRINSICS["isnullptr"]
RET = INTRINSICS["ret"]
REINTERPRET = INTRINSICS["reinterpret"]
TENSORS_MATCH = INTRINSICS["tvm_tensors_match"]

HANDLE = as_dtype("handle")
INT32 = as_dtype("int32")
INT64 = as_dtype("int64")
FLOAT64 = as_dtype("float64")


class StructField(IntEnum):
    """What ``tvm_struct_get`` and ``tvm_struct_set`` access."""

    ARRAY_ADDRESS = 0
    ARRAY_DATA = 1
    ARRAY_SHAPE = 2
    ARRAY_STRIDES = 3
    ARRAY_NDIM = 4
    ARRAY_TYPE_CODE = 5
    ARRAY_TYPE_BITS = 6
    ARRAY_TYPE_LANES = 7
    ARRAY_BYTE_OFFSET = 8
    ARRAY_DEVICE_ID = 9
    ARRAY_DEVICE_TYPE = 10
    VALUE_CONTENT = 12


class ArgCode(IntEnum):
    """Type codes of packed arguments."""

    INT = 0
    UINT = 1
    FLOAT = 2
    HANDLE = 3
    NULL = 4
    DLTENSOR = 7
    STR = 11
    NDARRAY = 13
    BOOL = 15


POINTER_CODES = (ArgCode.HANDLE, ArgCode.NDARRAY, ArgCode.DLTENSOR, ArgCode.NULL)

# how messages call the type code of an argument
CODE_NAMES = {
    0: "int", 2: "float", 3: "a pointer", 4: "None", 5: "DataType", 6: "Device", 7: "a tensor",
    8: "an object", 9: "Module", 10: "PackedFunc", 11: "str", 12: "bytes", 13: "a tensor", 15: "bool",
}  # fmt: skip

# DLPack's codes of element types
DTYPE_CODES = {0: "int", 1: "uint", 2: "float", 3: "handle", 4: "bfloat"}
UNKNOWN_CODE = "an unknown type "

FIELD_DTYPES = {
    StructField.ARRAY_ADDRESS: HANDLE,
    StructField.ARRAY_DATA: HANDLE,
    StructField.ARRAY_SHAPE: HANDLE,
    StructField.ARRAY_STRIDES: HANDLE,
    StructField.ARRAY_NDIM: INT32,
    StructField.ARRAY_TYPE_CODE: as_dtype("uint8"),
    StructField.ARRAY_TYPE_BITS: as_dtype("uint8"),
    StructField.ARRAY_TYPE_LANES: as_dtype("uint16"),
    StructField.ARRAY_BYTE_OFFSET: as_dtype("uint64"),
    StructField.ARRAY_DEVICE_ID: INT32,
    StructField.ARRAY_DEVICE_TYPE: INT32,
}


def array_field(array: PrimExpr, field: StructField, index: int = 0) -> Call:
    """A field of a DLTensor."""
    return struct_get(array, index, field, FIELD_DTYPES[field])


def struct_get(struct: PrimExpr, index: int | PrimExpr, field: StructField, dtype: DType) -> Call:
    """A field of element ``index`` of an array of structures."""
    return Call(dtype, STRUCT_GET, [struct, as_expr(index), const(int(field), INT32)])


def struct_set(
    struct: PrimExpr, index: int | PrimExpr, field: StructField, value: PrimExpr
) -> Call:
    """Set a field of element ``index`` of an array of structures."""
    return Call(INT32, STRUCT_SET, [struct, as_expr(index), const(int(field), INT32), value])


def is_null(pointer: PrimExpr) -> Call:
    """Whether a pointer is null."""
    return Call("bool", IS_NULL, [pointer])


def packed_dtype(dtype: DType) -> DType:
    """How a scalar travels in a TVMValue: the widest type of its kind."""
    if dtype.is_float:
        return FLOAT64
    return HANDLE if dtype.is_handle else INT64


def packed_code(value: PrimExpr) -> ArgCode:
    """The type code under which a value is passed."""
    if isinstance(value, StringImm):
        return ArgCode.STR
    if value.dtype.is_bool:
        return ArgCode.BOOL
    if isinstance(value, BufferLoad) or not value.dtype.is_handle:
        return ArgCode.FLOAT if value.dtype.is_float else ArgCode.INT
    return ArgCode.HANDLE
