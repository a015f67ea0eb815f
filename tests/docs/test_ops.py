"""docs/ops.md says what the operators' records hold."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from tests.golden import Golden

TOOL = Path(__file__).resolve().parents[2] / "tools" / "ops.py"


def test_table_of_operators_is_up_to_date(golden: Golden) -> None:
    spec = importlib.util.spec_from_file_location("ops", TOOL)
    assert spec is not None and spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    golden(tool.PAGE, tool.page())
