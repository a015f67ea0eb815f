"""The reference has every public package, and public docstrings get no worse."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parents[2]


@cache
def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("public_api", ROOT / "tools" / "public_api.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_each_public_package_is_on_one_page_of_the_reference() -> None:
    pages = [path.read_text() for path in sorted((ROOT / "docs" / "api").glob("*.rst"))]
    listed = re.findall(r"^\.\. public-api:: (\S+)$", "\n".join(pages), re.MULTILINE)
    assert sorted(listed) == sorted(tool().PACKAGES)


def test_docstrings_lack_what_the_list_says_and_no_more() -> None:
    # in a process of its own: other tests change what modules have
    command = [sys.executable, str(ROOT / "tools" / "public_api.py")]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
