"""Models for programs in C: the Model Library Format, and the C runtime that goes with it."""

from typing import Any as _Any

from tvm.support.absent import absent_name as _absent_name

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


def __getattr__(name: str) -> _Any:
    return _absent_name("tvm.micro", name)
