"""Tasks as programs make them: a workload, a target, and what a search gave for them.

task = auto_scheduler.SearchTask(func=matmul, args=(512, 512, 512), target="llvm")
task.tune(auto_scheduler.TuningOptions(num_measure_trials=64, measure_callbacks=[RecordToFile(log)]))
sch, args = task.apply_best(log)
"""

from __future__ import annotations

from typing import Any

from tvm._ffi.registry import register_func
from tvm.driver.build_module import build
from tvm.te.schedule import Schedule
from tvm.te.tensor import Tensor

from .cost_model import XGBModel
from .hardware import HardwareParams
from .measure_record import load_best_record
from .measure_types import MeasureInput
from .search_policy import SearchPolicy, SketchPolicy
from .task import Task, deserialize_task, search_task_class, serialize_task
from .task_inputs import (
    TASK_INPUT_BUFFER_TABLE,
    get_task_input_buffer,
    register_task_input_buffer,
)
from .tuning import TuningOptions, require_policy, search

__all__ = [
    "TASK_INPUT_BUFFER_TABLE", "HardwareParams", "SearchTask", "TuningOptions", "auto_schedule",
    "create_task", "get_task_input_buffer", "register_task_input_buffer",
]  # fmt: skip


class SearchTask(Task):
    """A workload for a target.

    Parameters
    ----------
    func : function or str, optional
        A registered workload.
    args : list, optional
        Its arguments.
    compute_dag : ComputeDAG, optional
        The program; by default that of the workload.
    workload_key : str, optional
        In place of ``func`` and ``args``.
    target, target_host : str or Target
        The target, and its host.
    hardware_params : HardwareParams, optional
        The machine; by default usual numbers of the target.
    layout_rewrite_option : int, optional
        A :class:`LayoutRewriteOption`, by default the target's.
    task_inputs : dict of str to NDArray, or list of str, optional
        Values of inputs that cannot be random, or the names of registered ones.
    task_inputs_overwrite, task_inputs_save_to_file : bool
        As of :func:`register_task_input_buffer`.
    desc : str
        For people.
    """

    def tune(
        self,
        tuning_options: TuningOptions,
        search_policy: SearchPolicy | None = None,
        adaptive_training: bool = False,
    ) -> None:
        """Search for a fast program; ``measure_callbacks`` keep what is measured.

        Parameters
        ----------
        tuning_options : TuningOptions
            How much is measured, and how.
        search_policy : SearchPolicy, optional
            By default sketches with a cost model of boosted trees.
        adaptive_training : bool
            Whether that model is trained anew only when there are clearly more measurements.
        """
        if search_policy is None:
            model = XGBModel(adaptive_training=adaptive_training)
            search_policy = SketchPolicy(self, model)
        search(require_policy(search_policy), tuning_options)

    def apply_best(
        self,
        log_file: Any,
        include_compatible: bool = False,
        layout_rewrite_option: int | None = None,
    ) -> tuple[Schedule, list[Tensor]]:
        """The schedule of the fastest record, and its arguments.

        Parameters
        ----------
        log_file : str
            The log.
        include_compatible : bool
            Whether records of workloads that divide this one count too.
        layout_rewrite_option : int, optional
            A :class:`LayoutRewriteOption`, by default the task's.
        """
        state = self._best(log_file, include_compatible).state
        option = (
            self.layout_rewrite_option if layout_rewrite_option is None else layout_rewrite_option
        )
        applied: tuple[Schedule, list[Tensor]] = self.compute_dag.apply_steps_from_state(
            state, option
        )
        return applied

    def print_best(self, log_file: Any, print_mode: str = "schedule") -> str:
        """The fastest record as code.

        Parameters
        ----------
        log_file : str
            The log.
        print_mode : str
            ``"schedule"``, Python code of a te schedule; ``"cuda"``, the source of the kernel.
        """
        inp = self._best(log_file)
        if print_mode == "schedule":
            code: str = self.compute_dag.print_python_code_from_state(inp.state)
            return code
        if print_mode == "cuda":
            return self._cuda_source(inp)
        raise ValueError(f"Invalid print_mode: {print_mode}; 'schedule' or 'cuda' is required")

    def _cuda_source(self, inp: MeasureInput) -> str:
        if self.target.kind.name != "cuda":
            raise ValueError(
                f"print_mode='cuda' requires a task for cuda, got one for {self.target.kind.name}"
            )
        schedule, args = self.compute_dag.apply_steps_from_state(inp.state)
        source: str = build(schedule, args, self.target).imported_modules[0].get_source()
        return source

    def _best(self, log_file: Any, include_compatible: bool = False) -> MeasureInput:
        inp, _ = load_best_record(log_file, self.workload_key, self.target, include_compatible)
        if inp is None:
            raise RuntimeError(
                f"Cannot find any valid schedule for {self.workload_key} in file {log_file}"
            )
        return inp


search_task_class.provide(SearchTask)


@register_func("auto_scheduler.SerializeSearchTask")
def _serialize(task: Task) -> str:
    return serialize_task(task)


@register_func("auto_scheduler.DeserializeSearchTask")
def _deserialize(text: str) -> Task:
    return deserialize_task(text)


def create_task(
    func: Any,
    args: Any,
    target: Any,
    target_host: Any = None,
    hardware_params: HardwareParams | None = None,
) -> SearchTask:
    """Of old: ``SearchTask`` makes tasks.

    Parameters
    ----------
    func, args, target, target_host, hardware_params :
        As of :class:`SearchTask`.
    """
    raise ValueError(
        'The API "auto_scheduler.create_task" is deprecated. '
        "SearchTask(func=..., args=..., target=...) makes tasks"
    )


def auto_schedule(
    task: SearchTask, search_policy: Any = None, tuning_options: TuningOptions | None = None
) -> Any:
    """Of old: ``SearchTask.tune`` searches.

    Parameters
    ----------
    task, search_policy, tuning_options :
        As of :meth:`SearchTask.tune`.
    """
    raise ValueError(
        'The API "auto_scheduler.auto_schedule" is deprecated: task.tune(tuning_options) searches, and '
        "task.apply_best(log_file) gives the schedule"
    )
