"""What every layer may use: data types, scopes, names. Imports nothing else of ours."""

from .dtype import DType, dtype, dtype_from_code
from .naming import UniqueNames
from .scope import Scoped, compiling, deep, deep_recursion

__all__ = [
    "DType",
    "Scoped",
    "UniqueNames",
    "compiling",
    "deep",
    "deep_recursion",
    "dtype",
    "dtype_from_code",
]
