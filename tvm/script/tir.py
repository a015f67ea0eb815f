"""``from tvm.script import tir as T``: the words of loop-level programs."""

from __future__ import annotations

from typing import Any

from .parser.entry import prim_func
from .parser.macro import macro
from .parser.namespace import tir_names
from .parser.values import vector_type

globals().update(tir_names())


def __getattr__(name: str) -> Any:
    """Data types that are not listed, such as ``T.float32x4``."""
    found = vector_type(name)
    if found is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return found


__all__ = ["macro", "prim_func", *tir_names()]
