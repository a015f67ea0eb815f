"""Functions that native, compiled and Python code call alike."""

from __future__ import annotations

from tvm._ffi import _core
from tvm._ffi._core import PackedFuncBase
from tvm.runtime.object import Object


class PackedFunc(PackedFuncBase, Object):
    """A function of any arguments.

    Arguments may be numbers, text, bytes, None, devices, data types, arrays, modules, functions and
    any other Python objects, which native code carries without looking at them.
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return f"PackedFunc({self.handle.value or 0:#x})"


_core.set_classes(object=Object, func=PackedFunc)
