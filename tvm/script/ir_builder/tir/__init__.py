"""The loop level: ``from tvm.script.ir_builder import tir as T``."""

from __future__ import annotations

from typing import Any

from . import naming
from .namespace import tir_names
from .values import vector_type

globals().update(tir_names())


def __getattr__(name: str) -> Any:
    """Data types that are not listed, such as ``T.float32x4``."""
    found = vector_type(name)
    if found is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return found


__all__ = ["naming", *tir_names()]
