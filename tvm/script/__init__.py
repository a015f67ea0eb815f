"""TVMScript: loop-level programs as Python text, read and written.

    from tvm.script import ir as I, tir as T

``tvm.script.tir`` and ``tvm.script.ir`` are loaded when they are imported, the printer always.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from . import printer

_PARSER = ("from_source", "ir_module", "parse", "prim_func")


def __getattr__(name: str) -> Any:
    if name in _PARSER:
        return getattr(import_module(".parser", __name__), name)
    if name in ("highlight", "ir", "ir_builder", "parser", "relax", "tir"):
        return import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = ["from_source", "ir_module", "parse", "prim_func", "printer"]
