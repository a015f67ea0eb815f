"""The arguments that candidates are run with: given values of inputs of tasks, else random ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tvm.error import TVMError
from tvm.te.tensor import PlaceholderOp, Tensor

from .measure_types import BuildResult, MeasureInput
from .task_inputs import get_task_input_buffer
from .utils import get_const_tuple

# functions that tell inputs of tasks by what reads them
TASK_INPUT_CHECK_FUNC_REGISTRY: dict[str, Callable[..., Any]] = {}


def register_task_input_check_func(
    func_name: Any, f: Callable[..., Any] | None = None, override: bool = False
) -> Any:
    """Register a function that tells inputs of tasks; also a decorator.

    Parameters
    ----------
    func_name : str or function
        The name, by default the function's.
    f : function, optional
        From a list of tensors to a dict of tensors and names of inputs.
    override : bool
        Whether an earlier registration is replaced.
    """
    if callable(func_name):
        func_name, f = func_name.__name__, func_name
    if not isinstance(func_name, str):
        raise ValueError("expect string function name")

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        if func_name in TASK_INPUT_CHECK_FUNC_REGISTRY and not override:
            raise RuntimeError(f"{func_name} has been registered already")
        TASK_INPUT_CHECK_FUNC_REGISTRY[func_name] = function
        return function

    return register(f) if f else register


def prepare_input_map(args: Sequence[Tensor], workload_key: str | None = None) -> dict[Tensor, str]:
    """The names of inputs by their tensors.

    Parameters
    ----------
    args : list of Tensor
        Arguments of a program.
    workload_key : str, optional
        The workload, for functions that ask for it.
    """
    del workload_key
    found = {
        arg: arg.op.name
        for arg in args
        if isinstance(arg.op, PlaceholderOp) and arg.op.name != "placeholder"
    }
    for function in TASK_INPUT_CHECK_FUNC_REGISTRY.values():
        found.update(function(args))
    return found


def prepare_runner_args(inp: MeasureInput, build_res: BuildResult) -> list[Any] | None:
    """The arguments of a candidate, if any has a given value; None if all are random.

    Parameters
    ----------
    inp : MeasureInput
        The candidate.
    build_res : BuildResult
        Its library.
    """
    names = list(inp.task.task_input_names)
    if not names:
        return None
    key = inp.task.workload_key
    places = prepare_input_map(build_res.args, key)
    missing = [name for name in names if name not in places.values()]
    if missing:
        raise TVMError(
            f"the task has values of {', '.join(missing)}, and no argument of that name",
            hint=f"the inputs are {', '.join(places.values()) or 'without names'}",
        )
    rng = np.random.default_rng(0)
    values = []
    for arg in build_res.args:
        if places.get(arg) in names:
            values.append(get_task_input_buffer(key, places[arg]).numpy())
        else:
            shape = get_const_tuple(arg.shape)
            values.append(rng.uniform(1, 2, size=shape).astype(np.dtype(str(arg.dtype))))
    return values
