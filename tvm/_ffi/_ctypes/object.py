"""Objects of the binding."""

from tvm._ffi._core import NativeObject as ObjectBase
from tvm._ffi._core import NativeObject as PyNativeObject

__all__ = ["ObjectBase", "PyNativeObject"]
