"""`tvmc tune`: measure candidates of a model's kernels, and keep records of them.

tvmc tune resnet50.onnx --target "llvm -mcpu=native" --trials 64 -o records.log
tvmc compile resnet50.onnx --target "llvm -mcpu=native" --tuning-records records.log
"""

from __future__ import annotations

import argparse
import importlib
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tvm import autotvm
from tvm.autotvm.measure import create_measure_batch
from tvm.autotvm.task import Task
from tvm.driver.tvmc import frontends
from tvm.driver.tvmc.arguments import positive
from tvm.driver.tvmc.autoscheduler import (
    Measuring,
    add_auto_scheduler_args,
    autoscheduler_get_tuning_tasks,
    hardware_of,
    listed,
    schedule_tasks,
    search_tasks,
)
from tvm.driver.tvmc.config_options import set_defaults
from tvm.driver.tvmc.errors import TVMCException
from tvm.driver.tvmc.model import TVMCModel
from tvm.driver.tvmc.target import generate_target_args, reconstruct_target_args, target_from_cli
from tvm.driver.tvmc.tracker import tracker_host_port_from_cli
from tvm.driver.tvmc.transform import (
    TRANSFORM_ARGS,
    apply_graph_transforms,
    generate_transform_args,
    parse_graph_transform_args,
)
from tvm.driver.tvmc.tuning_records import check_kind, check_records
from tvm.driver.tvmc.tuning_report import write_report
from tvm.error import install_hint
from tvm.ir.module import IRModule
from tvm.target import Target

from .messages import tell

__all__ = [
    "add_tune_parser", "autoscheduler_get_tuning_tasks", "autotvm_get_tuning_tasks", "drive_tune",
    "filter_tasks", "gen_task_list", "schedule_tasks", "tune_model", "tune_tasks",
]  # fmt: skip

logger = logging.getLogger("TVMC")

_XGB: dict[str, dict[str, Any]] = {
    "xgb": {"loss_type": "reg"},
    "xgb_knob": {"loss_type": "reg", "feature_type": "knob"},
    "xgb_itervar": {"loss_type": "reg", "feature_type": "itervar"},
    "xgb_curve": {"loss_type": "reg", "feature_type": "curve"},
    "xgb_rank": {"loss_type": "rank"},
    "xgb_rank_knob": {"loss_type": "rank", "feature_type": "knob"},
    "xgb_rank_itervar": {"loss_type": "rank", "feature_type": "itervar"},
    "xgb_rank_curve": {"loss_type": "rank", "feature_type": "curve"},
}
_TUNERS = ("ga", "gridsearch", "random", *_XGB)


_EPILOG = """examples:
  tvmc tune resnet50.onnx --target llvm -o records.log --tasks list
  tvmc tune resnet50.onnx --target llvm -o records.log --trials 64 --tasks 0,3-5
  tvmc compile resnet50.onnx --target llvm --tuning-records records.log
"""


def add_tune_parser(
    subparsers: Any, _: argparse.ArgumentParser, json_params: Mapping[str, Any]
) -> None:
    """`tvmc tune`."""
    parser = subparsers.add_parser(
        "tune", help="tune the kernels of a model",
        usage="tvmc tune FILE --target TARGET -o RECORDS [options]",
        description="Measure candidates of the kernels of a model.",
        common=(
            "FILE", "output", "target", "trials", "minutes", "tasks", "tuner", "enable_autoscheduler",
            "report", "input_shapes",
        ),
        epilog=_EPILOG,
    )  # fmt: skip
    parser.set_defaults(func=drive_tune)
    frontends.add_model_args(parser)
    parser.add_argument(
        "-o",
        "--output",
        required=True,
        metavar="FILE",
        help="file of the records, with which tuning goes on",
    )
    parser.add_argument(
        "--tasks", default="all", metavar="TASKS",
        help="which: all, or places as in 0,3-5; list shows them",
    )  # fmt: skip
    _add_search_args(parser)
    _add_measure_args(parser)
    add_auto_scheduler_args(parser)
    generate_target_args(parser)
    generate_transform_args(parser)
    set_defaults(parser, json_params)


def _add_search_args(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--trials",
        type=positive,
        default=10000,
        help="candidates of each task, those of the file too (10000)",
    )
    parser.add_argument(
        "--minutes", type=positive, metavar="N", help="stop after so many minutes in all"
    )
    parser.add_argument(
        "--early-stopping", type=positive, metavar="TRIALS",
        help="stop a task after so many trials without a faster one",
    )  # fmt: skip
    parser.add_argument(
        "--tuner",
        choices=_TUNERS,
        metavar="TUNER",
        help=f"the search: {', '.join(_TUNERS)} (xgb if it is installed, else ga)",
    )
    parser.add_argument(
        "--no-resume", "--overwrite", action="store_true", dest="no_resume",
        help="start over: what the file of records has is kept beside it and not used",
    )  # fmt: skip
    parser.add_argument("--tuning-records", metavar="PATH", help="records to learn from at first")
    parser.add_argument("--report", metavar="FILE", help="page of HTML: progress, gains, schedules")


def _add_measure_args(parser: argparse.ArgumentParser) -> None:
    numbers = {
        "--number": (10, "runs whose mean is one measurement"),
        "--repeat": (1, "measurements of a candidate"),
        "--min-repeat-ms": (None, "least milliseconds of a measurement"),
        "--timeout": (10, "seconds that a candidate may take"),
        "--parallel": (4, "candidates that are built at a time"),
    }
    for name, (default, text) in numbers.items():
        shown = "" if default is None else f" ({default})"
        parser.add_argument(name, type=positive, default=default, metavar="N", help=text + shown)
    parser.add_argument(
        "--rpc-tracker", metavar="HOST:PORT", help="measure on machines of a tracker"
    )
    parser.add_argument(
        "--rpc-key", metavar="KEY", help="the kind of machine that the tracker gives"
    )
    parser.add_argument(
        "--dask", metavar="HOST:PORT",
        help="build, and without a tracker measure, on the workers of a Dask scheduler",
    )  # fmt: skip


def drive_tune(args: argparse.Namespace) -> int:
    """Do what the arguments say."""
    if not args.target:
        raise TVMCException("--target is required, such as --target llvm")
    frontends.check_file(args.FILE)
    hostname, port = tracker_host_port_from_cli(args.rpc_tracker)
    tune_model(
        frontends.load_from_arguments(args),
        args.target,
        tuning_records=args.output,
        prior_records=args.tuning_records,
        enable_autoscheduler=args.enable_autoscheduler,
        rpc_key=args.rpc_key,
        hostname=hostname,
        port=port or 0,
        trials=args.trials,
        tuner=args.tuner,
        min_repeat_ms=args.min_repeat_ms,
        early_stopping=args.early_stopping,
        timeout=args.timeout,
        repeat=args.repeat,
        number=args.number,
        parallel=args.parallel,
        additional_target_options=reconstruct_target_args(args),
        tasks_filter=args.tasks,
        resume=not args.no_resume,
        hardware_params=hardware_of(args),
        include_simple_tasks=args.include_simple_tasks,
        log_estimated_latency=args.log_estimated_latency,
        minutes=args.minutes,
        dask=args.dask,
        report=args.report,
        **parse_graph_transform_args(args),
    )
    return 0


def tune_model(
    tvmc_model: TVMCModel,
    target: str | Target,
    tuning_records: str | None = None,
    prior_records: str | None = None,
    enable_autoscheduler: bool = False,
    rpc_key: str | None = None,
    hostname: str | None = None,
    port: int | str = 9090,
    trials: int = 10000,
    target_host: str | Target | None = None,
    tuner: str | None = None,
    min_repeat_ms: int | None = None,
    early_stopping: int | None = None,
    timeout: int = 10,
    repeat: int = 1,
    number: int = 10,
    parallel: int = 4,
    hardware_params: Any = None,
    include_simple_tasks: bool = False,
    log_estimated_latency: bool = False,
    additional_target_options: Mapping[str, Mapping[str, Any]] | None = None,
    tasks_filter: str = "all",
    resume: bool = True,
    minutes: float | None = None,
    dask: str | None = None,
    report: str | None = None,
    **transform_args: Any,
) -> str | None:
    """Tune a model's kernels, on this machine, on those of a tracker, or on a cluster.

    Parameters
    ----------
    tvmc_model : TVMCModel
        The model.
    target : str or Target
        The target.
    tuning_records : str, optional
        The file of the records; by default one that belongs to the model.
    prior_records : str, optional
        Records that the tuner learns from at first.
    enable_autoscheduler : bool
        Whether schedules are searched for, without templates.
    trials : int
        Candidates of each task at most, those in the file of records among them; of all tasks
        together, if schedules are searched for.
    target_host : str or Target, optional
        The target's host.
    tuner : str, optional
        "xgb", "xgb_knob", "xgb_itervar", "xgb_curve", the same with "xgb_rank", "ga", "random" or
        "gridsearch"; by default "xgb" if xgboost is installed, else "ga".
    min_repeat_ms : int, optional
        Least milliseconds of a measurement.
    early_stopping : int, optional
        Stop a task after so many trials without a faster one.
    timeout : int
        Seconds that a candidate may take.
    repeat, number : int
        Measurements of a candidate, and runs in each.
    parallel : int
        Candidates that are built at a time.
    additional_target_options : dict, optional
        More options by kind and name.
    tasks_filter : str
        Which tasks, as :func:`filter_tasks` reads it; with "list" they are printed.
    resume : bool
        Whether tuning goes on with the records that the file has; else they are kept in a file
        beside it, and not used.
    transform_args : dict
        desired_layout, desired_layout_ops, mixed_precision, mixed_precision_ops,
        mixed_precision_calculation_type, mixed_precision_acc_type.
    hardware_params : auto_scheduler.HardwareParams, optional
        The machine that schedules are searched for; by default usual numbers of the target.
    include_simple_tasks : bool
        Whether schedules of kernels that reduce nothing are searched for, too.
    log_estimated_latency : bool
        Whether a search appends the estimated latency to ``total_latency.tsv`` behind each round.
    minutes : float, optional
        Stop after so many minutes in all.
    dask : str, optional
        The address of a Dask scheduler, whose workers build and, without a tracker, measure.
    report : str, optional
        A page of HTML to write: progress, gains, schedules, records.
    rpc_key, hostname, port
        The kind of machine, and the tracker that gives it out; by default this machine measures.

    Returns
    -------
    str
        The path of the records; None if tasks were only listed.
    """
    if bool(rpc_key) != bool(hostname):
        raise TVMCException("other machines require --rpc-tracker HOST:PORT and --rpc-key KEY")
    if unknown := [name for name in transform_args if name not in TRANSFORM_ARGS]:
        raise TypeError(f"tune has no parameter {unknown[0]!r}")
    found, _ = target_from_cli(target, additional_target_options)
    tasks: Sequence[Any]
    weights: Sequence[float] = ()
    if enable_autoscheduler:
        tasks, weights = autoscheduler_get_tuning_tasks(
            tvmc_model.mod, tvmc_model.params, found, target_host, transform_args,
            hardware_params, include_simple_tasks,
        )  # fmt: skip
    else:
        tasks = autotvm_get_tuning_tasks(
            tvmc_model.mod, tvmc_model.params, found, target_host, transform_args
        )
    chosen, do_list = filter_tasks(tasks, tasks_filter)
    if do_list:
        print(gen_task_list(tasks, enable_autoscheduler))
        return None
    if enable_autoscheduler:
        known = {id(task): weight for task, weight in zip(tasks, weights, strict=True)}
        weights = [known[id(task)] for task in chosen]
    records = tuning_records or str(tvmc_model.default_tuning_records_path())
    if not resume:
        _put_aside(Path(records))
    measuring = Measuring(
        trials, timeout, repeat, number, min_repeat_ms, parallel, early_stopping,
        None if minutes is None else 60.0 * minutes,
        (rpc_key, hostname, int(port)) if rpc_key and hostname else None, dask,
    )  # fmt: skip
    try:
        if enable_autoscheduler:
            search_tasks(chosen, weights, records, measuring, prior_records, log_estimated_latency)
        else:
            check_kind(records, is_auto_scheduler=False)
            option = autotvm.measure_option(measuring.builder(autotvm), measuring.runner(autotvm))
            tune_tasks(
                chosen, records, option, tuner or _installed_tuner(), trials, early_stopping,
                prior_records, measuring.seconds,
            )  # fmt: skip
    except KeyboardInterrupt:
        tell(f"stopped; what was measured is in {records}, the same command goes on from there")
        raise
    finally:
        if report and Path(records).exists():
            write_report(report, records, chosen, weights)
    return records


def _installed_tuner() -> str:
    try:
        importlib.import_module("xgboost")
    except ImportError:
        tell(f"tuning by ga: xgb requires the package xgboost, {install_hint('xgboost')}")
        return "ga"
    return "xgb"


def _put_aside(records: Path) -> None:
    """Give a file of records another name, so that nothing that was measured is lost."""
    if not records.exists():
        return
    names = [records.with_name(f"{records.name}.{number}") for number in range(1, 10000)]
    free = next(name for name in names if not name.exists())
    records.rename(free)
    tell(f"starting over; the records of before are in {free}")


def autotvm_get_tuning_tasks(
    mod: IRModule,
    params: Mapping[str, Any],
    target: str | Target,
    target_host: str | Target | None = None,
    transform_args: Mapping[str, Any] | None = None,
) -> list[Task]:
    """The tasks of a model, after what the arguments do to it.

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
    """
    mod = apply_graph_transforms(mod, transform_args)
    tasks: list[Task] = autotvm.task.extract_from_program(mod, dict(params), target, target_host)
    return tasks


def filter_tasks(tasks: Sequence[Any], expr: str) -> tuple[list[Any], bool]:
    """Some of the tasks, and whether they are to be listed.

    Parameters
    ----------
    tasks : list of Task or SearchTask
        All tasks.
    expr : str
        Places and ranges of places with commas between, such as "0,3-5,8-"; "all"; "list".
    """
    chosen: dict[int, None] = {}
    words = [word.strip() for word in expr.split(",")]
    for word in words:
        if word not in ("list", "help"):
            chosen.update(dict.fromkeys(_index_range(word, len(tasks))))
    do_list = any(word in ("list", "help") for word in words)
    return [tasks[i] for i in sorted(chosen)] if chosen else list(tasks), do_list


def _index_range(word: str, count: int) -> range:
    if word == "all":
        return range(count)
    first, dash, last = word.partition("-")
    try:
        start = int(first) if first or not dash else 0
        stop = int(last) if last else count - 1 if dash else start
    except ValueError:
        raise TVMCException(
            f"--tasks takes places such as 0,3-5, all or list, got {word!r}"
        ) from None
    if not 0 <= start <= stop < count:
        raise TVMCException(f"--tasks has places from 0 to {count - 1}, got {word!r}")
    return range(start, stop + 1)


def gen_task_list(tasks: Sequence[Any], enable_autoscheduler: bool) -> str:
    """The tasks as a list to be read.

    Parameters
    ----------
    tasks : list of Task or SearchTask
        The tasks.
    enable_autoscheduler : bool
        Whether they are of the auto-scheduler.
    """
    if enable_autoscheduler:
        return "\n".join(["Available Tasks for tuning:", *listed(tasks)])
    lines = [
        f"  {i}. {task.name} of {', '.join(_shapes(task))}: {len(task.config_space)} candidates"
        for i, task in enumerate(tasks)
    ]
    return "\n".join(["Available Tasks for tuning:", *lines])


def _shapes(task: Task) -> list[str]:
    tensors = [arg for arg in task.args if isinstance(arg, tuple) and arg and arg[0] == "TENSOR"]
    return ["x".join([str(extent) for extent in shape]) for _, shape, _ in tensors]


def tune_tasks(
    tasks: Sequence[Task],
    log_file: str,
    measure_option: Mapping[str, Any],
    tuner: str,
    trials: int,
    early_stopping: int | None = None,
    tuning_records: str | None = None,
    seconds: float | None = None,
) -> None:
    """Tune tasks one after the other, and add the records to a file.

    Tuning goes on with the records that the file has. What the cost model takes is measured first,
    so that a record is never behind it.

    Parameters
    ----------
    tasks : list of Task
        The tasks.
    log_file : str
        The file.
    measure_option : dict
        From :func:`tvm.autotvm.measure_option`.
    tuner : str
        As of :func:`tune_model`.
    trials : int
        Candidates of each task at most, those in the file among them.
    early_stopping : int, optional
        Stop a task after so many trials without a faster one.
    tuning_records : str, optional
        Records that the tuner learns from at first.
    seconds : float, optional
        How long it may take in all; each task has its share of what is left.
    """
    if not tasks:
        logger.warning("there were no tasks found to be tuned")
        return
    if tuning_records:
        check_records(tuning_records)
    deadline = float("inf") if seconds is None else time.monotonic() + seconds
    earlier = _earlier_records(log_file)
    write = autotvm.callback.log_to_file(log_file)
    for i, task in enumerate(tasks):
        search = _tuner_of(tuner, task)
        if tuning_records:
            search.load_history(autotvm.record.load_from_file(tuning_records))
        known = search.resume(earlier)
        if not known and not search.starts():  # others try it first
            _measure_start(task, measure_option, write)
        title = f"[Task {i + 1:2d}/{len(tasks):2d}]"
        if known:
            tell(f"{title} {known} candidates are known from {log_file}")
        left = min(trials, len(task.config_space)) - known
        share = None if seconds is None else (deadline - time.monotonic()) / (len(tasks) - i)
        if left > 0 and (share is None or share > 0):
            search.tune(
                n_trial=left, early_stopping=early_stopping, measure_option=measure_option,
                callbacks=[autotvm.callback.progress_bar(left, title, seconds=share), write],
                time_budget=share,
            )  # fmt: skip


def _earlier_records(path: str) -> list[Any]:
    """The records of a file to go on with; none if there is no file yet."""
    if not Path(path).exists():
        return []
    check_records(path)
    return list(autotvm.record.load_from_file(path))


def _tuner_of(name: str, task: Task) -> autotvm.tuner.Tuner:
    if name in _XGB:
        return autotvm.tuner.XGBTuner(task, **_XGB[name])
    if name == "ga":
        return autotvm.tuner.GATuner(task, pop_size=50)
    if name == "random":
        return autotvm.tuner.RandomTuner(task)
    if name == "gridsearch":
        return autotvm.tuner.GridSearchTuner(task)
    raise TVMCException(f"invalid tuner: {name}; choose from {', '.join(_TUNERS)}")


def _measure_start(
    task: Task, measure_option: Mapping[str, Any], write: Callable[..., None]
) -> None:
    """Measure what the template takes without a record."""
    start = task.config_space.start
    if start is None:
        return
    inputs = [autotvm.MeasureInput(task.target, task, task.config_space.get(start))]
    write(None, inputs, create_measure_batch(task, measure_option)(inputs))
