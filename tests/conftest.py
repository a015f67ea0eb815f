"""All tests run with the node kernel in check mode: nodes cannot be changed once built."""

import gc
import signal
from collections.abc import Generator

import hypothesis
import pytest

from tests.golden import Golden
from tests.system_tools import what_was_not_covered
from tvm.ir.node import check_nodes

check_nodes()
# how long an example takes says nothing on machines that others use too
hypothesis.settings.register_profile("suite", deadline=None)
hypothesis.settings.load_profile("suite")
# shells start background jobs with interrupts ignored, and so would be the programs that tests interrupt
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write expected texts anew")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    """Compares a text with a file of `goldens/` beside the test."""
    return Golden(request.path.parent / "goldens", request.config.getoption("--update-golden"))


def pytest_collection_finish() -> None:
    """What imports and collected tests have made stays: no collection of garbage goes through it.

    Those of the rest are as rare as while the package compiles: programs make many small objects.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


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
