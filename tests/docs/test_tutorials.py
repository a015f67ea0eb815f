"""The tutorials run to their ends, and what they assert holds.

Those that tune start many processes; they run when the site is built.
"""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "tutorials"
TUTORIALS = sorted(path for path in FOLDER.glob("*.py") if "_tuning_" not in path.name)


@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_tutorial_runs(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    runpy.run_path(str(path))
    assert capsys.readouterr().out
