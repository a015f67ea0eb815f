"""Measuring candidates in rounds until trials, time, or candidates come to an end."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Sequence
from typing import Any

from tvm.autotvm.tuner.progress_bar import ProgressBar
from tvm.error import TVMError
from tvm.runtime.object import Object

from .measure import LocalBuilder, LocalRunner, ProgramBuilder, ProgramMeasurer, ProgramRunner
from .measure_record import MeasureCallback, RecordToFile
from .measure_types import MeasureErrorNo
from .search_policy import SearchPolicy
from .state_object import StateObject
from .untuned import note_untuned

logger = logging.getLogger("auto_scheduler")


class TuningOptions(Object):
    """How much is measured, and how.

    Parameters
    ----------
    num_measure_trials : int
        How many candidates at most; with 0 the search is not run, and the program stays as written.
    early_stopping : int, optional
        Stop when so many trials have brought nothing faster.
    num_measures_per_round : int
        Between updates of the cost model so many are measured.
    verbose : int
        0 is silent; 1 shows a line of progress on terminals; 2 logs each round.
    builder : str or ProgramBuilder
        ``"local"``, or one with its options.
    runner : str or ProgramRunner
        ``"local"``, or one with its options.
    measure_callbacks : list of MeasureCallback, optional
        Called with each batch of outcomes: :class:`RecordToFile` keeps them.
    time_budget : float, optional
        Seconds after which no further batch is measured.
    resume : str, optional
        A log; its candidates count as trials, and are not measured again. Without it neither are
        those that the logs of ``measure_callbacks`` have, and trials are new ones.
    """

    def __init__(
        self,
        num_measure_trials: int = 0,
        early_stopping: int | None = None,
        num_measures_per_round: int = 64,
        verbose: int = 1,
        builder: Any = "local",
        runner: Any = "local",
        measure_callbacks: Sequence[MeasureCallback] | None = None,
        time_budget: float | None = None,
        resume: Any = None,
    ) -> None:
        if builder == "local":
            builder = LocalBuilder()
        if runner == "local":
            runner = LocalRunner()
        if not isinstance(builder, ProgramBuilder):
            raise ValueError(
                f"Invalid builder: {builder} . TuningOptions expects a ProgramBuilder or string."
            )
        if not isinstance(runner, ProgramRunner):
            raise ValueError(
                f"Invalid runner: {runner} . TuningOptions expects a ProgramRunner or string."
            )
        if num_measures_per_round < 1:
            raise ValueError(
                f"num_measures_per_round must be at least 1, got {num_measures_per_round}"
            )
        self.num_measure_trials = num_measure_trials
        self.early_stopping = -1 if early_stopping is None else early_stopping
        self.num_measures_per_round = num_measures_per_round
        self.verbose = verbose
        self.builder = builder
        self.runner = runner
        self.measure_callbacks = list(measure_callbacks or ())
        self.time_budget = time_budget
        self.resume = resume

    @property
    def known_log(self) -> str | None:
        """The log to go on from."""
        if self.resume is not None:
            return str(self.resume)
        return next((path for path in self._written if os.path.exists(path)), None)

    @property
    def _written(self) -> list[str]:
        """The logs that records go to."""
        return [str(c.filename) for c in self.measure_callbacks if isinstance(c, RecordToFile)]

    def note_untuned(self, task: Any) -> None:
        """Keep in the logs how long a task's kernel takes without records."""
        for path in self._written:
            note_untuned(path, task, self.runner)

    def progress_bar(self, trials: int, prefix: str) -> ProgressBar:
        """The line that shows how far tuning is, of so many trials at most."""
        return ProgressBar(min(max(trials, 0), 1 << 31), prefix=prefix, seconds=self.time_budget)

    def deadline(self) -> float:
        """When to stop, on the monotonic clock."""
        return float("inf") if self.time_budget is None else time.monotonic() + self.time_budget


def search(policy: SearchPolicy, options: TuningOptions) -> StateObject:
    """Measure what a policy chooses; the fastest program.

    Parameters
    ----------
    policy : SearchPolicy
        The search.
    options : TuningOptions
        How much is measured, and how.
    """
    task = policy.search_task
    if options.num_measure_trials < 1 and options.time_budget is None:
        policy.run_callbacks()
        return policy.unmeasured_choice()
    measurer = ProgramMeasurer(
        options.builder, options.runner, options.measure_callbacks, options.verbose,
        deadline=options.deadline(),
    )  # fmt: skip
    policy.set_verbose(options.verbose)
    trials = options.num_measure_trials if options.num_measure_trials > 0 else 1 << 40
    known = policy.preload(options.known_log) if options.known_log is not None else 0
    done = known if options.resume is not None else 0
    if options.verbose == 1:
        measurer.progress = options.progress_bar(trials - done, task.desc or "tuning")
    options.note_untuned(task)
    try:
        _search_in_rounds(policy, options, measurer, trials - done)
    finally:
        if measurer.progress is not None:
            measurer.progress.close()
    key = task.workload_key
    if key in measurer.best_state:
        return measurer.best_state[key]
    if policy.fastest:
        return policy.fastest[0][1]
    start: StateObject = task.compute_dag.init_state
    return start


def _search_in_rounds(
    policy: SearchPolicy, options: TuningOptions, measurer: ProgramMeasurer, trials: int
) -> None:
    key = policy.search_task.workload_key
    empty = 0
    while measurer.ct < trials and time.monotonic() < measurer.deadline:
        before = measurer.ct
        count = min(options.num_measures_per_round, trials - measurer.ct)
        inputs, results = policy.continue_search_one_round(count, measurer)
        if not inputs:
            empty += 1
            if empty > 1:
                logger.info("all programs of the search space have been measured")
                return
            continue
        if options.verbose > 1:
            best = measurer.best_flops.get(key, 0.0) / 1e9
            good = sum([res.error_no == MeasureErrorNo.NO_ERROR for res in results])
            logger.info(
                "%d of %d trials, %d of the last %d ran, best %.2f GFLOPS",
                measurer.ct, trials, good, measurer.ct - before, best,
            )  # fmt: skip
        limit = options.early_stopping
        if limit > 0 and measurer.ct - measurer.best_ct.get(key, 0) >= limit:
            logger.info("stopped early: nothing faster in %d trials", limit)
            return


def require_policy(policy: Any) -> SearchPolicy:
    """The policy; an error for anything else."""
    if not isinstance(policy, SearchPolicy):
        raise TVMError(f"tuning requires a SearchPolicy, got a value of {type(policy).__name__}")
    return policy
