"""Values as objects."""

from __future__ import annotations

import numbers
from typing import Any

from tvm._ffi import _core
from tvm._ffi._core import DeviceBase, PackedFuncBase
from tvm.runtime.object import Object


class ObjectGeneric:
    """Something that can become an object."""

    def asobject(self) -> Any:
        """The object."""
        raise NotImplementedError

    def _tvm_ffi_argument_(self) -> Any:
        return self.asobject()


def convert_to_object(value: Any) -> Any:
    """The value as programs see it after it has crossed into the compiler.

    Lists become tuples, functions packed functions; everything else is an object already.
    """
    if isinstance(value, (Object, PackedFuncBase)):
        return value
    if isinstance(value, ObjectGeneric):
        return value.asobject()
    if isinstance(value, (list, tuple)):
        return tuple([convert_to_object(item) for item in value])
    if isinstance(value, dict):
        return {key: convert_to_object(item) for key, item in value.items()}
    if callable(value) and not isinstance(value, type):
        return _core.make_function(value)
    if value is None or isinstance(value, (str, bytes, bytearray, numbers.Number, DeviceBase)):
        return value
    raise ValueError(f"convert needs numbers, text, containers or functions, got {type(value)}")


def convert(value: Any) -> Any:
    """A packed function for a Python function; other values as :func:`convert_to_object`."""
    return convert_to_object(value)
