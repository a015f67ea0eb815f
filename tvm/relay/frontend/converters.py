"""Tables of converters: what an importer makes of each operator, by the operator's name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

C = TypeVar("C", bound=Callable[..., Any])
F = TypeVar("F", bound=Callable[..., Any])


class Converters(dict[str, C]):
    """Converters by the names of their operators, each of which has one.

    Parameters
    ----------
    prefix : str
        The namespace of names that are given without one.
    """

    def __init__(self, prefix: str = "") -> None:
        super().__init__()
        self._prefix = prefix

    def op(self, *names: str) -> Callable[[F], F]:
        """Register a function as the converter of operators."""

        def register(convert: F) -> F:
            converter: Any = convert
            for name in names:
                key = name if "::" in name else f"{self._prefix}{name}"
                assert key not in self, f"{key} has a converter"
                self[key] = converter
            return convert

        return register

    def rows(self, table: Mapping[str, C]) -> None:
        """Register a table of converters; its keys are names separated by spaces."""
        for names, convert in table.items():
            self.op(*names.split())(convert)
