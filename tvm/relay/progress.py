"""One line that tells what a long build is doing, on terminals only."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from tvm import knobs

A = TypeVar("A")
B = TypeVar("B")
QUIET_SECONDS = 2.0


class Progress:
    """Shows the step under way once the build takes longer than two seconds."""

    def __init__(self) -> None:
        self._started = time.monotonic()
        self._is_terminal = sys.stderr.isatty() and not knobs.QUIET.value
        self._status: Any = None  # rich's line, once it is shown

    def __call__(self, text: str) -> None:
        """Say what happens now."""
        elapsed = time.monotonic() - self._started
        if not self._is_terminal or elapsed < QUIET_SECONDS:
            return
        if self._status is None:
            self._status = _status_line()
            self._status.start()
        self._status.update(f"{text} ({elapsed:.0f} s)")

    def counting(self, text: str, f: Callable[[A], B]) -> Callable[[A], B]:
        """`f`, telling how often it was called."""
        count = 0

        def counted(value: A) -> B:
            nonlocal count
            count += 1
            self(f"{text}: {count}")
            return f(value)

        return counted

    def close(self) -> None:
        """Remove the line."""
        if self._status is not None:
            self._status.stop()


def _status_line() -> Any:
    # rich takes longer to import than most builds last
    from rich.console import Console

    return Console(stderr=True).status("")


@contextmanager
def progress() -> Iterator[Progress]:
    """A progress line for one build."""
    step = Progress()
    try:
        yield step
    finally:
        step.close()
