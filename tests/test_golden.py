"""Expected texts in files."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.golden import Golden


def test_a_text_is_compared_with_its_file(tmp_path: Path) -> None:
    (tmp_path / "loop.txt").write_text("for i\n  store A\n")
    golden = Golden(tmp_path, is_updating=False)
    golden("loop.txt", "for i\n  store A\n")
    with pytest.raises(pytest.fail.Exception) as failure:
        golden("loop.txt", "for i\n  store B\n")
    assert "-  store A" in str(failure.value) and "+  store B" in str(failure.value)
    assert "--update-golden" in str(failure.value)


def test_a_text_without_a_file_fails(tmp_path: Path) -> None:
    with pytest.raises(pytest.fail.Exception, match="--update-golden"):
        Golden(tmp_path, is_updating=False)("loop.txt", "for i\n")


def test_files_are_written_anew(tmp_path: Path) -> None:
    Golden(tmp_path / "goldens", is_updating=True)("loop.txt", "for i\n")
    Golden(tmp_path / "goldens", is_updating=False)("loop.txt", "for i\n")
