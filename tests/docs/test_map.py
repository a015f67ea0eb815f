"""docs/map.md names what is there, and every package."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/map.md").read_text(encoding="utf8")
PATHS = re.findall(r"`((?:tvm|native|tests|tools|docs|benchmarks|topi)/[\w./]*)`", PAGE)


def test_every_path_on_the_map_exists() -> None:
    assert [path for path in PATHS if not (ROOT / path).exists()] == []


def test_every_page_is_on_the_map() -> None:
    assert {f"docs/{path.name}" for path in ROOT.glob("docs/*.md")} - set(PATHS) == {"docs/map.md"}


def test_every_package_is_on_the_map() -> None:
    packages = {f"tvm/{path.parent.name}/" for path in ROOT.glob("tvm/*/__init__.py")}
    assert packages - set(PATHS) == set()
