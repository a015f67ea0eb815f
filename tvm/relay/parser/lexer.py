"""Words of the text form, with their positions."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

from tvm.error import DiagnosticError
from tvm.ir.span import SourceName, Span

_WORD = re.compile(
    r"""(?P<space>\s+|//[^\n]*)
    |(?P<comment>/\*)
    |(?P<version>\#\[version\s*=\s*"[^"]*"\])
    |(?P<local>%[A-Za-z0-9_]+)
    |(?P<glob>@[A-Za-z0-9_.]+)
    |(?P<item>\.\d+)
    |(?P<number>(?:\d+\.?\d*(?:[eE][+-]?\d+)?)(?:[fiu]\d*)?)
    |(?P<text>"(?:\\.|[^"\\])*")
    |(?P<name>[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*)
    |(?P<sign>->|=>|==|!=|<=|>=|[-+*/<>=(){}\[\],;:?])""",
    re.VERBOSE | re.DOTALL,
)


_COMMENT_SIGN = re.compile(r"/\*|\*/")


class Token(NamedTuple):
    """One word: its kind, its text and where it starts."""

    kind: str
    text: str
    start: int


END = "the end of the text"


@dataclass
class Source:
    """A text with a name, which knows the line and column of each place."""

    text: str
    name: SourceName

    def __post_init__(self) -> None:
        self._starts = [0, *[m.end() for m in re.finditer("\n", self.text)]]

    def place(self, start: int) -> tuple[int, int]:
        """Line and column, from 1 on."""
        low, high = 0, len(self._starts)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self._starts[middle] <= start else (low, middle)
        return low + 1, start - self._starts[low] + 1

    def span(self, start: int, end: int) -> Span:
        """The stretch between two positions."""
        (line, column), (end_line, end_column) = self.place(start), self.place(end)
        return Span(self.name, line, end_line, column, end_column)

    def error(self, message: str, token: Token, hint: str = "") -> DiagnosticError:
        """An error at a word, which is shown in its line, underlined."""
        line, column = self.place(token.start)
        shown = self.text.split("\n")[line - 1] if self.text else ""
        length = max(1, len(token.text) if token.kind != "end" else 1)
        underline = " " * (column - 1) + "^" * min(length, max(1, len(shown) - column + 1))
        error = DiagnosticError(f"relay.parse {message}", at=f"{shown}\n{underline}", hint=hint)
        error.span = self.span(token.start, token.start + length)
        error.add_context(f"{self.name.name}, line {line}, column {column}")
        return error


def words(source: Source) -> list[Token]:
    """The words of a text, comments left out, one of kind `end` last."""
    tokens: list[Token] = []
    text, position = source.text, 0
    while position < len(text):
        found = _WORD.match(text, position)
        if found is None:
            bad = Token("bad", text[position], position)
            raise source.error(f"does not know the sign {text[position]!r}", bad)
        if found.lastgroup == "comment":
            position = _end_of_comment(source, position)
            continue
        if found.lastgroup != "space":
            tokens.append(Token(str(found.lastgroup), found.group(), position))
        position = found.end()
    tokens.append(Token("end", END, len(text.rstrip())))
    return tokens


def _end_of_comment(source: Source, start: int) -> int:
    """Where a comment ends, which may have others in it."""
    depth = 0
    for found in _COMMENT_SIGN.finditer(source.text, start):
        depth += 1 if found.group() == "/*" else -1
        if depth == 0:
            return found.end()
    raise source.error("requires an end of the comment, */", Token("bad", "/*", start))
