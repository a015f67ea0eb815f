"""All tests run with the node kernel in check mode: nodes cannot be changed once built."""

import pytest

from tests.system_tools import what_was_not_covered
from tvm.ir.node import check_nodes

check_nodes()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Close with what this machine could not test."""
    skipped = terminalreporter.stats.get("skipped", [])
    reasons = [report.longrepr[2] for report in skipped if isinstance(report.longrepr, tuple)]
    if line := what_was_not_covered(reasons):
        terminalreporter.write_line(line, yellow=True)
