"""Values and codes of the C border."""

import ctypes

from tvm._ffi.base import check_call, py_str
from tvm._ffi.runtime_ctypes import ArgTypeCode, DLDataType, DLDevice, TVMByteArray


class TVMValue(ctypes.Union):
    """One argument or result; its code tells which member holds."""

    _fields_ = (
        ("v_int64", ctypes.c_int64),
        ("v_float64", ctypes.c_double),
        ("v_handle", ctypes.c_void_p),
        ("v_str", ctypes.c_char_p),
        ("v_type", DLDataType),
        ("v_device", DLDevice),
    )


TVMPackedCFunc = ctypes.CFUNCTYPE(
    ctypes.c_int,
    ctypes.POINTER(TVMValue),
    ctypes.POINTER(ctypes.c_int),
    ctypes.c_int,
    ctypes.c_void_p,
    ctypes.c_void_p,
)
TVMCFuncFinalizer = ctypes.CFUNCTYPE(None, ctypes.c_void_p)

__all__ = [
    "ArgTypeCode", "TVMByteArray", "TVMCFuncFinalizer", "TVMPackedCFunc", "TVMValue", "check_call",
    "py_str",
]  # fmt: skip
