"""Features of programs for cost models: a row of numbers for each buffer that a program writes.

They tell operations, loops that are vectors, unrolled or parallel, what each buffer costs, the ratio
of operations to memory, and what is allocated: those of the paper on Ansor.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np

from .bounds import infer_bounds
from .features.from_state import program_of
from .features.from_tir import program_of_function
from .features.names import DEFAULT_MAX_N_BUFS, feature_names, is_logarithmic
from .features.rows import program_rows
from .loop_state import State
from .measure_record import RecordReader
from .measure_types import MeasureInput, MeasureResult
from .state_object import StateObject
from .task import Task, search_task_class

Array = np.ndarray[Any, Any]


def unpack_feature(byte_arr: bytes | bytearray) -> tuple[Array, Array, Array]:
    """The features, throughputs and tasks of the classic release's flat form.

    Parameters
    ----------
    byte_arr : bytes
        The number of programs; the sizes of all parts; the features of each, behind the number of
        its rows; throughputs; numbers of tasks.
    """
    (count,) = struct.unpack_from("1i", byte_arr)
    sizes = struct.unpack_from(f"{count + 2}i", byte_arr, 4)
    offset = 4 * (count + 3)
    width = len(feature_names())
    features = []
    for size in sizes[:-2]:
        values = np.frombuffer(byte_arr, "float32", size, offset)
        offset += 4 * size
        if not size:
            features.append(np.zeros((1, width), "float32"))
            continue
        rows = int(values[0] + 0.5)
        features.append(values[1:].reshape(rows, (size - 1) // rows))
    throughputs = np.frombuffer(byte_arr, "float32", sizes[-2], offset)
    tasks = np.frombuffer(byte_arr, "int32", sizes[-1], offset + 4 * sizes[-2])
    return _as_objects(features), throughputs, tasks


def _as_objects(features: Sequence[Array]) -> Array:
    found = np.empty(len(features), dtype=object)
    for place, rows in enumerate(features):
        found[place] = rows
    return found


def get_per_store_features_from_states(
    states: Sequence[State | StateObject], task: Task, max_n_bufs: int | None = None
) -> Array:
    """The features of states.

    Parameters
    ----------
    states : list of State or StateObject
        The states.
    task : SearchTask
        Their task.
    max_n_bufs : int, optional
        For how many buffers of a store; 5 by default.

    Returns
    -------
    numpy.ndarray of numpy.ndarray
        For each state an array of stores and features.
    """
    return _as_objects([state_features(state, task, max_n_bufs) for state in states])


def state_features(state: State | StateObject, task: Task, max_n_bufs: int | None = None) -> Array:
    """The features of one state.

    Parameters
    ----------
    state, task, max_n_bufs :
        As of :func:`get_per_store_features_from_states`.
    """
    bounds = infer_bounds(task.compute_dag.full_state(state))
    line = task.hardware_params.cache_line_bytes
    n_bufs = DEFAULT_MAX_N_BUFS if max_n_bufs is None else max_n_bufs
    return _scaled(program_rows(program_of(bounds), line, n_bufs), n_bufs)


def _scaled(rows: Sequence[Sequence[float]], max_n_bufs: int) -> Array:
    """Logarithms in place of numbers that may be large."""
    values = np.array(rows, dtype="float64").reshape(len(rows), -1)
    where = _LOGARITHMIC.get(max_n_bufs)
    if where is None:
        where = np.array(is_logarithmic(max_n_bufs))
    values[:, where] = np.log2(values[:, where] + 1.0)
    return values.astype("float32")


_LOGARITHMIC = {DEFAULT_MAX_N_BUFS: np.array(is_logarithmic())}


def get_per_store_features_from_measure_pairs(
    inputs: Sequence[MeasureInput],
    results: Sequence[MeasureResult],
    skip_first_n_feature_extraction: int = 0,
    max_n_bufs: int | None = None,
) -> tuple[Array, Array, Array]:
    """The features of measured candidates.

    Parameters
    ----------
    inputs : list of MeasureInput
        The candidates.
    results : list of MeasureResult
        Their outcomes.
    skip_first_n_feature_extraction : int
        Of the first ones the features are not extracted, but left empty.
    max_n_bufs : int, optional
        As of :func:`get_per_store_features_from_states`.

    Returns
    -------
    features, normalized throughputs, numbers of tasks : numpy.ndarray
        The fastest candidate of a task has throughput 1.
    """
    tasks: dict[tuple[str, str], Task] = {}
    numbers: list[int] = []
    features: list[Array] = []
    costs = np.array([res.seconds for res in results])
    for place, inp in enumerate(inputs):
        key = (inp.task.workload_key, str(inp.task.target))
        if key not in tasks:
            tasks[key] = _with_graph(inp.task)
        numbers.append(list(tasks).index(key))
        if place < skip_first_n_feature_extraction or not np.isfinite(costs[place]):
            features.append(np.zeros((1, len(feature_names())), "float32"))
        else:
            features.append(state_features(inp.state, tasks[key], max_n_bufs))
    ids = np.array(numbers, dtype="int32")
    throughputs = np.zeros(len(costs), dtype="float32")
    for number in range(len(tasks)):
        mine = ids == number
        fastest = costs[mine].min(initial=float("inf"))
        if np.isfinite(fastest):
            throughputs[mine] = fastest / costs[mine]
    return _as_objects(features), throughputs, ids


def _with_graph(task: Task) -> Task:
    if task.compute_dag is not None:
        return task
    found: Task = search_task_class.required(
        workload_key=task.workload_key, target=task.target, hardware_params=task.hardware_params
    )
    return found


def get_per_store_features_from_file(
    filename: Any, max_lines: int, max_n_bufs: int | None = None
) -> tuple[Array, Array, Array]:
    """The features of a log.

    Parameters
    ----------
    filename : str
        The log.
    max_lines : int
        At most so many records.
    max_n_bufs : int, optional
        As of :func:`get_per_store_features_from_states`.
    """
    inputs, results = RecordReader(filename).read_lines(max_lines)
    return get_per_store_features_from_measure_pairs(inputs, results, max_n_bufs=max_n_bufs)


def get_per_store_feature_names(max_n_bufs: int | None = None) -> list[str]:
    """The names of the features, in their order.

    Parameters
    ----------
    max_n_bufs : int, optional
        For how many buffers of a store; 5 by default.
    """
    return feature_names(DEFAULT_MAX_N_BUFS if max_n_bufs is None else max_n_bufs)


def features_from_primfunc(
    func: Any, cache_line_bytes: int = 64, max_n_bufs: int | None = None, log_scale: bool = False
) -> Array | None:
    """The features of a loop-level function.

    Parameters
    ----------
    func : PrimFunc
        The function.
    cache_line_bytes : int
        The size of a cache line.
    max_n_bufs : int, optional
        For how many buffers of a store; 5 by default.
    log_scale : bool
        Whether logarithms are given.

    Returns
    -------
    numpy.ndarray of stores and features; None if nothing is stored
    """
    n_bufs = DEFAULT_MAX_N_BUFS if max_n_bufs is None else max_n_bufs
    rows = program_rows(program_of_function(func), cache_line_bytes, n_bufs)
    if not rows:
        return None
    return _scaled(rows, n_bufs) if log_scale else np.array(rows, dtype="float32")


def named_features_from_primfunc(
    func: Any, cache_line_bytes: int = 64, max_n_bufs: int | None = None, log_scale: bool = False
) -> dict[str, Array] | None:
    """The features of a loop-level function by their names.

    Parameters
    ----------
    func, cache_line_bytes, max_n_bufs, log_scale :
        As of :func:`features_from_primfunc`.
    """
    found = features_from_primfunc(func, cache_line_bytes, max_n_bufs, log_scale)
    if found is None:
        return None
    names = get_per_store_feature_names(max_n_bufs)
    return {name: found[:, place] for place, name in enumerate(names)}
