"""The programs in the how-to pages run."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"


def programs(page: str) -> str:
    """All Python of a page, one behind the other."""
    text = (DOCS / page).read_text()
    return "\n".join(re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE))


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        ("add_operator.md", "my.cubed.long"),
        ("models_in_c.md", "0."),
        ("devices.md", "2048.0"),
        ("tuning.md", "largest difference True"),
    ],
)
def test_programs_of_a_page_run(page: str, expected: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", programs(page)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={"PYTHONPATH": str(DOCS.parent), "PATH": "/usr/bin:/bin"},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert expected in done.stdout
