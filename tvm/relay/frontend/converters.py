"""Tables of converters: what an importer makes of each operator, by the operator's name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

C = TypeVar("C", bound=Callable[..., Any])
F = TypeVar("F", bound=Callable[..., Any])
Rows = Mapping[str, Callable[..., Any]]  # by names separated by spaces


class Converters(dict[str, C], Generic[C]):
    """Converters by the names of their operators, each of which has one.

    Parameters
    ----------
    prefix : str
        The namespace of names that are given without one.
    adapted : callable, optional
        Makes a converter of a function; functions are converters themselves by default.
    """

    def __init__(
        self, prefix: str = "", adapted: Callable[[Any], C] = lambda function: function
    ) -> None:
        super().__init__()
        self._prefix, self._adapted = prefix, adapted

    def op(self, *names: str) -> Callable[[F], F]:
        """Register a function as the converter of operators."""

        def register(convert: F) -> F:
            converter = self._adapted(convert)
            for name in names:
                key = name if "::" in name else f"{self._prefix}{name}"
                assert key not in self, f"{key} has a converter"
                self[key] = converter
            return convert

        return register

    def rows(self, table: Rows) -> None:
        """Register a table of converters."""
        for names, convert in table.items():
            self.op(*names.split())(convert)
