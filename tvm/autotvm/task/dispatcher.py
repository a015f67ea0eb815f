"""Configurations from records: the fastest that a log holds, or those chosen for a whole graph.

with autotvm.apply_history_best("matmul.log"):
    with tvm.target.Target("llvm"):
        s, arg_bufs = matmul(512, 512, 512, "float32")
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from io import TextIOBase
from os import PathLike, fspath
from typing import Any

import numpy as np

from tvm.autotvm import record as logs  # it imports this package: used when records are read
from tvm.autotvm.measure.interface import MeasureInput, MeasureResult
from tvm.autotvm.task.context import (
    ApplyConfig,
    DispatchContext,
    FallbackContext,
    Workload,
    clear_fallback_cache,
    logger,
)
from tvm.autotvm.task.space import ConfigSpace, FallbackConfigEntity
from tvm.target import Target

__all__ = [
    "ApplyConfig",
    "ApplyFixedConfig",
    "ApplyGraphBest",
    "ApplyHistoryBest",
    "DispatchContext",
    "FallbackContext",
    "clear_fallback_cache",
]

Record = tuple[MeasureInput, MeasureResult]


def records_of(source: Any) -> list[Record]:
    """The records of a file, its name, an open file, records, or a list of any of these."""
    if source is None:
        return []
    if isinstance(source, (str, PathLike)):
        return list(logs.load_from_file(fspath(source)))
    if isinstance(source, TextIOBase):
        return list(logs.load_from_buffer(source))
    if isinstance(source, tuple) and len(source) == 2 and isinstance(source[0], MeasureInput):
        return [source]
    if not isinstance(source, Iterable):
        raise TypeError(
            f"records are (MeasureInput, MeasureResult) or files of them, got {type(source).__name__}"
        )
    return [record for item in source for record in records_of(item)]


class ApplyHistoryBest(DispatchContext):
    """The fastest configuration that records have for each workload.

    Parameters
    ----------
    records : str, Path, file, or list of (MeasureInput, MeasureResult) or of files
        The records.

    Attributes
    ----------
    best_by_targetkey, best_by_model : dict of (str, tuple) to (MeasureInput, MeasureResult)
        The fastest record by a key or the model of its target, and its workload.
    """

    def __init__(self, records: Any) -> None:
        super().__init__()
        self.best_by_targetkey: dict[tuple[str, Workload], Record] = {}
        self.best_by_model: dict[tuple[str, Workload], Record] = {}
        self._best_user_defined: dict[tuple[str, Workload | None], ConfigSpace] = {}
        self.load(records)

    def load(self, records: Any) -> None:
        """Take more records into account.

        Parameters
        ----------
        records : str, Path, file, or list of (MeasureInput, MeasureResult) or of files
            The records.
        """
        found = records_of(records)
        for record in found:
            inp, res = record
            if res.error_no != 0:
                continue
            workload = inp.task.workload
            target = Target(inp.target)
            for key in target.keys:
                _keep_faster(self.best_by_targetkey, (key, workload), record)
            if target.model != "unknown":
                _keep_faster(self.best_by_model, (target.model, workload), record)
        logger.debug("Finish loading %d records", len(found))

    def _query_inside(self, target: Any, workload: Workload | None) -> ConfigSpace | None:
        if target is None:
            raise RuntimeError(
                "Need a target context to find the history best. "
                "Hint: If your target is llvm, use `with tvm.target.Target('llvm'):` above the "
                "dispatcher call. So does other target. "
            )
        by_model = (target.model, workload)
        if by_model in self._best_user_defined:
            return self._best_user_defined[by_model]
        if by_model in self.best_by_model:
            return _config(self.best_by_model[by_model])
        for name in target.keys:
            key = (name, workload)
            if key in self._best_user_defined:
                return self._best_user_defined[key]
            if key in self.best_by_targetkey:
                return _config(self.best_by_targetkey[key])
        return None

    def update(self, target: Any, workload: Workload, cfg: ConfigSpace) -> None:
        # what the user gives counts as the fastest
        cfg.cost = 0
        for name in (target.model, *target.keys):
            self._best_user_defined[(name, workload)] = cfg


def _config(record: Record) -> ConfigSpace | None:
    config: ConfigSpace | None = record[0].config
    return config


def _keep_faster(
    best: dict[tuple[str, Workload], Record], key: tuple[str, Workload], record: Record
) -> None:
    if key not in best or np.mean(record[1].costs) < np.mean(best[key][1].costs):
        best[key] = record


class ApplyFixedConfig(DispatchContext):
    """The first configuration of each task, so that a chosen schedule is taken.

    Parameters
    ----------
    tasks : list of Task
        The tasks.
    schedule_names : str or list of str
        The tasks that are to win over the others.
    """

    def __init__(self, tasks: Sequence[Any], schedule_names: Any) -> None:
        super().__init__()
        if not isinstance(schedule_names, (str, list, tuple)):
            raise RuntimeError(f"Incorrect type: {schedule_names}")
        names = [schedule_names] if isinstance(schedule_names, str) else list(schedule_names)
        self._schedule_names = names
        self._tasks = list(tasks)
        self.workload: Workload | None = None

    def _query_inside(self, target: Any, workload: Workload | None) -> ConfigSpace:
        self.workload = workload
        wanted = None if workload is None else workload[0]
        for task in self._tasks:
            if task.name == wanted:
                config: ConfigSpace = task.config_space.get(0)
                config.cost = 1e-6 if wanted in self._schedule_names else 100000.0
                return config
        raise RuntimeError(
            f"workload: {wanted!s} does not exist in {[t.name for t in self._tasks]}"
        )

    def update(self, target: Any, workload: Workload, cfg: ConfigSpace) -> None:
        """Remember the workload that was asked for last; the configurations are fixed."""
        self.workload = workload


class ApplyGraphBest(DispatchContext):
    """The configurations that were chosen for the operators of one graph, in the graph's order.

    Parameters
    ----------
    records : str, Path, file or list of (MeasureInput, MeasureResult)
        A record for each operator; equal workloads take theirs one after the other, and the last
        record stays.
    """

    def __init__(self, records: Any) -> None:
        super().__init__()
        self._waiting = deque(records_of(records))
        self._global_cfg_dict: dict[tuple[str, Workload | None], ConfigSpace] = {}

    def _query_inside(self, target: Any, workload: Workload | None) -> ConfigSpace:
        key = (str(target), workload)
        for record in self._waiting:
            if workload is None or record[0].task.workload == workload:
                self._waiting.remove(record)
                config: ConfigSpace = record[0].config
                config.workload = record[0].task.workload  # type: ignore[attr-defined]
                self.update(target, record[0].task.workload, config)
                return config
        if key not in self._global_cfg_dict:
            logger.debug(
                "Config for target=%s, workload=%s is missing in ApplyGraphBest context: the "
                "template's own choice is used",
                target,
                workload,
            )
            self._global_cfg_dict[key] = FallbackConfigEntity()
        return self._global_cfg_dict[key]

    def update(self, target: Any, workload: Workload, cfg: ConfigSpace) -> None:
        self._global_cfg_dict[(str(target), workload)] = cfg
