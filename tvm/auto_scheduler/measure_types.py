"""Candidates and their outcomes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from tvm.autotvm.measure.interface import MeasureErrorNo
from tvm.runtime.object import Object
from tvm.tir.expr import FloatImm

from .compute_dag import ComputeDAG
from .loop_state import State, as_object
from .state_object import StateObject
from .steps import step_from_row, step_row
from .task import Task, task_from_row
from .utils import array_mean
from .workload_registry import register_missing_tensors

__all__ = ["BuildResult", "MeasureErrorNo", "MeasureInput", "MeasureResult"]


class MeasureInput(Object):
    """A candidate.

    Parameters
    ----------
    task : SearchTask
        The task.
    state : State or StateObject
        A state of its program.
    """

    __slots__ = ("state", "task")

    def __init__(self, task: Task, state: State | StateObject) -> None:
        self.task = task
        self.state = as_object(state)

    def serialize(self) -> tuple[Any, ...]:
        """The candidate for another process, with its workload."""
        task = self.task
        dag = task.compute_dag or ComputeDAG(task.workload_key)
        rows = [step_row(step) for step in self.state.transform_steps]
        return json.dumps([task.row(), rows]), dag

    @staticmethod
    def deserialize(data: Sequence[Any]) -> MeasureInput:
        """What was serialized.

        Parameters
        ----------
        data : tuple
            From :meth:`serialize`.
        """
        text, dag = data
        row, rows = json.loads(text)
        task = task_from_row(row)
        task.compute_dag = dag
        register_missing_tensors(task.workload_key, dag.tensors)
        steps = [step_from_row(step) for step in rows]
        return MeasureInput(task, dag.graph.state_after(steps))


class BuildResult(Object):
    """What a builder gives for a candidate.

    Parameters
    ----------
    filename : str or None
        The library.
    args : list of Tensor
        Its arguments.
    error_no : int
        A :class:`MeasureErrorNo`.
    error_msg : str or None
        What went wrong.
    time_cost : float
        Seconds.
    """

    __slots__ = ("args", "error_msg", "error_no", "filename", "owner", "time_cost")

    def __init__(
        self,
        filename: str | None,
        args: Sequence[Any],
        error_no: int,
        error_msg: str | None,
        time_cost: float,
    ) -> None:
        self.filename = filename or ""
        self.args = list(args)
        self.error_no = int(error_no)
        self.error_msg = error_msg or ""
        self.time_cost = float(time_cost)
        self.owner: Any = None  # the builder, with which its libraries go

    def __repr__(self) -> str:
        if self.error_no == MeasureErrorNo.NO_ERROR:
            return f"BuildResult({self.filename}, {self.time_cost:.2f} s)"
        return f"BuildResult({MeasureErrorNo(self.error_no).name}, {self.error_msg})"


class MeasureResult(Object):
    """The outcome of a candidate.

    Parameters
    ----------
    costs : list of float
        Seconds of each repetition.
    error_no, error_msg :
        As of :class:`BuildResult`.
    all_cost : float
        Seconds of building and running.
    timestamp : float
        Seconds since the epoch at the end.
    """

    __slots__ = ("all_cost", "costs", "error_msg", "error_no", "timestamp")

    def __init__(
        self,
        costs: Sequence[Any],
        error_no: int,
        error_msg: str | None,
        all_cost: float,
        timestamp: float,
    ) -> None:
        self.costs = tuple(
            [c if isinstance(c, FloatImm) else FloatImm("float64", float(c)) for c in costs]
        )
        self.error_no = int(error_no)
        self.error_msg = error_msg or ""
        self.all_cost = float(all_cost)
        self.timestamp = float(timestamp)

    @property
    def seconds(self) -> float:
        """The mean of the costs; infinite for failures."""
        if self.error_no != MeasureErrorNo.NO_ERROR or not self.costs:
            return float("inf")
        return array_mean(self.costs)

    def __str__(self) -> str:
        if self.error_no == MeasureErrorNo.NO_ERROR:
            costs = ",".join([f"{float(c.value):.6g}" for c in self.costs])
            return (
                f"MeasureResult(cost:[{costs}], error_no:{self.error_no}, "
                f"all_cost:{self.all_cost:.6g}, Tstamp:{self.timestamp:.10g})"
            )
        return (
            f"MeasureResult(error_type:{MeasureErrorNo(self.error_no).name}, "
            f"error_msg:{self.error_msg}, all_cost:{self.all_cost:.6g}, "
            f"Tstamp:{self.timestamp:.10g})"
        )

    __repr__ = __str__
