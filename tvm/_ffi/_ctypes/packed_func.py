"""Functions of the binding."""

from tvm._ffi._core import PackedFuncBase
from tvm._ffi._core import make_function as convert_to_tvm_func

__all__ = ["PackedFuncBase", "convert_to_tvm_func"]
