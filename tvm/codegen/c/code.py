"""The text of one C function while it is written: nested blocks of lines."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tvm.support import UniqueNames

from .names import identifier

# longer expressions are computed in steps: C promises no more than 63 nested parentheses
LONGEST = 160


class Code:
    """Lines of one function; :attr:`lines` is the block that is being written."""

    def __init__(self, signature: str) -> None:
        self.signature = signature
        self.lines: list[str] = []
        self._body = self.lines
        self._names = UniqueNames()

    def name(self, wish: str) -> str:
        """An identifier that nothing else in the function has."""
        return self._names.fresh(identifier(wish))

    def reserve(self, name: str) -> None:
        """Take a name out of the supply."""
        self._names.reserve(name)

    def do(self, text: str) -> None:
        """A statement."""
        self.lines.append(f"{text};")

    def define(self, type_: str, wish: str, value: str) -> str:
        """A constant; its name."""
        name = self.name(wish)
        self.do(
            f"const {type_} {name} = {value}"
            if not type_.endswith("*")
            else f"{type_} {name} = {value}"
        )
        return name

    @contextmanager
    def block(self, head: str) -> Iterator[list[str]]:
        """Statements inside braces."""
        with self.collected() as lines:
            yield lines
        self.lines.append(f"{head} {{")
        self.lines += [f"  {line}" for line in lines]
        self.lines.append("}")

    @contextmanager
    def collected(self) -> Iterator[list[str]]:
        """Statements that are put somewhere later."""
        outer, self.lines = self.lines, []
        try:
            yield self.lines
        finally:
            self.lines = outer

    @contextmanager
    def inside(self, lines: list[str]) -> Iterator[None]:
        """Statements at the end of another block."""
        outer, self.lines = self.lines, lines
        try:
            yield
        finally:
            self.lines = outer

    def text(self) -> str:
        """The function's definition."""
        body = "\n".join([f"  {line}" for line in self._body])
        return f"{self.signature} {{\n{body}\n}}\n"
