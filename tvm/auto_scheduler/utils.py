"""Small helpers: keys of workloads, arguments, calls in processes and threads, numbers as text."""

from __future__ import annotations

import json
import signal
import threading
import traceback
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from tvm.autotvm.measure import rpc_methods
from tvm.autotvm.measure.rpc_methods import request_remote
from tvm.autotvm.utils import get_const_int, get_const_tuple, get_func_name
from tvm.contrib import popen_pool
from tvm.error import TVMError
from tvm.te.declare import placeholder
from tvm.te.tensor import Tensor
from tvm.tir.expr import FloatImm, IntImm

__all__ = [
    "PropagatingThread", "array_mean", "calc_workload_dis_factor", "call_func_with_thread",
    "call_func_with_timeout", "check_remote", "decode_workload_key", "deserialize_args",
    "get_const_int", "get_const_tuple", "get_func_name", "kill_child_processes", "list_to_tuple",
    "make_traceback_info", "request_remote", "serialize_args", "shortened", "to_str_round",
]  # fmt: skip

# of the text of an error so many characters are kept
MAX_TRACEBACK_INFO_LEN = 512
MAX_ERROR_MSG_LEN = 1024


def decode_workload_key(workload_key: str) -> tuple[str, tuple[Any, ...] | None]:
    """The name of a workload, and all numbers and texts of its arguments in a row.

    Parameters
    ----------
    workload_key : str
        The key.
    """
    try:
        content = json.loads(workload_key)
    except json.JSONDecodeError:
        return workload_key, None
    if isinstance(content, list) and content:
        return content[0], tuple(_flat(content[1:]))
    return workload_key, None


def _flat(values: Iterable[Any]) -> list[Any]:
    found: list[Any] = []
    for value in values:
        found.extend(_flat(value) if isinstance(value, (list, tuple)) else [value])
    return found


def calc_workload_dis_factor(
    target_workload_pair: tuple[str, Any], workload_pair: tuple[str, Any]
) -> float:
    """How many times as large a workload is as another one whose schedule could serve for it.

    Parameters
    ----------
    target_workload_pair, workload_pair : tuple
        From :func:`decode_workload_key`: the workload, and the other one.

    Returns
    -------
    float
        The product of all quotients of extents; infinite where they do not divide.
    """
    (name, args), (other_name, other_args) = target_workload_pair, workload_pair
    if name != other_name or args is None or other_args is None or len(args) != len(other_args):
        return float("inf")
    factor = 1.0
    for size, other in zip(args, other_args, strict=True):
        if size == other:
            continue
        if (
            isinstance(size, int)
            and isinstance(other, int)
            and size
            and other
            and size % other == 0
        ):
            factor *= size / other
        else:
            return float("inf")
    return factor


def list_to_tuple(x: Any) -> Any:
    """Lists, and those within, as tuples."""
    if not isinstance(x, (list, tuple)):
        return x
    return tuple([list_to_tuple(item) for item in x])


def serialize_args(args: Iterable[Any]) -> tuple[Any, ...]:
    """Arguments of workloads as JSON has them; tensors become their shapes and types."""
    found = []
    for arg in args:
        if isinstance(arg, Tensor):
            arg = ("TENSOR", get_const_tuple(arg.shape), str(arg.dtype))
        elif isinstance(arg, (list, tuple)):
            arg = serialize_args(arg)
        elif isinstance(arg, (IntImm, FloatImm)):
            arg = arg.value
        elif isinstance(arg, np.generic):
            arg = arg.item()
        if not isinstance(arg, (int, float, str, tuple, type(None))):
            raise TVMError(
                f"arguments of workloads are numbers, texts, tensors and tuples of them, "
                f"got a value of {type(arg).__name__}"
            )
        found.append(arg)
    return tuple(found)


def deserialize_args(args: Iterable[Any]) -> list[Any]:
    """The inverse of :func:`serialize_args`."""
    found = []
    for arg in args:
        is_tensor = isinstance(arg, (tuple, list)) and len(arg) == 3 and arg[0] == "TENSOR"
        found.append(placeholder(arg[1], arg[2]) if is_tensor else arg)
    return found


def kill_child_processes(parent_pid: int, sig: int = signal.SIGTERM) -> None:
    """End the processes that a process has started, and those that they have.

    Parameters
    ----------
    parent_pid : int
        The process, which is left alive.
    sig : int
        Of old; they are killed.
    """
    del sig
    popen_pool.kill_child_processes(parent_pid)


def make_traceback_info() -> str:
    """The text of the exception that is being handled, its middle left out if it is long."""
    return shortened(traceback.format_exc(), MAX_TRACEBACK_INFO_LEN)


def shortened(text: str, length: int = MAX_ERROR_MSG_LEN) -> str:
    """A text, its middle left out if it is longer than so many characters."""
    half = length // 2
    return text if len(text) <= 2 * half else f"{text[:half]}\n...\n{text[-half:]}"


class PropagatingThread(threading.Thread):
    """A thread whose ``join`` raises what its function raised, or returns its result."""

    exc: BaseException | None = None
    ret: Any = None

    def run(self) -> None:
        target: Any = self._target  # type: ignore[attr-defined]
        try:
            self.ret = target(*self._args, **self._kwargs)  # type: ignore[attr-defined]
        except Exception as error:
            self.exc = error

    def join(self, timeout: float | None = None) -> Any:
        super().join(timeout)
        if self.exc is not None:
            raise self.exc
        return self.ret


def call_func_with_thread(func: Callable[..., Any], args: Sequence[Any], kwargs: Any) -> Any:
    """Call a function in a new thread; its result.

    Parameters
    ----------
    func : function
        The function.
    args, kwargs :
        Its arguments.
    """
    thread = PropagatingThread(target=func, args=tuple(args), kwargs=dict(kwargs or {}))
    thread.start()
    return thread.join()


def call_func_with_timeout(
    worker: popen_pool.PopenWorker,
    timeout: float,
    func: Callable[..., Any],
    args: Sequence[Any] = (),
    kwargs: Any = None,
) -> Any:
    """Call a function in a process; its result, or the exception as a value.

    Parameters
    ----------
    worker : PopenWorker
        The process.
    timeout : float
        Seconds.
    func, args, kwargs :
        As of :func:`call_func_with_thread`.
    """
    worker.send(func, tuple(args), dict(kwargs or {}), timeout)
    try:
        return worker.recv()
    except TimeoutError as error:
        return error
    except Exception:
        return Exception(make_traceback_info())


def check_remote(
    device_key: str,
    host: str | None = None,
    port: int | None = None,
    priority: int = 100,
    timeout: float = 10,
    *,
    key_file: str | None = None,
) -> bool:
    """Whether a machine of a tracker answers.

    Parameters
    ----------
    device_key, host, port, priority, timeout, key_file :
        As of :func:`request_remote`.
    """
    return rpc_methods.check_remote(
        "cpu", device_key, host, port, priority, timeout, key_file=key_file
    )


def array_mean(arr: Sequence[Any]) -> float:
    """The mean of numbers, or of constants."""
    values = [float(getattr(value, "value", value)) for value in arr]
    return sum(values) / len(values)


def to_str_round(x: Any, decimal: int = 6) -> str:
    """Numbers as text, rounded.

    Parameters
    ----------
    x : number, str or list of them
        What to print.
    decimal : int
        Digits behind the point.
    """
    if isinstance(x, str):
        return x
    if isinstance(x, (list, tuple, np.ndarray)):
        return f"[{', '.join([to_str_round(y, decimal=decimal) for y in x])}]"
    if isinstance(x, dict):
        return str({k: to_str_round(v) for k, v in x.items()})
    if isinstance(x, int):
        return str(x)
    if isinstance(x, (np.float32, np.float64, float)):
        return f"%.{decimal}f" % x
    raise ValueError(f"Invalid value: {x}\ttype: {type(x)}")
