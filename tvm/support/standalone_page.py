"""Pages of HTML that need no other file and no network.

What a page carries is compressed and written in base64, so that no name of a model can end a script or
begin one; a policy forbids the page to load or to send anything.
"""

from __future__ import annotations

import base64
import gzip
from collections.abc import Sequence
from html import escape

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"


def standalone_page(
    title: str, style: str, body: str, scripts: Sequence[str] = (), record: bytes | None = None
) -> str:
    """A page.

    Parameters
    ----------
    title : str
        Its title, as plain text.
    style : str
        Its style sheet.
    body : str
        HTML, in which texts are escaped.
    scripts : list of str
        Scripts of ours, one behind the other.
    record : bytes, optional
        What the scripts read from the element ``record``, as :func:`compressed` writes it.
    """
    carried = (
        ""
        if record is None
        else f'<script type="application/gzip" id="record">{compressed(record)}</script>\n'
    )
    code = "".join([f"<script>\n{script}</script>\n" for script in scripts])
    return f"""<!DOCTYPE html>
<html lang="en">
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title>
<style>{style}</style>
{body}
{carried}{code}</html>
"""


def compressed(content: bytes) -> str:
    """Content as gzip in base64, the same text each time."""
    return base64.b64encode(gzip.compress(content, mtime=0)).decode()
