"""One line that tells what a long build is doing and how long it will take, on terminals and in notebooks."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, TypeVar

from tvm import knobs
from tvm.support import Scoped
from tvm.support.notebook_line import NotebookLine, in_notebook

A = TypeVar("A")
B = TypeVar("B")
QUIET_SECONDS = 2.0
NOTEBOOK_SECONDS = 0.1  # between two updates of a notebook, which are messages

# the share of a build's time that has passed when a phase begins; measured on models without a cache
OPTIMIZING, LOWERING, COMPILING = 0.0, 0.25, 0.45


class Line:
    """A line of the terminal or the notebook, shown once a build takes longer than two seconds."""

    def __init__(self) -> None:
        self._started = time.monotonic()
        self._is_terminal = sys.stderr.isatty() and not knobs.QUIET.value
        self._notebook = NotebookLine() if in_notebook() and not knobs.QUIET.value else None
        self._updated = float("-inf")
        self._status: Any = None  # rich's line, once it is shown

    def show(self, content: Progress) -> None:
        """Show that from now on."""
        now = time.monotonic()
        if now - self._started < QUIET_SECONDS:
            return
        if self._notebook is not None:
            if now - self._updated >= NOTEBOOK_SECONDS:
                self._updated = now
                self._notebook.show(content)
            return
        if not self._is_terminal:
            return
        if self._status is None:
            self._status = _status_line(content)
            self._status.start()
        self._status.update(content)

    def close(self) -> None:
        """Remove the line."""
        if self._notebook is not None:
            self._notebook.clear()
        if self._status is not None:
            self._status.stop()


class Progress:
    """What one build is doing.

    Parameters
    ----------
    line : Line
        Where it is shown.
    title : str
        What the build belongs to.
    """

    def __init__(self, line: Line, title: str = "") -> None:
        self.line = line
        self.title = title
        self._text: str | Callable[[], str] = ""
        self._started = time.monotonic()
        self._expected: float | None = None  # seconds of the whole build

    def __call__(self, text: str | Callable[[], str], done: float | None = None) -> None:
        """Say what happens now, and the share of the time that has passed, if that is known.

        A text that takes time to make is a function: it is called if the line is shown.
        """
        self._text = text
        if done:
            self._expected = (time.monotonic() - self._started) / done
        self.line.show(self)

    @property
    def text(self) -> str:
        """What happens now."""
        return self._text if isinstance(self._text, str) else self._text()

    def counting(
        self, text: str, f: Callable[[A], B], total: int, describe: Callable[[A], str]
    ) -> Callable[[A], B]:
        """`f` for the lowering of kernels, telling which of how many it works on."""
        count = 0

        def counted(value: A) -> B:
            nonlocal count
            count += 1
            share = LOWERING + (COMPILING - LOWERING) * (count - 1) / max(total, 1)
            begin = f"{text} {count} of {total}"
            self(cache(lambda: f"{begin}: {describe(value)}"), share)
            return f(value)

        return counted

    def describe(self) -> str:
        """The line as it is now."""
        elapsed = time.monotonic() - self._started
        parts = [part for part in (self.title, self.text) if part]
        times = f"{elapsed:.0f} s"
        if self._expected is not None:
            left = max(self._expected - elapsed, 0.0)
            times += f", about {left:.0f} s left" if left >= 1 else ", nearly done"
        # first, as the end of the line may not fit
        return f"[{times}] {': '.join(parts)}"

    def __rich__(self) -> Any:
        # the text is asked for again whenever the line is redrawn
        from rich.text import Text

        return Text(self.describe(), overflow="ellipsis", no_wrap=True)


def _status_line(content: Progress) -> Any:
    # rich takes longer to import than most builds last
    from rich.console import Console

    return Console(stderr=True).status(content)


_CURRENT: Scoped[Progress] = Scoped("Progress")


@contextmanager
def progress() -> Iterator[Progress]:
    """The progress of one build; inside of another, both are told in one line."""
    outer = _CURRENT.current()
    if outer is None:
        step = Progress(Line())
    else:
        step = Progress(outer.line, ": ".join([t for t in (outer.title, outer.text) if t]))
    try:
        with _CURRENT.scope(step):
            yield step
    finally:
        if outer is None:
            step.line.close()
        else:
            outer.line.show(outer)
