"""Tests that need programs of the system are skipped by name, and counted at the end of a run."""

from __future__ import annotations

import pytest

from tests.system_tools import needs_tool, what_was_not_covered


def test_a_missing_tool_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    mark = needs_tool("no-such-gcc", "sh", "no-such-qemu").mark
    assert mark.args == (True,)
    assert mark.kwargs["reason"].startswith("needs no-such-gcc and no-such-qemu, see ")


def test_what_is_there_is_tested() -> None:
    assert needs_tool("sh").mark.args == (False,)


def test_nothing_is_skipped_where_ci_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    assert needs_tool("no-such-gcc").mark.args == (False,)


def test_the_last_line_counts_tests_by_what_they_need(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    clang, qemu = [
        f"Skipped: {needs_tool(name).mark.kwargs['reason']}" for name in ("clang-0", "qemu-0")
    ]
    line = what_was_not_covered([qemu, clang, clang, "Skipped: flaky"])
    assert line.startswith("not covered here: clang-0 (2 tests), qemu-0 (1 test);")
    assert what_was_not_covered(["Skipped: flaky"]) == ""


def test_what_no_package_brings_has_a_line_of_its_own() -> None:
    assert what_was_not_covered(["Skipped: needs rustc"]) == "not run for want of rustc: 1 test"
