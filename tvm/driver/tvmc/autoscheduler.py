"""`tvmc tune --enable-autoscheduler`: schedules that are searched for, without templates."""

from __future__ import annotations

import argparse
import dataclasses
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tvm import auto_scheduler
from tvm.auto_scheduler.task_scheduler import LogEstimatedLatency, TaskSchedulerCallback
from tvm.driver.tvmc.arguments import positive
from tvm.driver.tvmc.transform import apply_graph_transforms
from tvm.driver.tvmc.tuning_records import check_kind
from tvm.ir.module import IRModule
from tvm.target import Target

logger = logging.getLogger("TVMC")

# option, what it says
_HARDWARE = {
    "num-cores": "cores of the processor",
    "vector-unit-bytes": "width of its vectors",
    "cache-line-bytes": "size of a cache line",
    "max-shared-memory-per-block": "bytes of shared memory of a block of threads",
    "max-local-memory-per-block": "bytes of local memory of a block of threads",
    "max-threads-per-block": "threads of a block",
    "max-vthread-extent": "virtual threads",
    "warp-size": "threads of a warp",
}
# a task is left when so many of its trials have brought nothing faster
PLATEAU = 192


@dataclasses.dataclass(frozen=True)
class Measuring:
    """How candidates are measured, and for how long."""

    trials: int
    timeout: int
    repeat: int
    number: int
    min_repeat_ms: int | None
    parallel: int
    early_stopping: int | None
    seconds: float | None
    rpc: tuple[str, str, int] | None  # key, host and port of a tracker
    dask: str | None

    def builder(self, tuner: Any) -> Any:
        """The builder of a tuner: of ``autotvm``, or ``auto_scheduler``."""
        if self.dask is not None:
            return tuner.DaskBuilder(self.dask, timeout=self.timeout)
        return tuner.LocalBuilder(timeout=self.timeout, n_parallel=self.parallel)

    def runner(self, tuner: Any) -> Any:
        """The runner of a tuner."""
        how = {
            "timeout": self.timeout, "number": self.number, "repeat": self.repeat,
            "min_repeat_ms": self.min_repeat_ms or 0,
        }  # fmt: skip
        if self.rpc is not None:
            return tuner.RPCRunner(*self.rpc, n_parallel=1, **how)
        if self.dask is not None:
            return tuner.DaskRunner(self.dask, **how)
        return tuner.LocalRunner(**how)


def add_auto_scheduler_args(parser: argparse.ArgumentParser) -> None:
    """The options of the auto-scheduler."""
    group = parser.add_argument_group("auto-scheduler")
    group.add_argument(
        "--enable-autoscheduler", action="store_true",
        help="search without templates; --trials are of all tasks",
    )  # fmt: skip
    for name, text in _HARDWARE.items():
        group.add_argument(f"--{name}", type=positive, metavar="N", help=f"{text} (the target's)")
    group.add_argument(
        "--include-simple-tasks", action="store_true", help="tune kernels that reduce nothing, too"
    )
    group.add_argument(
        "--log-estimated-latency", action="store_true",
        help="append the estimated latency of the model to total_latency.tsv behind each round",
    )  # fmt: skip


def hardware_of(args: argparse.Namespace) -> auto_scheduler.HardwareParams | None:
    """The machine that the options describe; None if they say nothing."""
    given = {name.replace("-", "_"): getattr(args, name.replace("-", "_")) for name in _HARDWARE}
    if not any(given.values()):
        return None
    return auto_scheduler.HardwareParams(**given, target=args.target)


def autoscheduler_get_tuning_tasks(
    mod: IRModule,
    params: Mapping[str, Any],
    target: str | Target,
    target_host: str | Target | None = None,
    transform_args: Mapping[str, Any] | None = None,
    hardware_params: auto_scheduler.HardwareParams | None = None,
    include_simple_tasks: bool = False,
) -> tuple[list[auto_scheduler.SearchTask], list[int]]:
    """The tasks of a model, and how often it has each.

    Parameters
    ----------
    mod : IRModule
        The model.
    params : dict of str to NDArray
        Its parameters.
    target, target_host : str or Target
        The target, and its host.
    transform_args : dict, optional
        As :func:`tvm.driver.tvmc.transform.apply_graph_transforms` takes them.
    hardware_params : HardwareParams, optional
        The machine; by default usual numbers of the target.
    include_simple_tasks : bool
        Whether kernels that reduce nothing are tasks.
    """
    mod = apply_graph_transforms(mod, transform_args)
    tasks, weights = auto_scheduler.extract_tasks(
        mod["main"], dict(params), target, target_host, hardware_params, include_simple_tasks
    )
    return tasks, weights


def schedule_tasks(
    tasks: Sequence[auto_scheduler.SearchTask],
    task_weights: Sequence[float],
    tuning_options: auto_scheduler.TuningOptions,
    prior_records: str | None = None,
    log_estimated_latency: bool = False,
) -> None:
    """Tune tasks together, those first from which the model gains most.

    Parameters
    ----------
    tasks : list of SearchTask
        The tasks.
    task_weights : list of float
        How often the model has each.
    tuning_options : TuningOptions
        How much is measured, and how.
    prior_records : str, optional
        Records to go on with.
    log_estimated_latency : bool
        Whether the estimated latency is appended to ``total_latency.tsv`` behind each round.
    """
    if not tasks:
        logger.warning("there were no tasks found to be tuned")
        return
    callbacks: list[TaskSchedulerCallback] = []
    if log_estimated_latency:
        callbacks.append(LogEstimatedLatency("total_latency.tsv"))
    tuner = auto_scheduler.TaskScheduler(
        tasks, task_weights, load_log_file=prior_records, callbacks=callbacks
    )
    tuner.tune(tuning_options, per_task_early_stopping=PLATEAU)


def search_tasks(
    tasks: Sequence[auto_scheduler.SearchTask],
    task_weights: Sequence[float],
    records: str,
    measuring: Measuring,
    prior_records: str | None,
    log_estimated_latency: bool,
) -> None:
    """Tune tasks with the records in a file to go on with."""
    for path in (records, prior_records):
        if path is not None:
            check_kind(path, is_auto_scheduler=True)
    options = auto_scheduler.TuningOptions(
        num_measure_trials=measuring.trials, early_stopping=measuring.early_stopping,
        builder=measuring.builder(auto_scheduler), runner=measuring.runner(auto_scheduler), time_budget=measuring.seconds,
        measure_callbacks=[auto_scheduler.RecordToFile(records)],
        resume=records if Path(records).exists() else None,
        # in short rounds all tasks have their turn
        num_measures_per_round=64 if measuring.seconds is None else 16,
    )  # fmt: skip
    schedule_tasks(tasks, task_weights, options, prior_records, log_estimated_latency)


def listed(tasks: Sequence[auto_scheduler.SearchTask]) -> list[str]:
    """A line of each task."""
    return [
        f"  {i}. {task.desc}: {task.compute_dag.flop_ct / 1e6:.4g} MFLOP, {task.workload_key}"
        for i, task in enumerate(tasks)
    ]
