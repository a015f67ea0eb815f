"""Models for programs in C: the Model Library Format, and the C runtime that goes with it."""

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
