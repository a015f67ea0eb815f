"""Measuring candidates in small batches, and remembering the fastest of each workload."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from typing import Any

from tvm.autotvm.tuner.progress_bar import ProgressBar
from tvm.runtime.object import Object

from .builder import ProgramBuilder
from .measure_record import MeasureCallback
from .measure_types import MeasureErrorNo, MeasureInput, MeasureResult
from .runner import ProgramRunner
from .state_object import StateObject

logger = logging.getLogger("auto_scheduler")

_MOST_FAILURES = 150  # in a row


class ProgramMeasurer(Object):
    """Measures candidates, and remembers the fastest of each workload.

    Parameters
    ----------
    builder : ProgramBuilder
        Builds them.
    runner : ProgramRunner
        Runs them.
    callbacks : list of MeasureCallback
        Called with each batch of outcomes.
    verbose : int
        0 is silent.
    max_continuous_error : int, optional
        After so many failures in a row a warning tells the last one; 150 by default.
    deadline : float
        When to stop, on the monotonic clock.
    """

    def __init__(
        self,
        builder: ProgramBuilder,
        runner: ProgramRunner,
        callbacks: Sequence[MeasureCallback],
        verbose: int,
        max_continuous_error: int | None = None,
        deadline: float = float("inf"),
    ) -> None:
        self.builder = builder
        self.runner = runner
        self.callbacks = list(callbacks)
        self.verbose = verbose
        self.max_continuous_error = max_continuous_error or _MOST_FAILURES
        self.deadline = deadline
        self.ct = 0
        self.error_ct = 0
        self.best_flops: dict[str, float] = {}
        self.best_state: dict[str, StateObject] = {}
        self.best_ct: dict[str, int] = {}
        self.progress: ProgressBar | None = None

    def measure(
        self, task: Any, policy: Any, inputs: Sequence[MeasureInput]
    ) -> list[MeasureResult]:
        """Measure candidates of a task; fewer, if the time is up.

        Batches are small, so that what is measured is kept whenever the search is stopped.
        """
        results: list[MeasureResult] = []
        size = max(2 * self.builder.n_parallel, 1)
        for first in range(0, len(inputs), size):
            if time.monotonic() >= self.deadline:
                break
            batch = list(inputs[first : first + size])
            built = self.builder.build(batch, self.verbose)
            found = self.runner.run(batch, built, self.verbose)
            for inp, res in zip(batch, found, strict=True):
                self._note(task, inp, res)
            for callback in self.callbacks:
                callback.callback(policy, batch, found)
            results.extend(found)
        return results

    def _note(self, task: Any, inp: MeasureInput, res: MeasureResult) -> None:
        key = task.workload_key
        self.ct += 1
        flops = 0.0
        if res.error_no == MeasureErrorNo.NO_ERROR:
            self.error_ct = 0
            flops = task.compute_dag.flop_ct / max(res.seconds, 1e-30)
            if flops > self.best_flops.get(key, -1.0):
                self.best_flops[key] = flops
                self.best_state[key] = inp.state
                self.best_ct[key] = self.ct
        else:
            self.error_ct += 1
            if self.progress is not None:
                self.progress.note_failure(res.error_no)
            logger.debug("%s: %s", MeasureErrorNo(res.error_no).name, res.error_msg)
        if self.error_ct == self.max_continuous_error:
            logger.warning(
                "Too many errors happened during tuning: %d in a row, the last one: %s",
                self.error_ct, res.error_msg,
            )  # fmt: skip
        if self.progress is not None:
            self.progress.show(1, flops, self.best_flops.get(key, 0.0))
