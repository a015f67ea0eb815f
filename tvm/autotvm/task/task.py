"""Tasks: templates with their arguments, ready to be tuned.

    @autotvm.template("tutorial/matmul")
    def matmul(N, L, M, dtype):
        ...
        return s, [A, B, C]

    task = autotvm.task.create("tutorial/matmul", args=(512, 512, 512, "float32"), target="llvm")
    s, arg_bufs = task.instantiate(task.config_space.get(0))

The name and the arguments are the *workload*, under which records are kept.
"""

from __future__ import annotations

import functools
import importlib
import pickle
import sys
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, overload

import numpy as np

from tvm.autotvm.task.context import ApplyConfig, DispatchContext, Workload
from tvm.autotvm.task.flop import FlopCalculationError, compute_flop
from tvm.autotvm.task.space import ConfigSpace
from tvm.autotvm.utils import get_const_tuple
from tvm.contrib.popen_pool import dump_object
from tvm.error import or_similar
from tvm.target import Target
from tvm.te.declare import placeholder
from tvm.te.tensor import PlaceholderOp, Tensor
from tvm.tir import expr

__all__ = [
    "TASK_TABLE",
    "FlopCalculationError",
    "MissingTask",
    "Task",
    "TaskTemplate",
    "args_to_workload",
    "compute_flop",
    "create",
    "deserialize_args",
    "get_config",
    "serialize_args",
    "template",
]


F = TypeVar("F", bound=Callable[..., Any])


def serialize_args(args: Sequence[Any]) -> Workload:
    """Arguments as values that records can hold; a tensor is ``("TENSOR", shape, dtype)``.

    Parameters
    ----------
    args : list
        Tensors, numbers, strings, and lists of them.
    """
    return tuple([_serialize(arg) for arg in args])


def _serialize(arg: Any) -> Any:
    if isinstance(arg, Tensor):
        return ("TENSOR", get_const_tuple(arg.shape), str(arg.dtype))
    if isinstance(arg, (tuple, list)):
        return tuple([_serialize(item) for item in arg])
    if isinstance(arg, (expr.IntImm, expr.FloatImm, expr.StringImm)):
        return arg.value
    if isinstance(arg, np.generic):
        return arg.item()
    if isinstance(arg, str):
        return str(arg)
    if arg is None or isinstance(arg, (int, float, expr.Var, expr.Any)):
        return arg
    raise RuntimeError(
        f'Do not support type "{type(arg).__name__}" in argument. '
        "Consider to use primitive types or tvm.tir.Var only"
    )


def deserialize_args(args: Sequence[Any]) -> list[Any]:
    """Arguments with a placeholder for each serialized tensor.

    Parameters
    ----------
    args : tuple
        From :func:`serialize_args`.
    """
    return [_deserialize(arg) for arg in args]


def _deserialize(arg: Any) -> Any:
    if not isinstance(arg, tuple):
        return arg
    if len(arg) == 3 and isinstance(arg[0], str) and arg[0] == "TENSOR":
        return placeholder(shape=arg[1], dtype=arg[2])
    return tuple([_deserialize(item) for item in arg])


def args_to_workload(args: Sequence[Any], task_name: str | None = None) -> Workload:
    """The workload of arguments: the task's name, if one is given, and what they serialize to.

    Parameters
    ----------
    args : list
        The arguments.
    task_name : str, optional
        The task.
    """
    return (() if task_name is None else (task_name,)) + serialize_args(args)


class Task:
    """A template with its arguments.

    Parameters
    ----------
    name : str
        The template's name.
    args : tuple
        Its serialized arguments.

    Attributes
    ----------
    config_space : ConfigSpace
        All configurations; of tasks made by :func:`create`.
    flop : float
        The floating-point operations; of tasks made by :func:`create`.
    target, target_host : tvm.target.Target
        For which it was made.
    """

    def __init__(self, name: str, args: Sequence[Any]) -> None:
        self.name = name
        self.args = tuple(args)
        self.kwargs: dict[str, Any] = {}  # templates take none; records have a place for them
        self.config_space: Any = None
        self.func: TaskTemplate = _lookup_task(name)
        self.flop: Any = None
        self.target: Any = None
        self.target_host: Any = None
        self._workload: Workload | None = None

    @property
    def workload(self) -> Workload:
        """The name and the arguments, under which records are kept, or what was set."""
        return self._workload or args_to_workload(self.args, self.name)

    @workload.setter
    def workload(self, workload: Workload) -> None:
        self._workload = workload

    def instantiate(self, config: ConfigSpace) -> tuple[Any, list[Any]]:
        """The schedule of a configuration, and the tensors that its function takes.

        Parameters
        ----------
        config : ConfigEntity
            The configuration; it is told the number of operations.
        """
        config.flop = 0
        with ApplyConfig(config):
            sch, arg_bufs = self.func(*self.args, **self.kwargs)
        if not self.flop:
            config.flop = config.flop or compute_flop(sch)
            self.flop = config.flop
        return sch, arg_bufs

    def without_space(self) -> Task:
        """The task for processes that build one configuration: spaces may be large."""
        light = Task.__new__(Task)
        vars(light).update(vars(self), config_space=None)
        return light

    def __getstate__(self) -> dict[str, Any]:
        # templates of scripts are known under their names in the scripts' own processes only
        module = self.func.home()
        return {**vars(self), "func": dump_object(self.func) if module is None else module}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        if isinstance(state["func"], bytes):
            self.func = pickle.loads(state["func"])
        else:
            importlib.import_module(state["func"])
            self.func = _lookup_task(self.name)

    def __repr__(self) -> str:
        return (
            f"Task(func_name={self.name}, args={self.args}, kwargs={self.kwargs}, "
            f"workload={self.workload})"
        )


class TaskTemplate:
    """What makes schedules: one function, or a compute and a schedule function of topi."""

    def __init__(self) -> None:
        self.fcompute: Callable[..., Any] | None = None
        self.fschedule: Callable[..., Any] | None = None
        self.fcustomized: Callable[..., Any] | None = None

    def home(self) -> str | None:
        """The module whose import registers this template; None if no other process has it."""
        parts = [self.fcustomized, self.fcompute, self.fschedule]
        homes = [_home_of(part) for part in parts if part is not None]
        return homes[0] if homes and homes.count(homes[0]) == len(homes) else None

    def __call__(self, *args: Any, **kwargs: Any) -> tuple[Any, list[Any]]:
        """The schedule of serialized arguments, and the tensors that its function takes."""
        live = deserialize_args(args)
        if self.fcustomized is not None:
            found: tuple[Any, list[Any]] = self.fcustomized(*live, **kwargs)
            return found
        if self.fcompute is None or self.fschedule is None:
            missing = "compute" if self.fcompute is None else "schedule"
            raise RuntimeError(
                f"the task has no {missing} function: autotvm.register_topi_{missing}"
            )
        out = self.fcompute(*live, **kwargs)
        outs = [out] if isinstance(out, Tensor) else list(out)
        return self.fschedule(outs), [*outs, *_placeholders_of(outs)]


def _home_of(function: Callable[..., Any]) -> str | None:
    """The module that decorates a function when it is imported."""
    name = str(getattr(function, "__module__", "__main__"))
    module = sys.modules.get(name)
    known = getattr(module, getattr(function, "__qualname__", ""), None)
    is_decorated = known is function or getattr(known, "__wrapped__", None) is function
    if name == "__main__" or not is_decorated or getattr(module, "__spec__", None) is None:
        return None
    return name


def _placeholders_of(outs: Sequence[Tensor]) -> list[Tensor]:
    """The placeholders that tensors are computed from, the nearest first."""
    found: dict[Tensor, None] = {}
    waiting = list(outs)
    seen = set(outs)
    for tensor in waiting:
        if isinstance(tensor.op, PlaceholderOp):
            found[tensor] = None
        fresh = [source for source in tensor.op.input_tensors if source not in seen]
        seen.update(fresh)
        waiting += fresh
    return list(found)


class MissingTask(TaskTemplate):
    """Stands for a template that this process has not registered.

    Parameters
    ----------
    taskname : str
        Its name.
    """

    def __init__(self, taskname: str) -> None:
        super().__init__()
        self._taskname = taskname

    def __call__(self, *args: Any, **kwargs: Any) -> tuple[Any, list[Any]]:
        raise RuntimeError(
            f"Attempting to invoke a missing task {self._taskname}. It's possible that the function "
            "is registered in a Python module that is not imported in this run, or the log is "
            f"out-of-date{or_similar(self._taskname, TASK_TABLE)}"
        )

    def __repr__(self) -> str:
        return f"MissingTask({self._taskname!r})"


# the templates by name: of topi from its modules' import on, of programs from their decorators on
TASK_TABLE: dict[str, TaskTemplate] = {}


def _lookup_task(name: str) -> TaskTemplate:
    return TASK_TABLE.get(name) or MissingTask(name)


def register_part(task_name: str, part: str, func: Callable[..., Any]) -> None:
    """Make a function the ``fcompute``, ``fschedule`` or ``fcustomized`` of a task.

    Raises
    ------
    ValueError
        If the task has one.
    """
    task = TASK_TABLE.setdefault(task_name, TaskTemplate())
    if getattr(task, part) is not None:
        raise ValueError(
            f"{part[1:].capitalize()} is already registered in autoTVM task {task_name}"
        )
    setattr(task, part, func)


@overload
def template(task_name: str, func: F) -> F: ...
@overload
def template(task_name: str) -> Callable[[F], F]: ...
@overload
def template(task_name: F) -> F: ...


def template(task_name: Any, func: Any = None) -> Any:
    """Make a function a template, whose knobs can be tuned.

    The function takes tensors, numbers and strings, asks :func:`get_config` for the configuration, and
    returns a schedule and the list of its tensors. Called as usual, it uses the configuration that the
    contexts around have for its arguments.

    Parameters
    ----------
    task_name : str
        The task's name; as a plain decorator, ``@autotvm.template``, it is the function's.
    func : function, optional
        The function; without it a decorator is returned.

    Examples
    --------
    >>> @autotvm.template("tutorial/matmul")
    ... def matmul(N, L, M, dtype): ...
    """
    if callable(task_name):
        return template(task_name.__name__, task_name)

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            require_positional(task_name, kwargs)
            workload = args_to_workload(args, task_name)
            with ApplyConfig(DispatchContext.current.query(Target.current(), workload)):
                return function(*args)

        register_part(task_name, "fcustomized", function)
        return wrapper

    return decorate if func is None else decorate(func)


def require_positional(task_name: str, kwargs: dict[str, Any]) -> None:
    """Reject arguments by keyword: workloads know arguments by their places."""
    if kwargs:
        raise TypeError(f"the template {task_name} takes arguments by place only, got {[*kwargs]}")


def create(task_name: Any, args: Sequence[Any], target: Any, target_host: Any = None) -> Task:
    """A task with its configuration space.

    Parameters
    ----------
    task_name : str
        The template's name, or the function that :func:`template` decorated.
    args : list
        The arguments.
    target : str or tvm.target.Target
        The target to tune for.
    target_host : str or tvm.target.Target, optional
        Its host.
    """
    name = getattr(task_name, "__name__", task_name) if callable(task_name) else task_name
    task = Task(name, serialize_args(args))
    target, target_host = Target.canon_target_and_host(target, target_host)
    if target is None:
        raise ValueError(f"the task {name} needs a target, got None")
    task.config_space = ConfigSpace()
    with ApplyConfig(task.config_space), target:
        sch, _ = task.func(*task.args)
    task.config_space.code_hash = sch.code_hash
    task.flop = task.config_space.flop or compute_flop(sch)
    task.target, task.target_host = target, target_host
    return task


def get_config() -> ConfigSpace:
    """The configuration that a template has to use: when tuning begins, the space to fill."""
    return DispatchContext.current.query(None, None)
