"""Relax programs: ``from tvm.script.parser import relax as R``, the same as ``tvm.script.relax``."""

from __future__ import annotations

from typing import Any

from ...ir_builder import relax as _builder
from . import parser as _parser
from .entry import (
    Callable,
    Object,
    Prim,
    Shape,
    Tensor,
    Tuple,
    function,
    macro,
    match_cast,
    rewriter,
)


def __getattr__(name: str) -> Any:
    """The words of the builder, and the operators."""
    return getattr(_builder, name)


__all__ = [
    "Callable", "Object", "Prim", "Shape", "Tensor", "Tuple", "function", "macro", "match_cast", "rewriter",
]  # fmt: skip
