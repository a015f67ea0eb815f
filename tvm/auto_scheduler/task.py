"""A workload for a target: what is searched for a schedule of."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from tvm.error import TVMError
from tvm.ir.extension import Extension
from tvm.runtime.object import Object
from tvm.target import Target
from tvm.target.recorded import recorded_target

from .compute_dag import ComputeDAG, require_dag
from .hardware import HardwareParams
from .layout_rewrite import LayoutRewriteOption
from .task_inputs import register_task_input_buffer
from .workload_registry import make_workload_key, register_missing_tensors


class Task(Object):
    """The data of a :class:`SearchTask`, which adds how to tune it.

    Attributes
    ----------
    workload_key : str
        What is computed.
    compute_dag : ComputeDAG or None
        The graph; None for the task of a record, until that is recovered.
    target : Target
        The target, with its host.
    hardware_params : HardwareParams
        The machine.
    layout_rewrite_option : int
        A :class:`LayoutRewriteOption`.
    task_input_names : list of str
        The inputs that have given values.
    desc : str
        For people.
    untuned : function, optional
        Gives the schedule and the arguments of the kernel as it is without records.
    """

    untuned: Any = None

    def __init__(
        self,
        func: Any = None,
        args: Sequence[Any] | None = None,
        compute_dag: ComputeDAG | None = None,
        workload_key: str | None = None,
        target: Any = None,
        target_host: Any = None,
        hardware_params: HardwareParams | None = None,
        layout_rewrite_option: int | None = None,
        task_inputs: Any = None,
        task_inputs_overwrite: bool = False,
        task_inputs_save_to_file: bool = False,
        desc: str = "",
    ) -> None:
        if func is None and workload_key is None:
            raise ValueError("Either a workload function or a workload key should be provided")
        if func is not None:
            workload_key = make_workload_key(func, args or ())
        assert workload_key is not None
        if compute_dag is None:
            compute_dag = ComputeDAG(workload_key)
        found, _ = Target.canon_target_and_host(target, target_host)
        if found is None:
            raise ValueError("Must specify a target: SearchTask(..., target='llvm')")
        if layout_rewrite_option is None:
            layout_rewrite_option = LayoutRewriteOption.get_target_default(found)
        names = []
        if isinstance(task_inputs, Mapping):
            for name, value in task_inputs.items():
                register_task_input_buffer(
                    workload_key, name, value, task_inputs_overwrite, task_inputs_save_to_file
                )
                names.append(name)
        elif task_inputs is not None:
            names = list(task_inputs)
        self.workload_key = workload_key
        self.compute_dag: Any = require_dag(compute_dag, "SearchTask")
        self.target: Any = found
        self.hardware_params = hardware_params or HardwareParams(target=found)
        self.layout_rewrite_option = int(layout_rewrite_option)
        self.task_input_names = names
        self.desc = desc

    @property
    def target_host(self) -> Any:
        """The host of the target."""
        return self.target.host

    def row(self) -> list[Any]:
        """The task in a record."""
        host = "" if self.target.host is None else str(self.target.host)
        return [
            self.workload_key, str(self.target), self.hardware_params.row(), host,
            self.layout_rewrite_option, list(self.task_input_names),
        ]  # fmt: skip

    def __str__(self) -> str:
        return f"{type(self).__name__}({self.workload_key}, {self.target})"

    __repr__ = __str__

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "untuned"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        if self.compute_dag is not None:
            register_missing_tensors(self.workload_key, self.compute_dag.tensors)


# the class of tasks that programs see, which adds how to tune
search_task_class: Extension[Any] = Extension("tvm.auto_scheduler.search_task")


def task_from_row(row: Sequence[Any]) -> Task:
    """The task of a record, without its graph."""
    if not isinstance(row, (list, tuple)) or len(row) < 2:
        raise TVMError(f"a record's task has a workload and a target, got {row!r}")
    task: Task = search_task_class.required.__new__(search_task_class.required)
    host = row[3] if len(row) > 3 and row[3] else None
    target = recorded_target(row[1])
    task.workload_key = row[0]
    task.compute_dag = None
    task.target = target if host is None else target.with_host(recorded_target(host))
    task.hardware_params = (
        HardwareParams(*row[2]) if len(row) > 2 else HardwareParams(target=target)
    )
    task.layout_rewrite_option = row[4] if len(row) > 4 else LayoutRewriteOption.NO_REWRITE
    task.task_input_names = list(row[5]) if len(row) > 5 else []
    task.desc = ""
    return task


def serialize_task(task: Task) -> str:
    """A task as JSON."""
    return json.dumps(task.row())


def deserialize_task(text: str) -> Task:
    """The task of JSON; its graph is that of the registered workload."""
    task = task_from_row(json.loads(text))
    task.compute_dag = ComputeDAG(task.workload_key)
    return task
