"""Where in the user's source text a node comes from."""

from __future__ import annotations

from .node import Node, leaf


class SourceName(Node):
    """The name of a source text: a file, or what made the program."""

    name: str

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SourceName) and other.name == self.name

    def __hash__(self) -> int:
        return hash(self.name)


def _as_source_name(source: SourceName | str) -> SourceName:
    return source if isinstance(source, SourceName) else SourceName(source)


class Span(Node):
    """A stretch of source text."""

    source_name: SourceName = leaf(convert=_as_source_name)
    line: int
    end_line: int
    column: int
    end_column: int


class SourceMap(Node):
    """The source texts that spans point into, by name."""

    source_map: dict[SourceName, str] = leaf(default_factory=dict)

    def add(self, name: SourceName | str, content: str) -> SourceName:
        """Keep a text under a name, which is returned as spans have it."""
        source_name = _as_source_name(name)
        self.source_map[source_name] = content
        return source_name

    def excerpt(self, span: Span | SequentialSpan | None) -> list[str]:
        """The line that a span begins on and a line that marks it; empty if its text is unknown."""
        if not isinstance(span, Span):
            return []
        texts = {source.name: text for source, text in self.source_map.items()}
        lines = texts.get(span.source_name.name, "").split("\n")
        if not 1 <= span.line <= len(lines):
            return []
        shown = lines[span.line - 1]
        end = span.end_column if span.end_line == span.line else len(shown) + 1
        return [shown, " " * (span.column - 1) + "^" * max(1, end - span.column)]


class SequentialSpan(Node):
    """Several stretches that one node was made from."""

    spans: tuple[Span, ...] = leaf(convert=tuple)
