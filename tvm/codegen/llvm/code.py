"""The text of one LLVM function while it is written: blocks, values, stack memory.

Pure instructions are numbered: the same text where the first one holds gives the same operand. That leaves
LLVM a third less to read, and what remains in it is found by LLVM itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class Code:
    """Lines of one function. Values are ``%v1, %v2, ...``; stack memory goes to the entry block."""

    def __init__(self, signature: str) -> None:
        self.signature = signature
        self.entry: list[str] = []
        self.lines: list[str] = []
        self.label = "start"
        self.location = ""  # what debug information appends to each instruction
        self._count = 0
        self._known: dict[str, str] = {}  # pure instructions whose results hold here
        self._order: list[str] = []

    def value(self, text: str) -> str:
        """An instruction with a result; the operand that names it."""
        self._count += 1
        name = f"%v{self._count}"
        self.lines.append(f"  {name} = {text}{self.location}")
        return name

    def pure(self, text: str) -> str:
        """An instruction whose result depends on its operands alone; found again where it holds."""
        found = self._known.get(text)
        if found is None:
            self._count += 1
            found = self._known[text] = f"%v{self._count}"
            self._order.append(text)
            self.lines.append(f"  {found} = {text}{self.location}")
        return found

    @contextmanager
    def branch_scope(self) -> Iterator[None]:
        """Blocks that the code after them need not have passed: their values are forgotten."""
        mark = len(self._order)
        try:
            yield
        finally:
            for text in self._order[mark:]:
                del self._known[text]
            del self._order[mark:]

    def do(self, text: str) -> None:
        """An instruction without a result."""
        self.lines.append(f"  {text}{self.location}")

    def new_label(self, hint: str) -> str:
        """A label for a block to come."""
        self._count += 1
        return f"{hint}{self._count}"

    def start(self, label: str) -> None:
        """Begin the block; the one before must have ended."""
        self.lines.append(f"{label}:")
        self.label = label

    def jump(self, label: str) -> None:
        self.lines.append(f"  br label %{label}{self.location}")

    def branch(self, condition: str, yes: str, no: str, metadata: str = "") -> None:
        self.lines.append(
            f"  br i1 {condition}, label %{yes}, label %{no}{metadata}{self.location}"
        )

    def stack(self, item: str, count: int, align: int) -> str:
        """A pointer to stack memory for ``count`` items, reserved once per call of the function."""
        self._count += 1
        name = f"%m{self._count}"
        number = "" if count == 1 else f", i64 {count}"
        self.entry.append(f"  {name} = alloca {item}{number}, align {align}")
        return name

    def text(self) -> str:
        """The function's definition."""
        body = "\n".join([*self.entry, "  br label %start", "start:", *self.lines])
        return f"{self.signature} {{\nentry:\n{body}\n}}\n"
