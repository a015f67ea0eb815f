"""``from tvm.script import tir as T``: the words of loop-level programs."""

from __future__ import annotations

from typing import Any

from .parser import tir as _tir

globals().update({name: getattr(_tir, name) for name in _tir.__all__ if name != "parser"})


def __getattr__(name: str) -> Any:
    """Data types that are not listed, such as ``T.float32x4``."""
    return getattr(_tir, name)


__all__ = [name for name in _tir.__all__ if name != "parser"]
