"""Errors of the native runtime as Python exceptions, and what native code was built as."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any, TypeVar, overload

import tvm.error
from tvm._ffi import _core
from tvm.error import TVMError

string_types = (str,)
integer_types = (int,)
numeric_types = (int, float)

__version__ = "0.18.0"

E = TypeVar("E", bound=type[BaseException])

ERROR_TYPE: dict[str, type[BaseException]] = {}


@overload
def register_error(func_name: str, cls: E) -> E: ...
@overload
def register_error(func_name: str) -> Callable[[E], E]: ...
@overload
def register_error(func_name: E) -> E: ...


def register_error(func_name: Any = None, cls: Any = None) -> Any:
    """Let native errors whose text starts with ``name:`` be raised as the class.

    Used as a decorator, with or without a name, or called with a name and the class.
    """
    if isinstance(func_name, type):
        ERROR_TYPE[func_name.__name__] = func_name
        return func_name

    def register(error_class: E) -> E:
        ERROR_TYPE[func_name or error_class.__name__] = error_class
        return error_class

    return register if cls is None else register(cls)


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
