"""Tables of patterns by compiler, from which `MergeComposite` makes composite functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar, overload

Table = Sequence[Any]  # of (name, pattern) and (name, pattern, check)
_PATTERN_TABLES: dict[str, Table | Callable[[], Table]] = {}


F = TypeVar("F")


@overload
def register_pattern_table(compiler: str, table: None = ...) -> Callable[[F], F]: ...
@overload
def register_pattern_table(compiler: str, table: F) -> F: ...
def register_pattern_table(compiler: str, table: Any = None) -> Any:
    """Set the patterns of a compiler; a decorator if `table` is left out.

    Parameters
    ----------
    compiler : the compiler's name.
    table : entries for :func:`tvm.relay.transform.MergeComposite`, or a function that returns
        them, called when they are first asked for.
    """

    def register(found: Any) -> Any:
        _PATTERN_TABLES[compiler] = found
        return found

    return register if table is None else register(table)


def get_pattern_table(compiler: str) -> Table | None:
    """The patterns of a compiler; None if it has none."""
    found = _PATTERN_TABLES.get(compiler)
    if callable(found):
        found = _PATTERN_TABLES[compiler] = found()
    return found
