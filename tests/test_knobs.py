"""Every environment variable that is read is listed, in `tvm.knobs` and in docs/knobs.md."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from tvm.knobs import KNOBS

ROOT = Path(__file__).resolve().parents[1]


def printed(code: list[str]) -> str:
    environment = {name: value for name, value in os.environ.items() if name not in KNOBS}
    environment["TVM_QUIET"] = "1"
    done = subprocess.run(
        [sys.executable, *code], capture_output=True, text=True, check=True, env=environment
    )
    return done.stdout


def test_the_page_has_the_table_of_all_knobs() -> None:
    page = (ROOT / "docs/knobs.md").read_text(encoding="utf8")
    table = printed(["-c", "from tvm import knobs; print(knobs.table())"])
    assert table in page, "write into docs/knobs.md what knobs.table() gives"


def test_variables_that_the_runtime_reads_are_knobs() -> None:
    found = set()
    for path in [*ROOT.glob("native/src/**/*.cc"), *ROOT.glob("native/src/**/*.h")]:
        text = path.read_text(encoding="utf8")
        if "getenv(" in text:
            named = re.findall(r'"([A-Z][A-Z0-9]*_[A-Z0-9_]+)"', text)
            assert named, path
            found.update(named)
    assert "TVM_NUM_THREADS" in found and found <= set(KNOBS)


def test_nothing_else_reads_the_environment() -> None:
    readers = [
        path.relative_to(ROOT).as_posix()
        for path in ROOT.glob("tvm/**/*.py")
        if re.search(r"os\.(environ|getenv)\b(?!`)", path.read_text(encoding="utf8"))
    ]
    assert readers == ["tvm/knobs.py"]


def test_a_program_lists_values_and_meanings() -> None:
    rows = printed(["-m", "tvm.exec.knobs"]).splitlines()
    assert [row.split()[0] for row in rows] == sorted(KNOBS)
    assert next(row for row in rows if row.startswith("TVM_QUIET")).split()[1] == "1"
