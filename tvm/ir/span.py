"""Where in the user's source text a node comes from."""

from __future__ import annotations

from .node import Node, leaf


class SourceName(Node):
    """The name of a source text: a file, or what made the program."""

    name: str


def _as_source_name(source: SourceName | str) -> SourceName:
    return source if isinstance(source, SourceName) else SourceName(source)


class Span(Node):
    """A stretch of source text."""

    source_name: SourceName = leaf(convert=_as_source_name)
    line: int
    end_line: int
    column: int
    end_column: int


class SequentialSpan(Node):
    """Several stretches that one node was made from."""

    spans: tuple[Span, ...] = leaf(convert=tuple)
