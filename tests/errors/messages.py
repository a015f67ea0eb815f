"""What every rejection has to look like."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

_INTERNAL = re.compile(r"\.py\b|\.cc\b|Check failed|Traceback|site-packages|assert ")


def rejection(program: Callable[[], Any], kind: type[Exception] = Exception) -> str:
    """The text with which a program is rejected; it names no internal file."""
    with pytest.raises(kind) as info:
        program()
    text = str(info.value)
    assert text and not _INTERNAL.search(text), text
    return text


def assert_rejected(
    program: Callable[[], Any], first_line: str, *more: str, kind: type[Exception] = Exception
) -> None:
    """The first line is ``first_line``; all of ``more`` (place, hint) stands below."""
    text = rejection(program, kind)
    assert text.splitlines()[0] == first_line
    for part in more:
        assert part in text, text
