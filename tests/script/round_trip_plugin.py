"""Every loop-level program that the tests of a run make is printed and read back: both are to be equal.

usage: python -m pytest -p tests.script.round_trip_plugin tests/tir tests/te

Programs are those that go through a pass, are printed, or are compared with others. What differs is told at the end, with
the test that made it, and the run fails.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from functools import wraps
from typing import Any

import pytest

from tvm.ir import IRModule, extension, structural
from tvm.ir.transform import Pass
from tvm.script import from_source
from tvm.tir import PrimFunc

SHOWN = 40  # of the failures


class Collector:
    """The programs that the test at hand makes, and what has been found so far."""

    def __init__(self) -> None:
        self.programs: dict[int, PrimFunc | IRModule] = {}
        self.checked = 0
        self.failures: dict[str, list[str]] = {}
        self.is_checking = False

    def note(self, value: Any) -> None:
        """Keep a program to check when the test is over."""
        if self.is_checking:
            return
        if isinstance(value, IRModule):
            parts = list(value.functions.values())
            if parts and all([isinstance(part, PrimFunc) for part in parts]):
                self.programs.setdefault(id(value), value)
                return
            for part in parts:
                self.note(part)
        elif isinstance(value, PrimFunc):
            self.programs.setdefault(id(value), value)

    def check(self, test: str) -> None:
        """Print and read what has been kept."""
        programs, self.programs, self.is_checking = [*self.programs.values()], {}, True
        try:
            for program in programs:
                self.checked += 1
                if reason := difference(program):
                    self.failures.setdefault(reason, []).append(test)
        finally:
            self.is_checking = False


def difference(program: PrimFunc | IRModule) -> str:
    """Why the text of a program does not stand for it, or nothing."""
    try:
        again = from_source(program.script(show_meta=True))
        structural.assert_structural_equal(program, again)
    except Exception as error:
        lines = str(error).strip().splitlines() or [""]
        marked = [line.strip() for line in lines if "^^" in line or line.strip().startswith("|")]
        place = [lines[at - 1].strip() for at, line in enumerate(lines) if "^^" in line][:2]
        return (
            f"{type(error).__name__}: {lines[0][:300]} {' / '.join(place)[:300] if marked else ''}"
        )
    return ""


COLLECTOR = Collector()


def noting(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, whose arguments and result are noted."""

    @wraps(function)
    def noted(*args: Any, **kwargs: Any) -> Any:
        result = function(*args, **kwargs)
        for value in (*args, result):
            COLLECTOR.note(value)
        return result

    return noted


def pytest_configure(config: pytest.Config) -> None:
    """Listen where programs come by."""
    assert extension.script.function is not None
    extension.script.function = noting(extension.script.function)
    Pass.__call__ = noting(Pass.__call__)  # type: ignore[method-assign]
    structural._compare = noting(structural._compare)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    """Check what the test has made, even if it fails."""
    try:
        yield
    finally:
        COLLECTOR.check(item.nodeid)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A program that its text does not stand for fails the run."""
    if COLLECTOR.failures and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Tell what differs, the most frequent first."""
    failures = sorted(COLLECTOR.failures.items(), key=lambda found: -len(found[1]))
    failed = sum([len(tests) for _, tests in failures])
    terminalreporter.write_line(f"{COLLECTOR.checked} programs printed and read, {failed} differ")
    for reason, tests in failures[:SHOWN]:
        terminalreporter.write_line(f"{len(tests):5} {reason}\n      {tests[0]}")
