"""Values as objects."""

from __future__ import annotations

import numbers
from typing import Any

from tvm._ffi import _core
from tvm._ffi._core import DeviceBase, ModuleBase, NDArrayBase, PackedFuncBase
from tvm.runtime.container import Array, String, make_map
from tvm.runtime.object import Object
from tvm.support.dtype import DType


class ObjectGeneric:
    """Something that can become an object."""

    def asobject(self) -> Any:
        """The object."""
        raise NotImplementedError

    def _tvm_ffi_argument_(self) -> Any:
        return self.asobject()


_READY = (Object, PackedFuncBase, NDArrayBase, ModuleBase, DeviceBase, DType)


def convert_to_object(value: Any) -> Any:
    """The value as an object.

    Parameters
    ----------
    value : object
        A list or tuple becomes an ``Array``, a dict a ``Map``, text a ``String``, a function a packed
        function, a generic object what it stands for. Numbers, None and objects are what they are.

    Raises
    ------
    ValueError
        If it is none of these.
    """
    if isinstance(value, _READY) or value is None:
        return value
    if isinstance(value, str):
        return String(value)
    if isinstance(value, ObjectGeneric):
        return value.asobject()
    if isinstance(value, (list, tuple)):
        return Array([convert_to_object(item) for item in value])
    if isinstance(value, dict):
        return make_map({key: convert_to_object(item) for key, item in value.items()})
    if callable(value) and not isinstance(value, type):
        return _core.make_function(value)
    if isinstance(value, (bytes, bytearray, numbers.Number)):
        return value
    raise ValueError(f"convert needs numbers, text, containers or functions, got {type(value)}")


def convert(value: Any) -> Any:
    """A packed function for a Python function; other values as :func:`convert_to_object`."""
    return convert_to_object(value)


def const(value: Any, dtype: str | None = None, span: Any = None) -> Any:
    """A constant expression; needs the compiler.

    Parameters
    ----------
    value : bool, int, float or numpy scalar
        The value.
    dtype : str, optional
        Its type; derived from the value by default.
    span : Span, optional
        Its place in the source.
    """
    make = _core.get_global("node._const")
    if make is None:
        raise ValueError("const makes expressions, which need the compiler: import tvm.tir")
    return make(value, dtype, span)
