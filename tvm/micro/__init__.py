"""Models for programs in C: the Model Library Format, and the C runtime that goes with it."""

from typing import NoReturn as _NoReturn

from tvm.support.absent import attribute_error as _attribute_error

from .model_library_format import (
    UnsupportedInModelLibraryFormatError,
    export_model_library_format,
    get_standalone_crt_dir,
)

__all__ = [
    "UnsupportedInModelLibraryFormatError",
    "export_model_library_format",
    "get_standalone_crt_dir",
]


def __getattr__(name: str) -> _NoReturn:
    raise _attribute_error("tvm.micro", name)
