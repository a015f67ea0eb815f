"""What every layer may use: data types, scopes, names. Imports nothing else of ours."""

import importlib as _importlib
from typing import Any as _Any

from .dtype import DType, ScalableLanes, dtype, dtype_from_code
from .later import names_from_above as _names_from_above
from .naming import UniqueNames
from .scope import Scoped, compiling, deep, deep_recursion

__all__ = [
    "DType",
    "ScalableLanes",
    "Scoped",
    "UniqueNames",
    "compiling",
    "deep",
    "deep_recursion",
    "dtype",
    "dtype_from_code",
]


def __getattr__(name: str) -> _Any:
    # reading the metadata of packages costs 20 ms, which `import tvm` need not pay
    if name in ("describe", "libinfo"):
        return getattr(_importlib.import_module(".report", __name__), name)
    return _find_above(name)


_find_above = _names_from_above(__name__)
