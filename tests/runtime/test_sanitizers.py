"""The native tests, with the sanitizers of the compiler watching."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.system_tools import needs_tool
from tools.sanitize import SANITIZERS, build_and_run


@needs_tool("g++")
@pytest.mark.slow
@pytest.mark.parametrize("sanitizer", SANITIZERS)
def test_native_tests_run_clean(sanitizer: str, tmp_path: Path) -> None:
    done = build_and_run(sanitizer, tmp_path / "build")
    assert done.returncode == 0 and ", 0 failed" in done.stdout, done.stdout + done.stderr
