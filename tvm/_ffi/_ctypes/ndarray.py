"""Arrays of the binding."""

from tvm._ffi._core import NDArrayBase

__all__ = ["NDArrayBase"]
