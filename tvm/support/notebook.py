"""Tables in notebooks: HTML whose text is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape


def table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table as HTML.

    Parameters
    ----------
    columns : sequence of str
        The titles.
    rows : iterable of sequences
        Their cells; numbers are aligned to the right.
    """
    head = "".join([f"<th>{escape(column)}</th>" for column in columns])
    body = "".join([f"<tr>{''.join([_cell(value) for value in row])}</tr>" for row in rows])
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(value: object) -> str:
    """One cell."""
    if isinstance(value, (int, float)):
        return f'<td style="text-align: right">{value:,}</td>'
    return f'<td style="text-align: left">{escape(str(value))}</td>'
