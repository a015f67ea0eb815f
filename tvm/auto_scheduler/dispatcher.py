"""Where the schedules of kernels come from when a model is built.

with auto_scheduler.ApplyHistoryBest("log.json"):
    with tvm.transform.PassContext(opt_level=3, config={"relay.backend.use_auto_scheduler": True}):
        lib = relay.build(mod, target, params=params)
"""

from __future__ import annotations

import logging
import os
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from tvm.driver.tuners import is_auto_scheduler_enabled
from tvm.error import TVMError
from tvm.support.scope import Scoped
from tvm.target import Target
from tvm.te.schedule import Schedule
from tvm.te.tensor import Tensor

from .compute_dag import ComputeDAG
from .cost_model import RandomModel, XGBModel
from .io_tensors import traverse_to_get_io_tensors
from .measure import LocalRunner
from .measure_record import RecordToFile, load_records
from .measure_types import MeasureErrorNo, MeasureInput
from .search_policy import SketchPolicy
from .search_task import SearchTask, TuningOptions
from .state_object import StateObject
from .untuned import read_untuned
from .utils import calc_workload_dis_factor, decode_workload_key
from .workload_registry import register_workload_tensors

__all__ = [
    "ApplyHistoryBest", "ApplyHistoryBestOrSample", "DispatchContext", "FallbackContext",
    "is_auto_scheduler_enabled", "load_records", "schedule_of",
]  # fmt: skip

logger = logging.getLogger("auto_scheduler")

_CURRENT: Scoped[Any] = Scoped("auto_scheduler.DispatchContext")

# a record has to be so much faster than the untuned kernel: measurements waver
_GAIN = 0.95

Records = Any  # names of logs, records, or lists of them
BestRecords = dict[str, dict[str, dict[Any, tuple[StateObject, float]]]]


class _Innermost:
    """The class attribute ``current``: the innermost context."""

    def __get__(self, instance: Any, owner: Any) -> DispatchContext:
        found = _CURRENT.current()
        return FallbackContext() if found is None else found


class DispatchContext:
    """The base of contexts, which are used in ``with`` blocks."""

    current = _Innermost()

    def __enter__(self) -> DispatchContext:
        _CURRENT.push(self)
        return self

    def __exit__(self, *error: object) -> None:
        _CURRENT.pop()

    def query(
        self, target: Target, workload_key: str, has_complex_op: bool, dag: Any, func_name: str
    ) -> StateObject | None:
        """The state for a workload, or None.

        Parameters
        ----------
        target : Target
            The target.
        workload_key : str
            What is computed.
        has_complex_op : bool
            Whether anything is reduced.
        dag : ComputeDAG
            The program.
        func_name : str
            The name of the kernel.
        """
        raise NotImplementedError

    def update(self, target: Target, workload_key: str, state: Any) -> None:
        """Use a state for a workload.

        Parameters
        ----------
        target, workload_key :
            As of :meth:`query`.
        state : StateObject
            The state.
        """
        raise NotImplementedError


class ApplyHistoryBest(DispatchContext):
    """The fastest records of logs.

    Parameters
    ----------
    records : str, list of str, or list of (MeasureInput, MeasureResult)
        Logs or records.
    n_lines : int, optional
        Of each log only so many records.
    include_compatible : bool
        Whether records of workloads that divide a given one serve for it.
    """

    def __init__(
        self, records: Records, n_lines: int | None = None, include_compatible: bool = False
    ) -> None:
        self.include_compatible = include_compatible
        # kind or model of a target -> name of a workload -> its arguments -> state, seconds
        self.best_by_targetkey: BestRecords = {}
        self.best_by_model: BestRecords = {}
        self._best_user_defined: BestRecords = {}
        self._untuned: dict[tuple[str, str], float] = {}
        if records:
            self.load(records, n_lines)

    @staticmethod
    def get_workload_entry(
        best_records: BestRecords, target_key: str, workload_key: str
    ) -> tuple[dict[Any, tuple[StateObject, float]], str, Any]:
        """The records of workloads of the same name.

        Parameters
        ----------
        best_records : dict
            From kinds of targets to names of workloads to their arguments to states and seconds.
        target_key : str
            The kind of target.
        workload_key : str
            The workload.

        Returns
        -------
        entry, name, arguments
        """
        name, args = decode_workload_key(workload_key)
        return best_records.setdefault(target_key, {}).setdefault(name, {}), name, args

    def load(self, records: Records, n_lines: int | None = None) -> None:
        """Add records.

        Parameters
        ----------
        records, n_lines :
            As of the class.
        """
        counted = 0
        for inp, res in _records(records, n_lines):
            counted += 1
            if res.error_no != MeasureErrorNo.NO_ERROR:
                continue
            target = inp.task.target
            for key in target.keys:
                self._keep(self.best_by_targetkey, key, inp, res.seconds)
            self._keep(self.best_by_targetkey, target.kind.name, inp, res.seconds)
            self._keep(self.best_by_model, target.model, inp, res.seconds)
        for log in _logs(records):
            self._untuned.update(read_untuned(log))
        logger.debug("Finish loading %d records", counted)

    def _keep(self, best: BestRecords, target_key: str, inp: MeasureInput, seconds: float) -> None:
        entry, _, args = self.get_workload_entry(best, target_key, inp.task.workload_key)
        if args not in entry or seconds < entry[args][1]:
            entry[args] = inp.state, seconds

    def query(
        self, target: Target, workload_key: str, has_complex_op: bool, dag: Any, func_name: str
    ) -> StateObject | None:
        found = self._find(target, workload_key)
        if found is None and has_complex_op:
            logger.warning(
                "Cannot find tuned schedules for target=%s, workload_key=%s: kernel %s has a "
                "schedule of its operators. Compute DAG info:\n%s",
                target, workload_key, func_name, dag,
            )  # fmt: skip
            return None
        untuned = self._untuned.get((target.kind.name, workload_key), float("inf"))
        return found[0] if found is not None and found[1] < _GAIN * untuned else None

    def _find(self, target: Target, workload_key: str) -> tuple[StateObject, float] | None:
        """The state for a workload, and its seconds."""
        kind = target.kind.name
        tables = [
            (self._best_user_defined, kind), (self.best_by_model, target.model),
            (self.best_by_targetkey, kind), *[(self.best_by_targetkey, key) for key in target.keys],
        ]  # fmt: skip
        for table, key in tables:
            if (found := self._nearest(table, key, workload_key)) is not None:
                return found
        return None

    def _nearest(
        self, table: BestRecords, target_key: str, workload_key: str
    ) -> tuple[StateObject, float] | None:
        entry, name, args = self.get_workload_entry(table, target_key, workload_key)
        if args in entry or not self.include_compatible:
            return entry.get(args)
        scored = [
            (state, seconds * calc_workload_dis_factor((name, args), (name, other)))
            for other, (state, seconds) in entry.items()
        ]
        best = min(scored, key=lambda pair: pair[1], default=None)
        return best if best is not None and best[1] < float("inf") else None

    def update(self, target: Target, workload_key: str, state: Any) -> None:
        entry, _, args = self.get_workload_entry(
            self._best_user_defined, target.kind.name, workload_key
        )
        entry[args] = state, 0.0


def _logs(records: Records) -> list[Any]:
    """The logs among what records are given as."""
    given = [records] if isinstance(records, (str, os.PathLike)) else records
    return [item for item in given if isinstance(item, (str, os.PathLike))]


def _records(records: Records, n_lines: int | None) -> Iterable[Any]:
    given = [records] if isinstance(records, (str, os.PathLike)) else records
    for item in given:
        if isinstance(item, (str, os.PathLike)):
            for place, record in enumerate(load_records(item)):
                if n_lines is not None and place >= n_lines:
                    break
                yield record
        else:
            yield item


class ApplyHistoryBestOrSample(ApplyHistoryBest):
    """The fastest records of logs; for other workloads a program that is sampled.

    Parameters
    ----------
    records : str or list, optional
        As of :class:`ApplyHistoryBest`.
    sample_simple_workloads : bool
        Whether workloads that reduce nothing are sampled too.
    cost_model_file : str, optional
        A model of boosted trees that ranks samples; without it they are random.
    num_measure : int
        How many samples are measured; with -1 none is.
    """

    def __init__(
        self,
        records: Records,
        sample_simple_workloads: bool = False,
        cost_model_file: Any = None,
        num_measure: int = -1,
    ) -> None:
        self.sample_simple_workloads = sample_simple_workloads
        self.num_measure = num_measure
        self.cost_model: Any = RandomModel()
        if cost_model_file is not None:
            self.cost_model = XGBModel()
            self.cost_model.load(cost_model_file)
        super().__init__(records, include_compatible=True)

    def query(
        self, target: Target, workload_key: str, has_complex_op: bool, dag: Any, func_name: str
    ) -> StateObject | None:
        found = self._find(target, workload_key)
        if found is not None or not (has_complex_op or self.sample_simple_workloads):
            return None if found is None else found[0]
        register_workload_tensors(workload_key, dag.tensors)
        task = SearchTask(
            compute_dag=dag, workload_key=workload_key, target=target, layout_rewrite_option=0
        )
        policy = SketchPolicy(task, self.cost_model, verbose=0)
        state: StateObject | None
        if self.num_measure > 0:
            state = self._measured(task, policy)
        else:
            state = policy.unmeasured_choice()
        if state is not None:
            self.update(target, workload_key, state)
        return state

    def _measured(self, task: SearchTask, policy: SketchPolicy) -> StateObject | None:
        with tempfile.TemporaryDirectory() as folder:
            log = Path(folder) / "log.json"
            options = TuningOptions(
                num_measure_trials=self.num_measure, runner=LocalRunner(timeout=20), verbose=0,
                measure_callbacks=[RecordToFile(log)],
            )  # fmt: skip
            task.tune(options, search_policy=policy)
        return policy.fastest[0][1] if policy.fastest else None


class FallbackContext(DispatchContext):
    """The context without records: kernels have the schedules of their operators."""

    def __init__(self) -> None:
        self.memory: dict[tuple[str, str], StateObject] = {}

    def query(
        self, target: Target, workload_key: str, has_complex_op: bool, dag: Any, func_name: str
    ) -> StateObject | None:
        return self.memory.get((target.kind.name, workload_key))

    def update(self, target: Target, workload_key: str, state: Any) -> None:
        self.memory[target.kind.name, workload_key] = state


def schedule_of(outs: Sequence[Tensor], target: Target, func_name: str) -> Schedule | None:
    """The schedule that the current context has for a kernel's outputs, or None.

    Parameters
    ----------
    outs : list of Tensor
        The outputs.
    target : Target
        The target.
    func_name : str
        The name of the kernel.
    """
    tensors, _, has_complex_op = traverse_to_get_io_tensors(outs)
    if not tensors:
        return None
    try:
        dag = ComputeDAG(tensors)
    except TVMError:  # computes that the auto-scheduler does not take keep their schedules
        return None
    key = dag.workload_key()
    state = DispatchContext.current.query(target, key, has_complex_op, dag, func_name)
    if state is None:
        return None
    schedule, _ = dag.apply_steps_from_state(state)
    return schedule
