"""``from tvm.script import relax as R``: the words of graphs."""

from __future__ import annotations

from typing import Any

from .parser import relax as _relax
from .parser.relax.entry import (
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
    """Operators, and the words of the builder."""
    return getattr(_relax, name)


__all__ = [
    "Callable", "Object", "Prim", "Shape", "Tensor", "Tuple", "function", "macro", "match_cast", "rewriter",
]  # fmt: skip
