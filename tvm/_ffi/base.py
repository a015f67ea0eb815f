"""Errors of the native runtime as Python exceptions, and what native code was built as."""

from __future__ import annotations

import builtins

import tvm.error
from tvm._ffi import _core
from tvm.error import ERROR_TYPE, TVMError, register_error

string_types = (str,)
integer_types = (int,)
numeric_types = (int, float)

__all__ = [
    "ERROR_TYPE",
    "TVMError",
    "c2pyerror",
    "find_error_class",
    "integer_types",
    "numeric_types",
    "register_error",
    "string_types",
]

__version__ = "0.18.0"


def find_error_class(name: str) -> type[BaseException] | None:
    """The exception class that the prefix of an error text names."""
    found = ERROR_TYPE.get(name) or getattr(tvm.error, name, None) or getattr(builtins, name, None)
    return found if isinstance(found, type) and issubclass(found, BaseException) else None


def c2pyerror(err_msg: str) -> BaseException:
    """The exception for an error text such as ``TypeError: expected int, got str``."""
    name, separator, text = err_msg.partition(": ")
    error_class = find_error_class(name) if separator and name.isidentifier() else None
    if error_class is None:
        return TVMError(err_msg)
    return error_class(text)


_core.set_classes(error=c2pyerror)
