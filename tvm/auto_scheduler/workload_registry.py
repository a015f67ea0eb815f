"""Workloads: functions that make tensors, by the names that records have.

@auto_scheduler.register_workload
def matmul(n, m, k): ...
    return [A, B, C]

auto_scheduler.make_workload_key(matmul, [512, 512, 512])     # '["matmul", 512, 512, 512]'
"""

from __future__ import annotations

import json
import logging
import pickle
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from tvm._ffi.registry import register_func
from tvm.error import TVMError
from tvm.ir.serialize import load_json, save_json
from tvm.support.files import write_bytes
from tvm.te.tensor import Tensor

from .utils import (
    decode_workload_key,
    deserialize_args,
    get_func_name,
    list_to_tuple,
    serialize_args,
)

logger = logging.getLogger("auto_scheduler")

# by name: functions; lists of tensors
WORKLOAD_FUNC_REGISTRY: dict[str, Any] = {}


def register_workload(func_name: Any, f: Any = None, override: bool = False) -> Any:
    """Register a function that makes the tensors of a workload; also a decorator.

    Parameters
    ----------
    func_name : str or function
        The name, by default the function's.
    f : function, optional
        The function.
    override : bool
        Whether an earlier registration is replaced.
    """
    if callable(func_name):
        func_name, f = get_func_name(func_name), func_name
    if not isinstance(func_name, str):
        raise ValueError("expect string function name")

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        if func_name in WORKLOAD_FUNC_REGISTRY:
            if override:
                logger.debug("Override workload function %s", func_name)
            else:
                raise RuntimeError(f"{func_name} has been registered already")
        WORKLOAD_FUNC_REGISTRY[func_name] = function
        return function

    return register(f) if f else register


def register_workload_tensors(
    workload_key: str, tensors: Sequence[Tensor], override: bool = True
) -> None:
    """Register the tensors of a workload.

    Parameters
    ----------
    workload_key : str
        Its key.
    tensors : list of Tensor
        Inputs and outputs.
    override : bool
        Whether an earlier registration is replaced.
    """
    register_workload(workload_key, override=override)(list(tensors))


def register_missing_tensors(workload_key: str, tensors: Sequence[Tensor]) -> None:
    """Register the tensors of a workload that this process does not know."""
    name, _ = decode_workload_key(workload_key)
    if workload_key not in WORKLOAD_FUNC_REGISTRY and name not in WORKLOAD_FUNC_REGISTRY:
        register_workload_tensors(workload_key, tensors)


def make_workload_key(func: Any, args: Iterable[Any]) -> str:
    """The key of a workload: a JSON list of the name and the arguments.

    Parameters
    ----------
    func : function or str
        What was registered.
    args : list
        The arguments.
    """
    if callable(func):
        name = get_func_name(func)
    elif isinstance(func, str):
        name = func
    else:
        raise ValueError(
            f"Invalid function: {func} . `make_workload_key` expects a callable function or its "
            "function name"
        )
    if name not in WORKLOAD_FUNC_REGISTRY:
        raise ValueError(
            f"{func} is not registered. Please register it with @auto_scheduler.register_workload"
        )
    return json.dumps((name, *serialize_args(args)))


@register_func("auto_scheduler.workload_key_to_tensors")
def workload_key_to_tensors(workload_key: str) -> list[Tensor]:
    """The tensors of a workload.

    Parameters
    ----------
    workload_key : str
        Its key.
    """
    workload_key = str(workload_key)
    if workload_key in WORKLOAD_FUNC_REGISTRY:
        value = WORKLOAD_FUNC_REGISTRY[workload_key]
        if not callable(value):
            return list(value)
    name, _ = decode_workload_key(workload_key)
    function = WORKLOAD_FUNC_REGISTRY.get(name)
    if not callable(function):
        raise TVMError(
            f"the workload {workload_key} is not registered",
            hint="import the module that registers it, or pass the records' tasks to TaskScheduler",
        )
    args = list_to_tuple(json.loads(workload_key)[1:])
    made = function(*deserialize_args(args))
    return list(made)


def serialize_workload_registry_entry(workload_key: str) -> tuple[str, Any]:
    """What :func:`deserialize_workload_registry_entry` takes in another process.

    Parameters
    ----------
    workload_key : str
        The key.
    """
    name = (
        workload_key
        if workload_key in WORKLOAD_FUNC_REGISTRY
        else decode_workload_key(workload_key)[0]
    )
    value = WORKLOAD_FUNC_REGISTRY[name]
    return name, value if callable(value) else save_json(value)


def deserialize_workload_registry_entry(data: tuple[str, Any]) -> None:
    """Register what another process has serialized.

    Parameters
    ----------
    data : tuple
        From :func:`serialize_workload_registry_entry`.
    """
    name, value = data
    if name not in WORKLOAD_FUNC_REGISTRY:
        WORKLOAD_FUNC_REGISTRY[name] = value if callable(value) else list(load_json(value))


def save_workload_func_registry(filename: str) -> None:
    """Write all registered functions into a file.

    Parameters
    ----------
    filename : str
        Its name.
    """
    functions = {name: f for name, f in WORKLOAD_FUNC_REGISTRY.items() if callable(f)}
    write_bytes(filename, pickle.dumps(functions))


def load_workload_func_registry(filename: str) -> None:
    """Register the functions of a file; one of others can run any code, so read only your own.

    Parameters
    ----------
    filename : str
        Its name.
    """
    WORKLOAD_FUNC_REGISTRY.update(pickle.loads(Path(filename).read_bytes()))
