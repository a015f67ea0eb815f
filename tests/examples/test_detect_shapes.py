"""The detector of examples/detect_shapes.py learns, and its compiled form sees what PyTorch sees."""

from __future__ import annotations

import re
import runpy
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parents[2] / "examples" / "detect_shapes.py"


def test_shapes_are_found(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", [str(PROGRAM), "--steps", "100", "--frames", "10"])
    with pytest.raises(SystemExit) as done:
        runpy.run_path(str(PROGRAM), run_name="__main__")
    printed = capsys.readouterr().out
    assert done.value.code == 0, printed
    found = re.search(r"found (\d+) of 30 shapes with (\d+) boxes", printed)
    assert found is not None and int(found[1]) >= 15 and int(found[2]) <= 40, printed
