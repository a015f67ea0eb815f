"""All tests run with the node kernel in check mode: nodes cannot be changed once built."""

from collections.abc import Generator

import pytest

from tests.system_tools import what_was_not_covered
from tvm.ir.node import check_nodes

check_nodes()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter,
) -> Generator[None, None, None]:
    """Close with what this machine could not test."""
    yield
    skipped = terminalreporter.stats.get("skipped", [])
    reasons = [report.longrepr[2] for report in skipped if isinstance(report.longrepr, tuple)]
    if line := what_was_not_covered(reasons):
        terminalreporter.write_line(line, yellow=True)
