"""What is measured: candidates, outcomes, and the two interfaces that lead from one to the other."""

from __future__ import annotations

import enum
from collections import namedtuple
from collections.abc import Mapping, Sequence
from typing import Any

from tvm.autotvm.utils import cpu_count

MeasureInput = namedtuple("MeasureInput", ["target", "task", "config"])
MeasureInput.__doc__ = """A candidate.

Parameters
----------
target : tvm.target.Target
    The target to compile for.
task : Task
    The task.
config : ConfigEntity
    The values of its knobs.
"""

MeasureResult = namedtuple("MeasureResult", ["costs", "error_no", "all_cost", "timestamp"])
MeasureResult.__doc__ = """The outcome of a candidate.

Parameters
----------
costs : tuple of float, or tuple of one exception
    Seconds of each repetition, or what went wrong.
error_no : int
    A :class:`MeasureErrorNo`.
all_cost : float
    Seconds of everything: building, loading, running.
timestamp : float
    Seconds since the epoch at the end.
"""


class MeasureErrorNo(enum.IntEnum):
    """What went wrong with a candidate."""

    NO_ERROR = 0
    INSTANTIATION_ERROR = 1  # the configuration does not suit the template
    COMPILE_HOST = 2
    COMPILE_DEVICE = 3
    RUNTIME_DEVICE = 4
    WRONG_ANSWER = 5
    BUILD_TIMEOUT = 6
    RUN_TIMEOUT = 7
    UNKNOWN_ERROR = 8


class Builder:
    """Compiles candidates.

    Parameters
    ----------
    timeout : float
        Seconds for one candidate.
    n_parallel : int, optional
        How many at a time; by default one for each processor.
    build_kwargs : dict, optional
        Options of the build function.
    """

    def __init__(
        self,
        timeout: float = 10,
        n_parallel: int | None = None,
        build_kwargs: Mapping[str, Any] | None = None,
    ) -> None:
        self.timeout = timeout
        self.n_parallel = n_parallel or cpu_count()
        self.user_build_kwargs = dict(build_kwargs or {})
        self.runner_build_kwargs: dict[str, Any] | None = None
        self.task: Any = None
        self.build_kwargs: dict[str, Any] = {}

    def set_task(self, task: Any, build_kwargs: Mapping[str, Any] | None = None) -> None:
        """Prepare for a task.

        Parameters
        ----------
        task : Task
            The task.
        build_kwargs : dict, optional
            What the runner asks for; the user's own options come first.
        """
        self.task = task
        self.runner_build_kwargs = dict(build_kwargs or {})
        self.build_kwargs = {**self.runner_build_kwargs, **self.user_build_kwargs}

    def build(self, measure_inputs: Sequence[MeasureInput]) -> list[Any]:
        """Compile candidates.

        Parameters
        ----------
        measure_inputs : list of MeasureInput
            The candidates.

        Returns
        -------
        list of BuildResult, or of MeasureResult where that failed
        """
        raise NotImplementedError()


class Runner:
    """Runs what a :class:`Builder` has compiled.

    Parameters
    ----------
    timeout : float
        Seconds for one candidate.
    n_parallel : int, optional
        How many at a time; by default one for each processor.
    """

    def __init__(self, timeout: float = 5, n_parallel: int | None = None) -> None:
        self.timeout = timeout
        self.n_parallel = n_parallel or cpu_count()
        self.task: Any = None

    def set_task(self, task: Any) -> None:
        """Prepare for a task.

        Parameters
        ----------
        task : Task
            The task.
        """
        self.task = task

    def get_build_kwargs(self) -> dict[str, Any]:
        """What the builder has to know of the device."""
        raise NotImplementedError()

    def run(
        self, measure_inputs: Sequence[MeasureInput], build_results: Sequence[Any]
    ) -> list[MeasureResult]:
        """Run candidates.

        Parameters
        ----------
        measure_inputs : list of MeasureInput
            The candidates.
        build_results : list of BuildResult or MeasureResult
            What the builder has returned for them.
        """
        raise NotImplementedError()
