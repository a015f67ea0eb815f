"""The loop level: ``from tvm.script.parser import tir as T``, the same as ``tvm.script.tir``."""

from __future__ import annotations

from typing import Any

from tvm.error import suggest

from ...ir_builder.tir.namespace import tir_names
from ...ir_builder.tir.values import vector_type
from . import parser
from .entry import macro, prim_func

globals().update({**tir_names(), "macro": macro, "prim_func": prim_func})


def __getattr__(name: str) -> Any:
    """Data types that are not listed, such as ``T.float32x4``."""
    found = vector_type(name)
    if found is None:
        raise AttributeError(f"T has no name {name!r}; {suggest(name, __all__)}")
    return found


__all__ = [*{**dict.fromkeys(tir_names()), "macro": None, "parser": None, "prim_func": None}]
