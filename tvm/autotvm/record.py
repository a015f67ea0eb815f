"""Logs of tuning: a line of JSON for each candidate that was measured.

{"input": ["llvm -keys=cpu ", "matmul", [["TENSOR", [64, 64], "float32"], 16], {}],
 "config": {"index": 3, "code_hash": null, "entity": [["tile_y", "sp", [-1, 8]]]},
 "result": [[0.0002], 0, 1.2, 1600000000.0], "version": 0.2, "tvm_version": "0.18.0"}
"""

from __future__ import annotations

import argparse
import base64
import json
import logging
import os
import pickle
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

import numpy as np

from tvm._ffi.base import __version__
from tvm.autotvm.measure.interface import MeasureErrorNo, MeasureInput, MeasureResult
from tvm.autotvm.task.space import ConfigEntity, ConfigSpace
from tvm.autotvm.task.task import Task
from tvm.support.files import open_lines, write_text
from tvm.support.later import names_from_above
from tvm.target.recorded import recorded_target

AUTOTVM_LOG_VERSION = 0.2

logger = logging.getLogger("autotvm")
__getattr__ = names_from_above(__name__)


class _TornLineError(ValueError):
    """A line that its writer was stopped within."""


def measure_str_key(inp: MeasureInput, include_config: bool = True) -> str:
    """A text that is the same for equal candidates.

    Parameters
    ----------
    inp : MeasureInput
        The candidate.
    include_config : bool
        Whether configurations make a difference, or only target and task.
    """
    config = str(inp.config) if include_config else ""
    return f"{inp.target}{inp.task.name}{inp.task.args}{inp.task.kwargs}{config}"


def encode(inp: MeasureInput, result: MeasureResult, protocol: str = "json") -> str:
    """A line of a log.

    Parameters
    ----------
    inp : MeasureInput
        The candidate.
    result : MeasureResult
        Its outcome.
    protocol : str
        "json" or "pickle".
    """
    if protocol == "json":
        costs = result.costs if result.error_no == 0 else (1e9,)
        row = {
            "input": (str(inp.target), inp.task.name, inp.task.args, inp.task.kwargs),
            "config": inp.config.to_json_dict(),
            "result": (costs, int(result.error_no), result.all_cost, result.timestamp),
            "version": AUTOTVM_LOG_VERSION,
            "tvm_version": __version__,
        }
        return json.dumps(row, default=_plain)
    if protocol == "pickle":
        parts = ((inp.task.name, inp.task.args), inp.config, tuple(result))
        versions = (str(AUTOTVM_LOG_VERSION), __version__)
        return "\t".join([str(inp.target), *map(_pickled, parts), *versions])
    raise RuntimeError(f"Invalid log protocol: {protocol}; json or pickle is required")


def _plain(value: Any) -> Any:
    """JSON's form of numbers of numpy; of anything else its text."""
    return value.item() if isinstance(value, np.generic) else str(value)


def _pickled(value: Any) -> str:
    return base64.b64encode(pickle.dumps(value)).decode()


def decode(row: str, protocol: str = "json") -> tuple[MeasureInput, MeasureResult] | None:
    """The record of a line; None for one of a version that is not supported.

    Parameters
    ----------
    row : str
        The line.
    protocol : str
        "json" or "pickle"; lines of others in pickle can run any code, so read only your own.
    """
    if protocol == "json":
        return _decode_json(row)
    if protocol != "pickle":
        raise RuntimeError(f"Invalid log protocol: {protocol}; json or pickle is required")
    items = row.rstrip("\n").split("\t")
    if len(items) != 6:
        logger.warning("AutoTVM log version 0.1 is no longer supported.")
        return None
    (name, args), config, result = [pickle.loads(base64.b64decode(item)) for item in items[1:4]]
    return _record(items[0], name, args, config, MeasureResult(*result))


def _decode_json(row: str) -> tuple[MeasureInput, MeasureResult] | None:
    try:
        content = json.loads(row)
    except (json.JSONDecodeError, RecursionError) as error:
        kind = _TornLineError if row.startswith(("{", "\0")) else ValueError
        raise kind(f"a record must be a line of JSON, got {row.strip()[:60]!r}: {error}") from None
    if not isinstance(content, dict) or content.get("v") == 0.1:
        logger.warning("AutoTVM log version 0.1 is no longer supported.")
        return None
    try:
        target, name, args = content["input"][:3]
        config = ConfigEntity.from_json_dict(_as_tuples_of_values(content["config"]))
        result = MeasureResult(*[_as_tuples(value) for value in content["result"]])
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        raise ValueError(
            f"a record needs input, config and result, {type(error).__name__}: {error} "
            f"in {row.strip()[:60]!r}"
        ) from error
    return _record(str(target), name, _as_tuples(args), config, result)


def _as_tuples(value: Any) -> Any:
    return tuple([_as_tuples(item) for item in value]) if isinstance(value, list) else value


def _as_tuples_of_values(config: Any) -> Any:
    """Values of options that were tuples are tuples again; lengths and orders stay lists."""
    rows = [(n, k, _as_tuples(v) if k == "ot" else v) for n, k, v in config["entity"]]
    return {**config, "entity": rows}


def _record(
    target: str, name: str, args: tuple[Any, ...], config: ConfigSpace, result: MeasureResult
) -> tuple[MeasureInput, MeasureResult]:
    if "-target" in target:
        logger.warning('"-target" is deprecated, use "-mtriple" instead.')
        target = target.replace("-target", "-mtriple")
    config.cost = float(np.mean(result.costs)) if result.error_no == 0 else None
    return MeasureInput(recorded_target(target), Task(name, args), config), result


def load_from_buffer(file: Iterable[str]) -> Iterator[tuple[MeasureInput, MeasureResult]]:
    """The records of an open log.

    Parameters
    ----------
    file : file
        The lines; empty ones and those that begin with ``#`` are left out, and so are, with a
        warning, those that a writer was stopped within.
    """
    torn = []
    for number, row in enumerate(file, 1):
        if not row.strip() or row.startswith("#"):
            continue
        try:
            record = decode(row)
        except _TornLineError:
            torn.append(str(number))
            continue
        if record is not None:
            yield record
    if torn:
        _warn_of_torn(str(getattr(file, "name", "the log")), ", ".join(torn))


@cache
def _warn_of_torn(name: str, lines: str) -> None:
    logger.warning("%s: incomplete records are left out: line %s", name, lines)


def load_from_file(filepath: Any) -> Iterator[tuple[MeasureInput, MeasureResult]]:
    """The records of a log.

    Parameters
    ----------
    filepath : str or Path
        Its name.
    """
    with open_lines(filepath) as file:
        yield from load_from_buffer(file)


def own_records(
    task: Task, records: Iterable[tuple[MeasureInput, MeasureResult]]
) -> list[tuple[MeasureInput, MeasureResult]]:
    """The records of a task's own points, the fastest of each.

    Left out is what another attempt may bring: points whose build or run failed, or took too long.

    Parameters
    ----------
    task : Task
        The task, with its space.
    records : list of (MeasureInput, MeasureResult)
        The records.
    """
    best: dict[int, tuple[MeasureInput, MeasureResult]] = {}
    for inp, res in records:
        if res.error_no not in (MeasureErrorNo.NO_ERROR, MeasureErrorNo.INSTANTIATION_ERROR):
            continue
        if not _is_point_of(task, inp):
            continue
        index = inp.config.index
        if index not in best or _seconds(res) < _seconds(best[index][1]):
            own = MeasureInput(task.target, task, task.config_space.get(index))
            best[index] = (own, res)
    return list(best.values())


def _seconds(result: MeasureResult) -> float:
    return float(np.mean(result.costs)) if result.error_no == 0 else float("inf")


def _is_point_of(task: Task, inp: MeasureInput) -> bool:
    if str(inp.target) != str(task.target) or inp.task.workload != task.workload:
        return False
    space, index = task.config_space, inp.config.index
    if not 0 <= index < space.range_length or not space.is_index_valid(index):
        return False
    # of another version of the template the same index may be another configuration
    return _as_text(space.get(index)) == _as_text(inp.config)


def _as_text(config: Any) -> str:
    return json.dumps(config.to_json_dict(), default=_plain)


def split_workload(in_file: str, clean: bool = True) -> None:
    """Split a log into a file for each workload, named by their numbers.

    Parameters
    ----------
    in_file : str
        The log.
    clean : bool
        Whether to leave out failures, and candidates that another record has too.
    """
    by_workload: dict[tuple[str, Any], list[tuple[MeasureInput, MeasureResult]]] = {}
    for inp, res in load_from_file(in_file):
        by_workload.setdefault((str(inp.target), inp.task.workload), []).append((inp, res))
    for number, records in enumerate(by_workload.values()):
        kept = _cleaned(records) if clean else records
        logger.info("Key %d: %d records, %d kept", number, len(records), len(kept))
        lines = [f"{encode(*record)}\n" for record in kept]
        write_text(f"{in_file}.{number:03d}.wkl", "".join(lines))


def _cleaned(
    records: Iterable[tuple[MeasureInput, MeasureResult]],
) -> list[tuple[MeasureInput, MeasureResult]]:
    """The successes, each candidate once."""
    good = [(inp, res) for inp, res in records if res.error_no == MeasureErrorNo.NO_ERROR]
    return list({measure_str_key(inp): (inp, res) for inp, res in good}.values())


def pick_best(in_file: Any, out_file: Any) -> None:
    """Write the fastest record of each workload of a log.

    Parameters
    ----------
    in_file : str or file
        The log.
    out_file : str or file
        Where to write.
    """
    lines = (
        load_from_file(in_file)
        if isinstance(in_file, (str, os.PathLike))
        else load_from_buffer(in_file)
    )
    best: dict[tuple[str, Any], tuple[MeasureInput, MeasureResult]] = {}
    for inp, res in lines:
        if res.error_no != MeasureErrorNo.NO_ERROR:
            continue
        key = (str(inp.target), inp.task.workload)
        if key not in best or np.mean(res.costs) < np.mean(best[key][1].costs):
            best[key] = (inp, res)
    rows = "".join([f"{encode(*record)}\n" for record in best.values()])
    if isinstance(out_file, (str, os.PathLike)):
        write_text(out_file, rows)
    else:
        out_file.write(rows)
    logger.info("Extract %d best records", len(best))


def main() -> None:
    """``python -m tvm.autotvm.record --mode pick -i all.log -o best.log``"""
    parser = argparse.ArgumentParser(prog="python -m tvm.autotvm.record")
    parser.add_argument("--mode", choices=("read", "pick", "split"), default="read")
    parser.add_argument("--i", "-i", dest="i", required=True, help="input file")
    parser.add_argument("--o", "-o", dest="o", default=None, help="output file")
    options = parser.parse_args()
    if options.mode == "pick":
        pick_best(options.i, options.o or f"{options.i}.best.log")
    elif options.mode == "split":
        split_workload(options.i)
    else:
        for inp, res in load_from_file(options.i):
            print(inp.task.workload, inp.config, res, sep="\n", end="\n\n")


if __name__ == "__main__":
    main()
