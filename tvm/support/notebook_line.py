"""A line in a notebook that is written again and again: how far a long work is.

line = NotebookLine()
line.show(text)      # what rich can render; the second time in the place of the first
line.clear()
"""

from __future__ import annotations

import sys
from io import StringIO
from typing import Any

_COLUMNS = 110
_FORMAT = '<pre style="white-space: pre; margin: 0">{code}</pre>'


def in_notebook() -> bool:
    """Whether a kernel of Jupyter runs this program."""
    return "ipykernel" in sys.modules


class NotebookLine:
    """Needs no widgets: the output of the cell is updated."""

    def __init__(self) -> None:
        self._handle: Any = None  # IPython's, once something is shown

    def show(self, content: Any) -> None:
        """Show what rich can render, instead of what was shown before."""
        from IPython.display import HTML, display

        html = HTML(as_html(content))
        if self._handle is None:
            self._handle = display(html, display_id=True)
        else:
            self._handle.update(html)

    def clear(self) -> None:
        """Show nothing any more."""
        if self._handle is not None:
            self.show("")


def as_html(content: Any) -> str:
    """What rich renders, in colour, as an element ``pre`` that needs no style sheet."""
    # rich takes longer to import than most works last
    from rich.console import Console

    console = Console(
        file=StringIO(), record=True, width=_COLUMNS, force_terminal=True, force_jupyter=False,
        color_system="truecolor",
    )  # fmt: skip
    console.print(content)
    return console.export_html(inline_styles=True, code_format=_FORMAT).strip()
