"""The native library, its errors as Python exceptions, and classic helpers of the C border."""

from __future__ import annotations

import builtins
import ctypes
import functools
import sys
from collections.abc import Callable, Iterable
from typing import Any, NoReturn, ParamSpec, TypeVar

import tvm.error
from tvm._ffi import _core, libinfo
from tvm.error import (
    ERROR_TYPE,
    RuntimeAttributeError,
    RuntimeIndexError,
    RuntimeTypeError,
    RuntimeValueError,
    TVMError,
    register_error,
)

string_types = (str,)
integer_types = (int,)
numeric_types = (int, float)
py_str: Callable[[bytes], str] = lambda value: value.decode("utf-8")  # noqa: E731

__all__ = [
    "ERROR_TYPE",
    "TVMError",
    "c2pyerror",
    "c_array",
    "c_str",
    "check_call",
    "decorate",
    "find_error_class",
    "get_last_ffi_error",
    "integer_types",
    "numeric_types",
    "py2cerror",
    "py_str",
    "raise_last_ffi_error",
    "register_error",
    "string_types",
]

__version__ = libinfo.__version__

_LIB_NAME = "libtvm_runtime.so"
_RUNTIME_ONLY = False  # the compiler is there, though in no library
# the entry points of c_runtime_api.h; the library that the binding uses, not a second copy
_LIB = ctypes.CDLL(str(libinfo.PACKAGE / _LIB_NAME), ctypes.RTLD_GLOBAL)
_LIB.TVMGetLastError.restype = ctypes.c_char_p

P = ParamSpec("P")
R = TypeVar("R")


def c_str(string: str) -> ctypes.c_char_p:
    """The text as a C string."""
    return ctypes.c_char_p(string.encode("utf-8"))


def c_array(ctype: type, values: Iterable[Any]) -> Any:
    """A C array of that element type.

    Parameters
    ----------
    ctype : type
        A type of ``ctypes``.
    values : iterable
        The elements.
    """
    items = tuple(values)
    return (ctype * len(items))(*items)  # type: ignore[operator]


def decorate(func: Callable[P, R], fwrapped: Callable[..., R]) -> Callable[P, R]:
    """A function with the name, documentation and signature of ``func`` that calls ``fwrapped``.

    Parameters
    ----------
    func : function
        What it looks like.
    fwrapped : function
        Called as ``fwrapped(func, *args, **kwargs)``.
    """

    @functools.wraps(func)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        return fwrapped(func, *args, **kwargs)

    return call


def find_error_class(name: str) -> type[BaseException] | None:
    """The exception class that the prefix of an error text names; it may be dotted."""
    module, _, last = name.rpartition(".")
    places = [sys.modules.get(module)] if module else [tvm.error, builtins]
    found = ERROR_TYPE.get(name)
    for place in places:
        found = found or getattr(place, last, None)
    return found if isinstance(found, type) and issubclass(found, BaseException) else None


# errors of these kinds that native code raises are caught as Python's class and as TVMError alike
_OF_RUNTIME: dict[type[BaseException], type[TVMError]] = {
    ValueError: RuntimeValueError,
    TypeError: RuntimeTypeError,
    IndexError: RuntimeIndexError,
    AttributeError: RuntimeAttributeError,
}


def c2pyerror(err_msg: str) -> BaseException:
    """The exception for an error text such as ``TypeError: expected int, got str``."""
    name, separator, text = err_msg.partition(": ")
    named = separator and name.replace(".", "_").isidentifier()
    error_class = find_error_class(name) if named else None
    if error_class is None:
        return TVMError(err_msg)
    try:
        return _OF_RUNTIME.get(error_class, error_class)(text)
    except TypeError:  # its constructor needs more than a message
        return TVMError(err_msg)


def py2cerror(err_msg: str) -> str:
    """The error text of a Python traceback: its last line first, by which its class is found."""
    lines = err_msg.rstrip().splitlines()
    for index in range(len(lines) - 1, -1, -1):
        name, separator, _ = lines[index].partition(":")
        if separator and find_error_class(name) is not None:
            return "\n".join([*lines[index:], *lines[:index]])
    return err_msg


def get_last_ffi_error() -> BaseException:
    """The exception for the error that the last call of the native library set."""
    try:
        _core.raise_last_ffi_error()
    except BaseException as error:
        return error.with_traceback(None)


def raise_last_ffi_error() -> NoReturn:
    """Raise the exception for the error that the last call of the native library set."""
    raise get_last_ffi_error()


def check_call(ret: int) -> None:
    """Raise the error of a call of the native library, if it returned nonzero."""
    if ret != 0:
        raise_last_ffi_error()


_core.set_classes(error=c2pyerror)
