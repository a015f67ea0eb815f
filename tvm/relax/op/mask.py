"""Masks."""

from __future__ import annotations

from typing import Any

from .create import full_like
from .search import where


def masked_fill(x: Any, mask: Any, value: Any) -> Any:
    """The tensor with a value where a mask holds.

    Parameters
    ----------
    x : relax.Expr
        The tensor.
    mask : relax.Expr
        The mask, of bool.
    value : number
    """
    return where(mask, full_like(x, value), x)
