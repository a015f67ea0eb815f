"""Functions that native, compiled and Python code call alike."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm._ffi import _core, native_object
from tvm._ffi._core import NativeObject, PackedFuncBase
from tvm.runtime.object import Object


class PackedFunc(PackedFuncBase, Object):
    """A function of any arguments.

    Arguments and results may be numbers, text, bytes, None, devices, data types, arrays, modules,
    functions, handles (``ctypes.c_void_p``) and any other Python objects, which native code carries
    without looking at them. An exception of any side reaches the caller as it was raised.
    """

    __slots__ = ("__dict__",)  # programs hang what belongs to a function onto it

    @property
    def __name__(self) -> str:
        """The last part of the name it is registered under."""
        name = self.name.rpartition(".")[2]
        if not name:
            raise AttributeError("this packed function is not registered and has no name")
        return name

    def same_as(self, other: object) -> bool:
        """Whether both are the very same function."""
        return self == other

    def __repr__(self) -> str:
        return f"PackedFunc({self.name or hex(self.handle.value or 0)})"


class NativeValue(NativeObject, Object):
    """A native object of a kind that no Python class is registered for."""

    __slots__ = ()
    __hash__ = NativeObject.__hash__

    @property
    def _native(self) -> NativeObject:
        return self

    def __getattr__(self, name: str) -> Any:
        return native_object.get_attribute(self, name)

    def __dir__(self) -> list[str]:
        return native_object.list_attributes(self)

    def __repr__(self) -> str:
        return native_object.represent(self)


def convert_to_tvm_func(pyfunc: Callable[..., Any]) -> PackedFunc:
    """A packed function that calls the Python function."""
    packed: PackedFunc = _core.make_function(pyfunc)
    return packed


_core.set_classes(object=Object, native=NativeValue, func=PackedFunc)
