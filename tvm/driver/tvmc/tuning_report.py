"""What a file of tuning records says of each task: progress, what was gained, how near the roofline it is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import Any

from tvm import auto_scheduler, autotvm
from tvm.auto_scheduler.untuned import read_untuned
from tvm.autotvm.measure import MeasureErrorNo
from tvm.autotvm.record import own_records
from tvm.autotvm.utils import get_const_tuple
from tvm.driver.tvmc.report_page import page
from tvm.driver.tvmc.tuning_records import has_searched_states
from tvm.support.dtype import dtype as as_dtype
from tvm.support.files import write_text
from tvm.utils.roofline.roof import measured_roof


@dataclass
class TaskReport:
    """The records of one task."""

    name: str
    weight: float  # how often the model has it
    flop: float
    bytes: float  # of its arguments
    untuned: float | None = None  # seconds without records
    seconds: list[float | None] = field(default_factory=list)  # of each trial, None if it failed
    failures: Counter[str] = field(default_factory=Counter)
    schedule: str = ""  # the fastest one

    @property
    def best(self) -> float | None:
        """The seconds of the fastest trial."""
        return min([s for s in self.seconds if s is not None], default=None)

    @property
    def used(self) -> float | None:
        """The seconds of what a build takes: the fastest trial, or the untuned kernel."""
        return min([s for s in (self.best, self.untuned) if s is not None], default=None)


def write_report(
    path: str, records: str, tasks: Sequence[Any], weights: Sequence[float] | None = None
) -> None:
    """Write a page of HTML that needs no other file.

    Parameters
    ----------
    path : str
        The page.
    records : str
        The file of records.
    tasks : list of Task or SearchTask
        The tasks, in the order of the page.
    weights : list of float, optional
        How often the model has each.
    """
    counts = list(weights) if weights and len(weights) == len(tasks) else [1.0] * len(tasks)
    if has_searched_states(records):
        reports = _of_searches(records, tasks, counts)
    else:
        known = list(autotvm.record.load_from_file(records))
        reports = [
            _of_template(task, weight, known) for task, weight in zip(tasks, counts, strict=True)
        ]
    roof = measured_roof(tasks[0].target) if tasks else None
    write_text(path, page(reports, roof, Path(records).name, Path(records).read_bytes()))


def _of_searches(
    records: str, tasks: Sequence[auto_scheduler.SearchTask], weights: Sequence[float]
) -> list[TaskReport]:
    untuned = read_untuned(records)
    found: dict[tuple[str, str], TaskReport] = {}
    states: dict[tuple[str, str], Any] = {}
    dags: dict[tuple[str, str], Any] = {}
    for task, weight in zip(tasks, weights, strict=True):
        key = task.target.kind.name, task.workload_key
        dags[key] = task.compute_dag
        flop, moved = task.compute_dag.flop_ct, _bytes_of(task.compute_dag.tensors)
        found[key] = TaskReport(task.desc, weight, flop, moved, untuned.get(key))
    for inp, res in auto_scheduler.load_records(records):
        key = inp.task.target.kind.name, inp.task.workload_key
        if (report := found.get(key)) is None:
            continue
        best = report.best
        _note(report, res.error_no, res.seconds)
        if report.best != best:
            states[key] = inp.state
    for key, state in states.items():
        text = dags[key].infer_bound_from_state(state)
        code = dags[key].print_python_code_from_state(state)
        found[key].schedule = f"{text}\n\n{code}"
    return list(found.values())


def _of_template(task: autotvm.task.Task, weight: float, records: Iterable[Any]) -> TaskReport:
    report = TaskReport(f"{task.name}{_shapes(task)}", weight, task.flop, 0.0)
    for inp, res in own_records(task, records):
        best = report.best
        seconds = sum(res.costs) / len(res.costs) if res.error_no == 0 else None
        _note(report, res.error_no, seconds)
        if inp.config.index == task.config_space.start and seconds is not None:
            report.untuned = min(seconds, report.untuned or seconds)
        if report.best != best:
            report.schedule = str(inp.config)
            with task.target:
                report.bytes = _bytes_of(task.instantiate(inp.config)[1])
    return report


def _note(report: TaskReport, error_no: int, seconds: float | None) -> None:
    if error_no != MeasureErrorNo.NO_ERROR:
        report.failures[MeasureErrorNo(error_no).name.lower()] += 1
        seconds = None
    report.seconds.append(seconds)


def _shapes(task: autotvm.task.Task) -> str:
    tensors = [arg for arg in task.args if isinstance(arg, tuple) and arg and arg[0] == "TENSOR"]
    return "".join([f" {'x'.join(map(str, shape))}" for _, shape, _ in tensors])


def _bytes_of(tensors: Sequence[Any]) -> float:
    return float(
        sum([prod(get_const_tuple(t.shape)) * as_dtype(str(t.dtype)).bits / 8 for t in tensors])
    )
