"""How long kernels of a model take with the schedules of their operators: what a search has to beat.

Logs keep it in comments, which readers of records skip:

    # untuned {"target": "llvm", "workload_key": "[...]", "seconds": 0.0012}

Where the fastest record is slower than that, a build leaves the kernel its operators' schedule.
"""

from __future__ import annotations

import json
import logging
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tvm.driver.build_module import build
from tvm.support.files import append_lines, open_lines
from tvm.te.schedule import Schedule
from tvm.te.tensor import Tensor

from .measure_types import BuildResult, MeasureErrorNo, MeasureInput
from .task import Task

logger = logging.getLogger("auto_scheduler")

# the schedule and the arguments of a kernel that is built without records
Untuned = Callable[[], tuple[Schedule, list[Tensor]]]

_MARK = "# untuned "
_RUNS = 3  # of which the fastest counts: what disturbs one must not let slow records look fast


def read_untuned(log: Any) -> dict[tuple[str, str], float]:
    """The seconds of a log's untuned kernels, by the kind of the target and the workload."""
    found: dict[tuple[str, str], float] = {}
    with open_lines(log) as file:
        for line in file:
            if not line.startswith(_MARK):
                continue
            try:
                noted = json.loads(line.removeprefix(_MARK))
                key = noted["target"], noted["workload_key"]
                found[key] = min(float(noted["seconds"]), found.get(key, float("inf")))
            except (ValueError, KeyError, TypeError):
                logger.warning("%s: an incomplete comment is left out: %s", log, line.rstrip())
    return found


def note_untuned(log: Any, task: Task, runner: Any) -> float | None:
    """Measure a task's untuned kernel, unless a log has it, and add it to the log.

    Parameters
    ----------
    log : str
        The log, which need not exist.
    task : SearchTask
        The task; of programs without operators' schedules nothing is measured.
    runner : ProgramRunner
        Measures it.

    Returns
    -------
    float or None
        Seconds.
    """
    if task.untuned is None:
        return None
    key = task.target.kind.name, task.workload_key
    known = read_untuned(log).get(key) if Path(log).exists() else None
    if known is not None:
        return known
    seconds = _measured(task, task.untuned, runner)
    if seconds is not None:
        noted = {"target": key[0], "workload_key": key[1], "seconds": seconds}
        append_lines(log, f"{_MARK}{json.dumps(noted)}\n")
    return seconds


def _measured(task: Task, untuned: Untuned, runner: Any) -> float | None:
    with tempfile.TemporaryDirectory(prefix="tvm-auto-scheduler-") as folder:
        path = str(Path(folder) / "untuned.so")
        with task.target:
            schedule, args = untuned()
            build(schedule, args, target=task.target).export_library(path)
        built = BuildResult(path, args, MeasureErrorNo.NO_ERROR, None, 0.0)
        inputs = [MeasureInput(task, task.compute_dag.init_state)] * _RUNS
        results = runner.run(inputs, [built] * _RUNS, 0)
    good = [res.seconds for res in results if res.error_no == MeasureErrorNo.NO_ERROR]
    if not good:
        logger.warning(
            "the untuned kernel of %s was not measured: %s", task.desc, results[0].error_msg
        )
        return None
    return float(min(good))
