"""What a tuner calls after each batch: logs, a line of progress, statistics."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tvm.autotvm import record
from tvm.autotvm.tuner.progress_bar import ProgressBar
from tvm.support.files import append_lines

Callback = Callable[[Any, Sequence[Any], Sequence[Any]], None]


def log_to_file(file_out: Any, protocol: str = "json") -> Callback:
    """Append each record to a log.

    Parameters
    ----------
    file_out : str, Path or file
        The log.
    protocol : str
        "json" or "pickle".
    """

    def write(tuner: Any, inputs: Sequence[Any], results: Sequence[Any]) -> None:
        rows = zip(inputs, results, strict=True)
        lines = "".join([f"{record.encode(inp, res, protocol)}\n" for inp, res in rows])
        if isinstance(file_out, (str, Path)):
            append_lines(file_out, lines)
        else:
            file_out.write(lines)

    if isinstance(file_out, (str, Path)):
        Path(file_out).resolve().parent.mkdir(parents=True, exist_ok=True)
    return write


def log_to_database(db: Any) -> Callback:
    """Save each record in a database.

    Parameters
    ----------
    db : tvm.autotvm.database.Database
        The database.
    """

    def save(tuner: Any, inputs: Sequence[Any], results: Sequence[Any]) -> None:
        for inp, res in zip(inputs, results, strict=True):
            db.save(inp, res)

    return save


class Monitor:
    """Collects scores and times of all trials."""

    def __init__(self) -> None:
        self.scores: list[float] = []
        self.timestamps: list[float] = []

    def __call__(self, tuner: Any, inputs: Sequence[Any], results: Sequence[Any]) -> None:
        for inp, res in zip(inputs, results, strict=True):
            is_good = res.error_no == 0
            self.scores.append(inp.task.flop / np.mean(res.costs) if is_good else 0.0)
            self.timestamps.append(res.timestamp)

    def reset(self) -> None:
        """Forget everything."""
        self.scores = []
        self.timestamps = []

    def trial_scores(self) -> np.ndarray[Any, Any]:
        """Operations a second of each trial; 0 for failures."""
        return np.array(self.scores)

    def trial_timestamps(self) -> np.ndarray[Any, Any]:
        """The time at the end of each trial, in seconds since the epoch."""
        return np.array(self.timestamps)


def progress_bar(
    total: int, prefix: str = "", si_prefix: str = "G", seconds: float | None = None
) -> Callback:
    """Show how far a tuner is, and the fastest so far, in one line of the terminal.

    Parameters
    ----------
    total : int
        The number of trials.
    prefix : str
        A text before.
    si_prefix : str
        In which unit operations a second are shown.
    seconds : float, optional
        When these have passed the tuner ends.
    """
    return ProgressBar(total, prefix, si_prefix, seconds=seconds)
