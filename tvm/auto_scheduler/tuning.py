"""Measuring candidates in rounds until trials, time, or candidates come to an end."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from typing import Any

from tvm.autotvm.tuner.progress_bar import ProgressBar
from tvm.error import TVMError
from tvm.runtime.object import Object

from .measure import LocalBuilder, LocalRunner, ProgramBuilder, ProgramRunner
from .measure_record import MeasureCallback
from .measure_types import MeasureErrorNo, MeasureInput, MeasureResult
from .search_policy import SearchPolicy
from .state_object import StateObject

logger = logging.getLogger("auto_scheduler")

_MOST_FAILURES = 150  # in a row


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
        A log; its candidates count as trials, and are not measured again.
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

    def deadline(self) -> float:
        """When to stop, on the monotonic clock."""
        return float("inf") if self.time_budget is None else time.monotonic() + self.time_budget


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
            logger.debug("%s: %s", MeasureErrorNo(res.error_no).name, res.error_msg)
        if self.error_ct == self.max_continuous_error:
            logger.warning(
                "Too many errors happened during tuning: %d in a row, the last one: %s",
                self.error_ct, res.error_msg,
            )  # fmt: skip
        if self.progress is not None:
            self.progress.show(1, flops, self.best_flops.get(key, 0.0))


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
    done = policy.preload(options.resume) if options.resume is not None else 0
    if options.verbose == 1:
        measurer.progress = ProgressBar(min(trials, 1 << 31), prefix=task.desc or "tuning")
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
