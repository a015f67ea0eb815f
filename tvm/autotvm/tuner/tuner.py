"""The loop of tuning: candidates in batches, measured, learned from, told to callbacks."""

from __future__ import annotations

import logging
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tvm.autotvm.env import GLOBAL_SCOPE
from tvm.autotvm.measure.measure import MeasureInput, create_measure_batch
from tvm.autotvm.record import own_records
from tvm.autotvm.tuner.progress_bar import ProgressBar
from tvm.autotvm.utils import format_si_prefix

logger = logging.getLogger("autotvm")


class Tuner:
    """The base of tuners, which choose what to measure.

    Parameters
    ----------
    task : Task
        The task.

    Attributes
    ----------
    best_config : ConfigEntity or None
        The fastest so far.
    best_flops : float
        Its operations a second.
    best_measure_pair : (MeasureInput, MeasureResult) or None
        Its record.
    best_iter : int
        In which trial it was found.
    """

    def __init__(self, task: Any, **kwargs: Any) -> None:
        self.param = kwargs
        self.recorder: Any = None
        self.task = task
        self.space = task.config_space
        self.best_config: Any = None
        self.best_flops = 0.0
        self.best_measure_pair: Any = None
        self.best_iter = 0
        self.error_ct_threshold = 150
        # what is left to try, and the limits, while tuning
        self.ttl: int | None = None
        self.n_trial: int | None = None
        self.early_stopping: float | None = None

    def starts(self) -> list[int]:
        """What is tried first: the point that the template itself would take, if it tells one."""
        start = self.space.start
        return [] if start is None or not self.space.is_index_valid(start) else [start]

    def has_next(self) -> bool:
        """Whether there are candidates left."""
        raise NotImplementedError()

    def next_batch(self, batch_size: int) -> list[Any]:
        """The next candidates.

        Parameters
        ----------
        batch_size : int
            How many.

        Returns
        -------
        list of ConfigEntity
        """
        raise NotImplementedError()

    def update(self, inputs: Sequence[Any], results: Sequence[Any]) -> None:
        """Learn from measured candidates.

        Parameters
        ----------
        inputs : list of MeasureInput
            The candidates.
        results : list of MeasureResult
            Their outcomes.
        """

    def tune(
        self,
        n_trial: int,
        measure_option: Mapping[str, Any],
        early_stopping: float | None = None,
        callbacks: Iterable[Callable[..., Any]] = (),
        si_prefix: str = "G",
        *,
        time_budget: float | None = None,
    ) -> None:
        """Measure candidates.

        Parameters
        ----------
        n_trial : int
            How many at most.
        measure_option : dict
            From :func:`tvm.autotvm.measure_option`.
        early_stopping : int, optional
            Stop when so many trials have brought nothing faster.
        callbacks : list of function
            Called with the tuner, the inputs and the results of each batch.
        si_prefix : str
            In which unit operations a second are shown.
        time_budget : float, optional
            Seconds after which no further batch is measured.
        """
        format_si_prefix(0, si_prefix)  # an unknown prefix is told before anything is measured
        measure_batch = create_measure_batch(self.task, measure_option)
        batch_size = getattr(measure_batch, "n_parallel", 1)
        callbacks = list(callbacks)
        limit = early_stopping or float("inf")
        self.n_trial, self.early_stopping = n_trial, limit
        errors: list[str] = []
        failures = count = 0  # failures in a row, and trials
        level = logger.level
        deadline = time.monotonic() + (float("inf") if time_budget is None else time_budget)
        GLOBAL_SCOPE.in_tuning = True
        try:
            while count < n_trial and self.has_next() and time.monotonic() < deadline:
                configs = self.next_batch(min(batch_size, n_trial - count))
                if not configs:
                    break
                inputs = [MeasureInput(self.task.target, self.task, config) for config in configs]
                results = measure_batch(inputs)
                for place, (inp, res) in enumerate(zip(inputs, results, strict=True)):
                    failures = 0 if res.error_no == 0 else failures + 1
                    self._note(count + place, inp, res, errors, si_prefix)
                count += len(results)
                self.ttl = int(min(limit + self.best_iter, n_trial)) - count
                self.update(inputs, results)
                for callback in callbacks:
                    callback(self, inputs, results)
                if count >= self.best_iter + limit:
                    logger.debug("Early stopped. Best iter: %d.", self.best_iter)
                    break
                self._warn_of_failures(failures, level)
        finally:
            GLOBAL_SCOPE.in_tuning = False
            logger.setLevel(level)
            for callback in callbacks:
                if isinstance(callback, ProgressBar):
                    callback.close()
        if count and len(errors) == count:
            _report_errors(self.task, errors)

    def _note(self, trial: int, inp: Any, res: Any, errors: list[str], si_prefix: str) -> None:
        """Remember the fastest, and log the trial."""
        flops = self._remember(trial, inp, res)
        shown: Any = res
        if res.error_no != 0:
            shown = "\n".join([str(part) for part in res.costs])
            errors.append(shown)
        logger.debug(
            "No: %d\t%sFLOPS: %.2f/%.2f\tresult: %s\t%s",
            trial + 1,
            si_prefix,
            format_si_prefix(flops, si_prefix),
            format_si_prefix(self.best_flops, si_prefix),
            shown,
            inp.config,
        )

    def _remember(self, trial: int, inp: Any, res: Any) -> float:
        """The operations a second of a trial; the fastest is remembered."""
        flops = float(inp.task.flop / np.mean(res.costs)) if res.error_no == 0 else 0.0
        if flops > self.best_flops:
            self.best_flops = flops
            self.best_config = inp.config
            self.best_measure_pair = (inp, res)
            self.best_iter = trial
        return flops

    def _warn_of_failures(self, failures: int, level: int) -> None:
        if failures <= self.error_ct_threshold:
            logger.setLevel(level)
        elif logger.level != logging.DEBUG:
            logging.basicConfig()
            logger.warning("Too many errors happen in the tuning. Switching to debug mode.")
            logger.setLevel(logging.DEBUG)

    def reset(self) -> None:
        """Forget what was found."""
        self.best_config = None
        self.best_flops = 0.0
        self.best_measure_pair = None

    def load_history(self, data_set: Iterable[Any], min_seed_records: int = 500) -> None:
        """Learn from records of before.

        Parameters
        ----------
        data_set : list of (MeasureInput, MeasureResult)
            The records.
        min_seed_records : int
            Fewer records are not learned from.
        """
        raise NotImplementedError()

    def resume(self, data_set: Iterable[Any]) -> int:
        """Go on with an earlier search: its records count, and their points are not measured again.

        Parameters
        ----------
        data_set : list of (MeasureInput, MeasureResult)
            The records; those of other tasks and targets are left out.

        Returns
        -------
        int
            How many points are known by them.
        """
        records = own_records(self.task, data_set)
        for inp, res in records:
            self._remember(0, inp, res)
        if records:
            inputs, results = zip(*records, strict=True)
            before, GLOBAL_SCOPE.in_tuning = GLOBAL_SCOPE.in_tuning, True
            try:
                self.take_over(inputs, results)
            finally:
                GLOBAL_SCOPE.in_tuning = before
        return len(records)

    def take_over(self, inputs: Sequence[Any], results: Sequence[Any]) -> None:
        """Make the records of an earlier search those of this one.

        Parameters
        ----------
        inputs : list of MeasureInput
            Points of this task, each once.
        results : list of MeasureResult
            Their outcomes.
        """
        self.update(inputs, results)

    def set_error_threshold(self, threshold: int) -> None:
        """After how many failures in a row everything is logged.

        Parameters
        ----------
        threshold : int
            How many.
        """
        self.error_ct_threshold = threshold


def _report_errors(task: Any, errors: Sequence[str]) -> None:
    with tempfile.NamedTemporaryFile(
        "w", prefix="tvm_tuning_errors_", suffix=".log", delete=False
    ) as file:
        file.write("\n".join(errors))
    logger.warning(
        "Could not find any valid schedule for task %s. "
        "A file containing the errors has been written to %s.",
        task,
        Path(file.name),
    )
