"""Templates of topi: a compute and a schedule function each, joined by the workload.

    @autotvm.register_topi_compute("dense_nopack.x86")
    def dense_nopack(cfg, data, weight, bias=None, out_dtype=None): ...

    @autotvm.register_topi_schedule("dense_nopack.x86")
    def schedule_dense_nopack(cfg, outs): ...

The decorated functions are called without ``cfg``: it is the configuration that the contexts around
have. The compute function leaves its workload in its operation, where the schedule function finds it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from tvm.autotvm.task.context import DispatchContext, Workload
from tvm.autotvm.task.task import (
    args_to_workload,
    register_part,
    require_positional,
    serialize_args,
)
from tvm.support.scope import Scoped
from tvm.target import Target
from tvm.te.tensor import Tensor

_CURRENT: Scoped[TaskExtractEnv] = Scoped("autotvm.TaskExtractEnv")


class _Innermost:
    """The class attribute ``current``: the innermost collection, or None."""

    def __get__(self, instance: Any, owner: Any) -> TaskExtractEnv | None:
        return _CURRENT.current()


class TaskExtractEnv:
    """Collects the tasks of the templates that are called inside a ``with`` block.

    Parameters
    ----------
    allow_duplicate : bool
        Whether a task is kept as often as it is called.
    """

    current = _Innermost()

    def __init__(self, allow_duplicate: bool = False) -> None:
        self.allow_duplicate = allow_duplicate
        self.tracing = False
        self.wanted_relay_ops: Any = None
        self.task_collection: list[tuple[str, Workload]] = []
        self.derived: set[Workload] = set()  # what comes of decisions of tasks, and is none itself

    def __enter__(self) -> TaskExtractEnv:
        self.task_collection, self.derived = [], set()
        self.tracing = True
        _CURRENT.push(self)
        return self

    def __exit__(self, *error: object) -> None:
        self.tracing = False
        _CURRENT.pop()

    def reset(self, wanted_relay_ops: Any = None) -> None:
        """Forget the tasks.

        Parameters
        ----------
        wanted_relay_ops : list of relay.op.Op, optional
            The operators to collect from now on; by default all.
        """
        self.task_collection, self.derived = [], set()
        self.wanted_relay_ops = wanted_relay_ops

    def add_task(self, task_name: str, args: Sequence[Any]) -> None:
        """Collect a task.

        Parameters
        ----------
        task_name : str
            Its name.
        args : list
            Its arguments.
        """
        key = (task_name, serialize_args(args))
        if self.allow_duplicate or key not in self.task_collection:
            self.task_collection.append(key)

    def get_tasks(self) -> list[tuple[str, Workload]]:
        """The names and serialized arguments so far."""
        return self.task_collection

    @staticmethod
    def get(allow_duplicate: bool = False) -> TaskExtractEnv:
        """The open collection, or a new one.

        Parameters
        ----------
        allow_duplicate : bool
            Whether a task is kept as often as it is called.
        """
        env = _CURRENT.current() or TaskExtractEnv()
        env.allow_duplicate = allow_duplicate
        return env


def register_topi_compute(task_name: str, func: Callable[..., Any] | None = None) -> Any:
    """Make a function the compute of a template.

    Parameters
    ----------
    task_name : str
        The task.
    func : function, optional
        Takes the configuration and the arguments; without it a decorator is returned.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            require_positional(task_name, kwargs)
            env = TaskExtractEnv.current
            if env is not None and env.tracing:
                env.add_task(task_name, args)
            workload = args_to_workload(args, task_name)
            cfg = DispatchContext.current.query(Target.current(), workload)
            return _with_workload(function(cfg, *args), workload)

        register_part(task_name, "fcompute", wrapper)
        return wrapper

    return decorate if func is None else decorate(func)


def _with_workload(result: Any, workload: Workload) -> Any:
    """The tensors as outputs of operations that hold the workload."""
    is_one = isinstance(result, Tensor)
    tensors = [result] if is_one else list(result)
    marked = {
        op: op.replace(attrs={**op.attrs, "workload": workload})
        for op in dict.fromkeys([tensor.op for tensor in tensors])
    }
    outs = [marked[tensor.op].output(tensor.value_index) for tensor in tensors]
    return outs[0] if is_one else type(result)(outs)


def register_topi_schedule(task_name: str, func: Callable[..., Any] | None = None) -> Any:
    """Make a function the schedule of a template.

    Parameters
    ----------
    task_name : str
        The task.
    func : function, optional
        Takes the configuration and the output tensors; without it a decorator is returned.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapper(outs: Any, *args: Any, **kwargs: Any) -> Any:
            outs = [outs] if isinstance(outs, Tensor) else outs
            workload = get_workload(outs, task_name)
            if workload is None:
                raise RuntimeError(
                    f"Cannot find TOPI workload {task_name}. "
                    "Is it registered with `register_topi_compute`?"
                )
            cfg = DispatchContext.current.query(Target.current(), workload)
            return function(cfg, outs, *args, **kwargs)

        register_part(task_name, "fschedule", wrapper)
        return wrapper

    return decorate if func is None else decorate(func)


def get_workload(outs: Any, task_name: str | None = None) -> Workload | None:
    """The workload that the operations behind tensors hold.

    Parameters
    ----------
    outs : te.Tensor or list of te.Tensor
        The tensors.
    task_name : str, optional
        The task; by default any.
    """
    waiting = [tensor.op for tensor in ([outs] if isinstance(outs, Tensor) else outs)]
    seen = dict.fromkeys(waiting)
    found = None
    for op in waiting:
        held = op.attrs.get("workload")
        if held is not None and (task_name is None or held[0] == task_name):
            found = tuple(held)  # of several the first that is computed counts
        fresh = [tensor.op for tensor in op.input_tensors if tensor.op not in seen]
        seen.update(dict.fromkeys(fresh))
        waiting += fresh
    return found
