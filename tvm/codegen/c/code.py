"""The text of one C function while it is written: nested blocks of lines.

Values without memory are numbered: the same text where the first one holds is the same constant. The text
stays as small as the program is as a graph, though expressions are trees.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from tvm.support import UniqueNames

from .names import identifier

# longer expressions are computed in steps: C promises no more than 63 nested parentheses
LONGEST = 160
# memory, structs, the module's variables and calls, but for the one macro of conditions
_DEPENDS_ON_STATE = re.compile(r"\[|->|NULL|tvm_|__|\w\((?<!TVM_LIKELY\()", re.ASCII)


class Code:
    """Lines of one function; :attr:`lines` is the block that is being written."""

    def __init__(self, signature: str) -> None:
        self.signature = signature
        self.lines: list[str] = []
        self._body = self.lines
        self._names = UniqueNames()
        self._known: dict[tuple[str, str], str] = {}  # constants of types and values that hold here

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

    def share(self, type_: str, wish: str, value: str) -> str:
        """A constant, or the one of the same value; its name."""
        if _DEPENDS_ON_STATE.search(value):
            return self.define(type_, wish, value)
        found = self._known.get((type_, value))
        if found is None:
            found = self._known[type_, value] = self.define(type_, wish, value)
        return found

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
        """Statements that are put somewhere later; constants among them are known to each other alone."""
        outer, self.lines = self.lines, []
        count = len(self._known)
        try:
            yield self.lines
        finally:
            self.lines = outer
            for key in list(self._known)[count:]:
                del self._known[key]

    @contextmanager
    def inside(self, lines: list[str]) -> Iterator[None]:
        """Statements at the end of another block."""
        outer, self.lines = self.lines, lines
        known, self._known = self._known, {}
        try:
            yield
        finally:
            self.lines, self._known = outer, known

    def text(self) -> str:
        """The function's definition."""
        body = "\n".join([f"  {line}" for line in self._body])
        return f"{self.signature} {{\n{body}\n}}\n"
