"""The classic place of the names of :mod:`tvm.script.ir_builder.tir`."""

from __future__ import annotations

from typing import Any

from .namespace import tir_names
from .values import vector_type

globals().update(tir_names())


def __getattr__(name: str) -> Any:
    found = vector_type(name)
    if found is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return found


__all__ = [*tir_names()]
