"""Warnings about spellings of older releases."""

from __future__ import annotations

import warnings


def warn_renamed(old: str, new: str, stacklevel: int = 3) -> None:
    """Tell the caller of the caller about today's spelling.

    Python shows the same text for the same line once.
    """
    warnings.warn(f"{old} is deprecated: use {new}", DeprecationWarning, stacklevel=stacklevel)
