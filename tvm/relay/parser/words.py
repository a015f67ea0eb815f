"""Reading words one by one: what the parsers of types and of expressions have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from tvm.error import DiagnosticError

from .lexer import Source, Token, words

T = TypeVar("T")


class WordReader:
    """A text, read from its start."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self._tokens = words(source)
        self._next = 0

    @property
    def token(self) -> Token:
        """The word that comes next."""
        return self._tokens[self._next]

    def ahead(self, distance: int) -> str:
        """The text of a later word."""
        return self._tokens[min(self._next + distance, len(self._tokens) - 1)].text

    def take(self) -> Token:
        """The next word, read."""
        token = self._tokens[self._next]
        if token.kind != "end":
            self._next += 1
        return token

    def at(self, text: str) -> bool:
        """Whether a sign or a name comes next."""
        token = self._tokens[self._next]
        return token.text == text and token.kind in ("sign", "name")

    def accept(self, text: str) -> bool:
        """Read a word if it comes next."""
        if self.at(text):
            self._next += 1
            return True
        return False

    def expect(self, text: str) -> Token:
        """Read a word that must come next."""
        if not self.at(text):
            raise self.expected(f"`{text}`")
        return self.take()

    def expect_kind(self, kind: str, what: str) -> Token:
        """Read a word of a kind that must come next."""
        if self.token.kind != kind:
            raise self.expected(what)
        return self.take()

    def expected(self, what: str) -> DiagnosticError:
        """The error that something else comes next."""
        found = self.token.text if self.token.kind == "end" else f"`{self.token.text}`"
        return self.source.error(f"requires {what} here, got {found}", self.token)

    def list_until(self, close: str, read: Callable[[], T]) -> list[T]:
        """Items with commas between them, the last comma optional, up to `close`."""
        items: list[T] = []
        while not self.accept(close):
            items.append(read())
            if not self.accept(","):
                self.expect(close)
                break
        return items

    def tuple_until(self, close: str, read: Callable[[], T]) -> tuple[list[T], bool]:
        """As `list_until`; and whether it is a tuple rather than one item in parentheses."""
        items: list[T] = []
        has_comma = False
        while not self.accept(close):
            items.append(read())
            if not self.accept(","):
                self.expect(close)
                break
            has_comma = True
        return items, has_comma or len(items) != 1
