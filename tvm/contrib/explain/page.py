"""The page that shows a report: its record, and the scripts that draw it."""

from __future__ import annotations

import os
from pathlib import Path

from tvm.support.files import write_text
from tvm.support.standalone_page import standalone_page

from .record import Report

_ASSETS = Path(__file__).parent / "assets"
_STYLE = "page.css"
_SCRIPTS = ("base.js", "graph.js", "kernels.js", "charts.js", "main.js")
_BODY = "<body><noscript>This page needs JavaScript; it loads nothing.</noscript></body>"


def page(report: Report) -> str:
    """The report as one page of HTML that needs no other file.

    Parameters
    ----------
    report : Report
        What `explain` gave.
    """
    style, *scripts = [(_ASSETS / name).read_text(encoding="utf8") for name in (_STYLE, *_SCRIPTS)]
    record = report.to_json().encode()
    return standalone_page(f"{report.model}: tvmc explain", style, _BODY, scripts, record)


def write_page(report: Report, path: str | os.PathLike[str]) -> None:
    """Write the page to a file.

    Parameters
    ----------
    report : Report
        What `explain` gave.
    path : str or Path
        The file.
    """
    write_text(path, page(report))
