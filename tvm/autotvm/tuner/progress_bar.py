"""The line of a terminal or a notebook that tells how far a tuner is, how fast its best candidate is, and what failed.

[Task  1/ 3] ━━━━━━━━━━━╺━━━━━━━━━━ 96/256 best 103.18 GFLOPS, last 97.40, 2 run_timeout 0:00:41
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from tvm import knobs
from tvm.autotvm.measure.interface import MeasureErrorNo
from tvm.autotvm.utils import format_si_prefix
from tvm.support.notebook_line import NotebookLine, in_notebook

logger = logging.getLogger("autotvm")


class ProgressBar:
    """A callback of tuners; shows nothing outside terminals and notebooks, or where each trial is logged.

    Parameters
    ----------
    total : int
        The number of trials.
    prefix : str
        A text before.
    si_prefix : str
        In which unit operations a second are shown.
    console : rich.console.Console, optional
        Where it is shown; by default standard error.
    seconds : float, optional
        When these have passed the tuner ends, also before ``total``.

    Attributes
    ----------
    failures : Counter
        How many candidates failed, by the kind of failure.
    """

    def __init__(
        self,
        total: int,
        prefix: str = "",
        si_prefix: str = "G",
        console: Any = None,
        seconds: float | None = None,
    ) -> None:
        format_si_prefix(0, si_prefix)
        self.total = total
        self.prefix = prefix
        self.si_prefix = si_prefix
        self.best = 0.0
        self.failures: Counter[str] = Counter()
        self._done = 0
        self._started = time.monotonic()
        self._seconds = float("inf") if seconds is None else seconds
        self._console = console
        self._bar: Any = None  # rich's, once it is shown
        self._notebook: NotebookLine | None = None
        self._is_shown: bool | None = None  # not known before the first trial

    def __call__(self, tuner: Any, inputs: Sequence[Any], results: Sequence[Any]) -> None:
        current = 0.0
        for inp, res in zip(inputs, results, strict=True):
            if res.error_no == 0:
                current = inp.task.flop / np.mean(res.costs)
            else:
                self.note_failure(res.error_no)
        self.show(len(inputs), current, tuner.best_flops)

    def note_failure(self, kind: int) -> None:
        """Count a candidate that failed.

        Parameters
        ----------
        kind : int
            A :class:`MeasureErrorNo`.
        """
        self.failures[MeasureErrorNo(kind).name.lower()] += 1

    def describe(self, prefix: str) -> None:
        """Show another text before the bar.

        Parameters
        ----------
        prefix : str
            The text.
        """
        self.prefix = prefix
        if self._is_shown:
            from rich.markup import escape

            self._bar.update(self._bar.task_ids[0], prefix=escape(prefix.strip()))

    def show(self, trials: int, current: float, best: float) -> None:
        """Go on by so many trials.

        Parameters
        ----------
        trials : int
            How many there were.
        current, best : float
            Operations a second of the last one, and of the fastest so far.
        """
        self.best = max(self.best, current, best)
        self._done += trials
        if self._is_shown is None:
            self._is_shown = self._start()
        if self._is_shown:
            self._bar.update(
                self._bar.task_ids[0], advance=trials, best=self._flops(self.best),
                current=self._flops(current), failed=self._failed(), left=self._left(),
                refresh=True,
            )  # fmt: skip
            if self._notebook is not None:
                self._notebook.show(self._bar.get_renderable())

    def close(self) -> None:
        """Leave the line as it is; the tuner has ended."""
        if self._bar is not None:
            if self._notebook is None:
                self._bar.stop()
            self._bar, self._is_shown, self._notebook = None, None, None

    def _failed(self) -> str:
        return "".join([f", {count} {kind}" for kind, count in self.failures.most_common()])

    def _left(self) -> str:
        """How long it will take: until all trials are done, or the time is up."""
        passed = time.monotonic() - self._started
        trials = (self.total - self._done) * passed / max(self._done, 1)
        left = max(round(min(trials, self._seconds - passed)), 0)
        return f"{left // 3600}:{left // 60 % 60:02d}:{left % 60:02d}"

    def _flops(self, value: float) -> str:
        return f"{format_si_prefix(value, self.si_prefix):.2f}"

    def _start(self) -> bool:
        if knobs.QUIET.value or logger.isEnabledFor(logging.DEBUG):
            return False
        # rich takes longer to import than many a candidate to measure
        from rich.console import Console
        from rich.markup import escape
        from rich.progress import BarColumn, MofNCompleteColumn, Progress

        console = self._console or Console(stderr=True, force_jupyter=False)
        if self._console is None and in_notebook():
            self._notebook = NotebookLine()
        elif not console.is_terminal:
            return False
        speed = (
            "best {task.fields[best]} "
            + f"{self.si_prefix}FLOPS"
            + ", last {task.fields[current]}{task.fields[failed]}"
        )
        self._bar = Progress(
            "{task.fields[prefix]}", BarColumn(), MofNCompleteColumn(), speed,
            "{task.fields[left]}", console=console, auto_refresh=False,
        )  # fmt: skip
        if self._notebook is None:
            self._bar.start()
        self._bar.add_task(
            "", total=self.total, prefix=escape(self.prefix.strip()), best="0.00", current="0.00",
            failed="", left="",
        )  # fmt: skip
        return True
