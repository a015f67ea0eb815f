"""Records of measurements: a line of JSON each, in the format of the classic release.

{"i": [[workload, target, hardware, host, layouts, inputs], [[], steps]], "r": [costs, ...], "v": "v0.6"}
"""

from __future__ import annotations

import argparse
import json
import logging
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tvm.error import TVMError
from tvm.runtime.object import Object
from tvm.support.files import append_lines, open_lines, write_text
from tvm.target import Target

from .measure_types import MeasureErrorNo, MeasureInput, MeasureResult
from .state_object import StateObject
from .steps import SplitStep, step_from_row, step_row
from .task import task_from_row
from .utils import calc_workload_dis_factor, decode_workload_key

logger = logging.getLogger("auto_scheduler")

LOG_VERSION = "v0.6"


class MeasureCallback(Object):
    """What a search calls with each batch of outcomes."""

    def callback(
        self, policy: Any, inputs: Sequence[MeasureInput], results: Sequence[MeasureResult]
    ) -> None:
        """Take notice of outcomes.

        Parameters
        ----------
        policy : SearchPolicy
            The search.
        inputs : list of MeasureInput
            The candidates.
        results : list of MeasureResult
            Their outcomes.
        """
        raise NotImplementedError


class RecordToFile(MeasureCallback):
    """Appends each outcome to a log.

    Parameters
    ----------
    filename : str
        The log.
    """

    def __init__(self, filename: Any) -> None:
        self.filename = os.fspath(filename)
        folder = Path(self.filename).resolve().parent
        folder.mkdir(parents=True, exist_ok=True)

    def callback(
        self, policy: Any, inputs: Sequence[MeasureInput], results: Sequence[MeasureResult]
    ) -> None:
        append_lines(self.filename, _lines(inputs, results))


class RecordReader(Object):
    """Reads the records of a log.

    Parameters
    ----------
    filename : str
        The log. A line that a writer was stopped within is left out, with a warning.
    """

    def __init__(self, filename: Any) -> None:
        if not isinstance(filename, (str, os.PathLike)):
            raise ValueError(
                f"RecordReader takes the name of a file, got {type(filename).__name__}"
            )
        self.filename = os.fspath(filename)

    def check_workload_key(self, inputs: Sequence[MeasureInput]) -> None:
        """Warn of records whose workloads are not registered here.

        Parameters
        ----------
        inputs : list of MeasureInput
            Candidates of records.
        """
        for inp in inputs:
            if not inp.task.workload_key:
                raise TVMError(f"{self.filename} has a record without a workload")

    def read_lines(
        self, max_lines: int | None = None, skip_lines: int = 0
    ) -> tuple[list[MeasureInput], list[MeasureResult]]:
        """The records of several lines.

        Parameters
        ----------
        max_lines : int, optional
            At most so many.
        skip_lines : int
            Of the first lines so many are left out.
        """
        found = list(self)[skip_lines or 0 :]
        if max_lines is not None and max_lines >= 0:
            found = found[:max_lines]
        self.check_workload_key([inp for inp, _ in found])
        return [inp for inp, _ in found], [res for _, res in found]

    def __iter__(self) -> Iterator[tuple[MeasureInput, MeasureResult]]:
        with open_lines(self.filename) as file:
            for number, line in enumerate(file, 1):
                if not line.strip() or line.startswith("#"):
                    continue
                try:
                    content = json.loads(line)
                except (json.JSONDecodeError, RecursionError):
                    logger.warning(
                        "%s: an incomplete record is left out: line %d", self.filename, number
                    )
                    continue
                yield _record(content)


def dump_record_to_string(inp: MeasureInput, res: MeasureResult) -> str:
    """The line of a record, with its end.

    Parameters
    ----------
    inp : MeasureInput
        The candidate.
    res : MeasureResult
        Its outcome.
    """
    steps = ", ".join([_json(step_row(step)) for step in inp.state.transform_steps])
    costs = ", ".join([_number(float(cost.value)) for cost in res.costs])
    result = f"[[{costs}], {res.error_no}, {_number(res.all_cost)}, {int(res.timestamp)}]"
    candidate = f"[{_json(inp.task.row())}, [[], [{steps}]]]"
    return f'{{"i": {candidate}, "r": {result}, "v": "{LOG_VERSION}"}}\n'


def load_record_from_string(record: str) -> tuple[MeasureInput, MeasureResult]:
    """The record of a line.

    Parameters
    ----------
    record : str
        The line.
    """
    try:
        content = json.loads(record)
    except json.JSONDecodeError as error:
        raise TVMError(
            f"a record must be a line of JSON, got {record.strip()[:60]!r}: {error}"
        ) from None
    return _record(content)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _number(value: float) -> str:
    """Six digits, as classic logs have them."""
    return f"{value:g}"


def _record(content: Any) -> tuple[MeasureInput, MeasureResult]:
    try:
        (task, state), result = content["i"], content["r"]
        steps = tuple([step_from_row(row) for row in state[1]])
        costs, error_no, all_cost, timestamp = result
        seconds = [float(cost) for cost in costs]
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise TVMError(
            f"a record needs a candidate and a result, {type(error).__name__}: {error} in "
            f"{str(content)[:60]!r}"
        ) from error
    concrete = not any([isinstance(step, SplitStep) and None in step.lengths for step in steps])
    empty = StateObject((), steps, {}, None, concrete)
    found = MeasureInput(task_from_row(task), empty)
    return found, MeasureResult(seconds, error_no, None, all_cost, timestamp)


def load_records(filename: Any) -> Iterator[tuple[MeasureInput, MeasureResult]]:
    """The records of a log.

    Parameters
    ----------
    filename : str
        The log.
    """
    yield from RecordReader(filename)


def save_records(
    filename: Any, inputs: Sequence[MeasureInput], results: Sequence[MeasureResult]
) -> None:
    """Append records to a log.

    Parameters
    ----------
    filename : str
        The log.
    inputs : list of MeasureInput
        The candidates.
    results : list of MeasureResult
        Their outcomes.
    """
    append_lines(filename, _lines(inputs, results))


def _lines(inputs: Sequence[MeasureInput], results: Sequence[MeasureResult]) -> str:
    pairs = zip(inputs, results, strict=True)
    return "".join([dump_record_to_string(inp, res) for inp, res in pairs])


def load_best_record(
    filename: Any,
    workload_key: str | None = None,
    target: Any = None,
    include_compatible: bool = False,
) -> tuple[MeasureInput | None, MeasureResult | None]:
    """The fastest record of a log.

    Parameters
    ----------
    filename : str
        The log.
    workload_key : str, optional
        Of which workload; by default any.
    target : str or Target, optional
        Of which kind of target; by default any.
    include_compatible : bool
        Whether records of workloads that divide the given one count too.

    Returns
    -------
    MeasureInput and MeasureResult, or None and None
    """
    wanted = None if target is None else Target(target)
    best: tuple[MeasureInput | None, MeasureResult | None] = (None, None)
    lowest = float("inf")
    for inp, res in load_records(filename):
        if res.error_no != MeasureErrorNo.NO_ERROR:
            continue
        if wanted is not None and inp.task.target.kind.name != wanted.kind.name:
            continue
        factor = _distance(workload_key, inp.task.workload_key, include_compatible)
        cost = res.seconds * factor
        if cost < lowest:
            best, lowest = (inp, res), cost
    return best


def _distance(wanted: str | None, found: str, include_compatible: bool) -> float:
    if wanted is None or wanted == found:
        return 1.0
    if not include_compatible:
        return float("inf")
    return calc_workload_dis_factor(decode_workload_key(wanted), decode_workload_key(found))


def distill_record_file(in_file: Any, out_file: Any) -> None:
    """Write the fastest record of each workload and target of a log.

    Parameters
    ----------
    in_file : str
        The log.
    out_file : str
        Where to write.
    """
    best: dict[tuple[str, str], tuple[MeasureInput, MeasureResult]] = {}
    for inp, res in load_records(in_file):
        key = (str(inp.task.target), inp.task.workload_key)
        is_good = res.error_no == MeasureErrorNo.NO_ERROR
        if is_good and (key not in best or res.seconds < best[key][1].seconds):
            best[key] = (inp, res)
    write_text(out_file, "".join([dump_record_to_string(*record) for record in best.values()]))
    logger.info("Extract %d best records from %s to %s", len(best), in_file, out_file)


def main() -> None:
    """``python -m tvm.auto_scheduler.measure_record --mode distill -i all.json -o best.json``"""
    parser = argparse.ArgumentParser(prog="python -m tvm.auto_scheduler.measure_record")
    parser.add_argument("--mode", choices=["distill"], required=True)
    parser.add_argument("--in_file", "--i", "-i", type=str, required=True, help="input file")
    parser.add_argument("--out_file", "--o", "-o", type=str, default=None, help="output file")
    options = parser.parse_args()
    distill_record_file(options.in_file, options.out_file or f"{options.in_file}.best.json")


if __name__ == "__main__":
    main()
