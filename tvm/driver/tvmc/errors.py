"""What goes wrong on the command line: told in one line, without a traceback."""

from __future__ import annotations

from collections.abc import Iterable

from tvm.error import suggest


class TVMCException(Exception):
    """A wrong argument, file or combination of them."""


class TVMCImportError(TVMCException):
    """A package that reads a model's format is not installed; the message is its name."""


class UnsupportedFormatError(TVMCImportError):
    """Models of a format are not imported, whatever is installed; the message says what to do."""


def similar_or_all(name: str, known: Iterable[str]) -> str:
    """What a name may have meant: names like it, else all there are."""
    names = list(known)
    return suggest(name, names) or f"choose from {', '.join(names) or 'none'}"
