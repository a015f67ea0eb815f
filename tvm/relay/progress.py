"""One line that tells what a long build is doing, on terminals only."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

A = TypeVar("A")
B = TypeVar("B")
QUIET_SECONDS = 2.0


class Progress:
    """Shows the step under way once the build takes longer than two seconds."""

    def __init__(self) -> None:
        self._started = time.monotonic()
        self._is_terminal = sys.stderr.isatty()
        self._shown = 0

    def __call__(self, text: str) -> None:
        """Say what happens now."""
        if not self._is_terminal or time.monotonic() - self._started < QUIET_SECONDS:
            return
        line = f"[{time.monotonic() - self._started:5.1f} s] {text}"
        sys.stderr.write("\r" + line.ljust(self._shown))
        sys.stderr.flush()
        self._shown = len(line)

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
        if self._shown:
            sys.stderr.write("\r" + " " * self._shown + "\r")
            sys.stderr.flush()


@contextmanager
def progress() -> Iterator[Progress]:
    """A progress line for one build."""
    step = Progress()
    try:
        yield step
    finally:
        step.close()
