"""The records of operators' attributes, under their classic names."""

from __future__ import annotations

from typing import Any

from .operator import records


def __getattr__(name: str) -> Any:
    found = records().get(name)
    if found is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return found
