"""Expected texts in files of their own, which `pytest --update-golden` writes anew.

def test_text_of_a_loop(golden: Golden) -> None:
    golden("loop.c", library.get_source())        # goldens/loop.c beside the test
"""

from __future__ import annotations

from dataclasses import dataclass
from difflib import unified_diff
from pathlib import Path

import pytest


@dataclass(frozen=True)
class Golden:
    """Compares texts with the files of one folder, or writes them."""

    folder: Path
    is_updating: bool

    def __call__(self, name: str | Path, text: str) -> None:
        """Fail unless a text is that of a file; an absolute path is taken as it is."""
        path = self.folder / name
        if self.is_updating:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf8")
        wanted = path.read_text(encoding="utf8") if path.exists() else ""
        sides = [side.splitlines() for side in (wanted, text)]
        if lines := list(unified_diff(*sides, str(name), "found", lineterm="", n=2)):
            shown = "\n".join(lines)
            pytest.fail(f"{shown}\nif that is meant: pytest --update-golden", pytrace=False)
