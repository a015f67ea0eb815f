"""Values for inputs that cannot be random: indices, for example."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import numpy as np

from tvm.runtime import ndarray as nd
from tvm.support.files import replacing

logger = logging.getLogger("auto_scheduler")

# by workload, then by name
TASK_INPUT_BUFFER_TABLE: dict[str, dict[str, Any]] = {}


def register_task_input_buffer(
    workload_key: str,
    input_name: str,
    input_data: Any,
    overwrite: bool = False,
    save_to_file: bool = False,
) -> Any:
    """Register the value of an input.

    Parameters
    ----------
    workload_key : str
        The workload.
    input_name : str
        The name of the placeholder.
    input_data : NDArray
        The value.
    overwrite : bool
        Whether it replaces one of before, which stays otherwise.
    save_to_file : bool
        Whether it is written into the working directory, where later runs find it.

    Returns
    -------
    NDArray
        The value that is used from now on.
    """
    table = TASK_INPUT_BUFFER_TABLE.setdefault(workload_key, {})
    if not overwrite:
        if input_name not in table:
            found = _from_file(input_name)
            if found is not None:
                table[input_name] = found
        if input_name in table:
            logger.warning(
                "Tensor %s exists for the workload; set overwrite to replace it", input_name
            )
            return table[input_name]
    table[input_name] = input_data
    if save_to_file:
        _to_file(input_name, input_data)
    return input_data


def get_task_input_buffer(workload_key: str, input_name: str) -> Any:
    """The value of an input.

    Parameters
    ----------
    workload_key, input_name :
        As of :func:`register_task_input_buffer`.
    """
    table = TASK_INPUT_BUFFER_TABLE.setdefault(workload_key, {})
    if input_name not in table:
        found = _from_file(input_name)
        if found is None:
            raise ValueError(
                f"{input_name} is not registered as an input of the workload; pass "
                f"SearchTask(..., task_inputs={{{input_name!r}: array}})"
            )
        table[input_name] = found
    return table[input_name]


def _to_file(name: str, data: Any) -> None:
    values = data.numpy()
    shape = "".join([f"{n}_" for n in values.shape])
    with replacing(f"{name}.{shape}{values.dtype}.npy") as path:
        values.tofile(path)


def _from_file(name: str) -> Any:
    for path in sorted(Path().glob(f"{name}.*.npy")):
        *dims, dtype = path.name[len(name) + 1 : -len(".npy")].split("_")
        if all([dim.isdecimal() for dim in dims]):
            shape = tuple([int(dim) for dim in dims])
            return nd.array(np.fromfile(path, dtype=dtype).reshape(shape))
    return None
