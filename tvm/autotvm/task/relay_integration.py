"""Tasks out of relay programs: what `relay.build` would ask records for.

    tasks = autotvm.task.extract_from_program(mod["main"], params, target="llvm -mcpu=native")

The program goes through the passes of `relay.build`, and its kernels get their schedules; each
decision that a record could make is a task.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tvm.autotvm.task.context import FallbackContext
from tvm.autotvm.task.task import Task, create
from tvm.autotvm.task.topi_integration import TaskExtractEnv
from tvm.error import TVMError
from tvm.ir.module import IRModule
from tvm.ir.op import Op
from tvm.ir.pass_context import PassContext
from tvm.ir.transform import Sequential
from tvm.relay.backend.kernels import compute_graph, schedule_for
from tvm.relay.expr import Call
from tvm.relay.function import Function, is_primitive
from tvm.relay.pipeline import fusion, optimization, vm_optimization
from tvm.relay.program import Params, as_module
from tvm.relay.traverse import post_order
from tvm.support.scope import compiling
from tvm.target import Target
from tvm.target.versions import layout_target

logger = logging.getLogger("autotvm")

# the operators that a program has for a task's kernel
_CONV2D = ("nn.conv2d", "nn.contrib_conv2d_NCHWc", "nn.contrib_depthwise_conv2d_NCHWc")
_DENSE = ("nn.dense", "nn.contrib_dense_pack")
_OPERATORS: Mapping[str, tuple[str, ...]] = {
    "conv2d_NCHWc.x86": _CONV2D,
    "group_conv2d_NCHWc.x86": _CONV2D,
    "conv2d_NCHWc_winograd.x86": (
        "nn.conv2d",
        "nn.contrib_conv2d_winograd_without_weight_transform",
    ),
    "conv2d_NCHWc_int8.x86": _CONV2D,
    "depthwise_conv2d_NCHWc.x86": _CONV2D,
    "dense_pack.x86": _DENSE,
    "dense_int8.x86": _DENSE,
    "dense_nopack.x86": ("nn.dense", "nn.matmul"),
    "matmul_nopack.x86": ("nn.matmul", "nn.dense"),
    "batch_matmul.x86": ("nn.batch_matmul",),
    **{
        f"{group}conv{rank}d_{layout}.x86": (f"nn.conv{rank}d",)
        for group in ("", "group_")
        for rank, layouts in ((1, ("ncw", "nwc")), (2, ("nchw", "nhwc")), (3, ("ncdhw", "ndhwc")))
        for layout in layouts
    },
    **{
        f"conv{rank}d_transpose_{layout}.x86": (f"nn.conv{rank}d_transpose",)
        for rank, layout in ((1, "ncw"), (2, "nchw"), (3, "ncdhw"))
    },
}


def extract_from_program(
    mod: IRModule | Function,
    params: Params | None,
    target: Any,
    target_host: Any = None,
    ops: Sequence[Op | str] | None = None,
) -> list[Task]:
    """The tasks of a program.

    Parameters
    ----------
    mod : IRModule or relay.Function
        The program.
    params : dict of str to NDArray, optional
        Values of its parameters.
    target : str or tvm.target.Target
        The target to tune for.
    target_host : str or tvm.target.Target, optional
        Its host.
    ops : list of tvm.ir.Op or str, optional
        The operators whose tasks are wanted; by default all.
    """
    return extract_from_multiple_program([mod], [params], target, target_host, ops)


def extract_from_multiple_program(
    mods: Sequence[IRModule | Function],
    params: Sequence[Params | None],
    target: Any,
    target_host: Any = None,
    ops: Sequence[Op | str] | None = None,
) -> list[Task]:
    """The tasks of several programs, those that they share once.

    Parameters
    ----------
    mods : list of IRModule or relay.Function
        The programs.
    params : list of dict of str to NDArray
        Values of the parameters of each.
    target, target_host, ops :
        As of :func:`extract_from_program`.
    """
    found, host = Target.canon_target_and_host(target, target_host)
    if found is None:
        raise TVMError("extracting tasks requires a target, got none")
    wanted = None if ops is None else {op if isinstance(op, str) else op.name for op in ops}
    # records do not take part
    with TaskExtractEnv.get() as env, FallbackContext(), compiling(), layout_target(found):
        env.reset(ops)
        for mod, values in zip(mods, params, strict=True):
            for func in fused_functions(as_module(mod, values)):
                _schedule(func, found, env, wanted)
        collected = list(env.get_tasks())
    return _created([key for key in collected if _is_wanted(key[0], wanted)], found, host)


def fused_functions(mod: IRModule) -> dict[Function, int]:
    """The fused functions of a program, and how often it calls each."""
    with PassContext(opt_level=3, config=PassContext.current().config):
        try:
            fused = fusion()(optimization()(mod))
        except TVMError:
            # what is no graph of operators is for the virtual machine
            fused = Sequential(vm_optimization(mod))(mod)
    functions = [func for func in fused.functions.values() if isinstance(func, Function)]
    nodes = [node for func in functions for node in post_order(func)]
    kernels = [node for node in nodes if isinstance(node, Function) and is_primitive(node)]
    calls = [node.op for node in nodes if isinstance(node, Call)]
    return {kernel: max(sum([op is kernel for op in calls]), 1) for kernel in kernels}


def _schedule(
    func: Function, target: Target, env: TaskExtractEnv, wanted: Iterable[str] | None
) -> None:
    """Make a kernel's schedule, for the sake of the questions that are asked meanwhile."""
    known = len(env.task_collection)
    with target:
        try:
            schedule_for(compute_graph(func, target), target)
        except TVMError as error:
            logger.debug("no task comes out of a kernel: %s", error)
    if wanted is None:
        return
    # templates of users belong to the operators whose strategies call them
    names = {
        node.op.name
        for node in post_order(func.body)
        if isinstance(node, Call) and isinstance(node.op, Op)
    }
    kept = [
        key
        for key in env.task_collection[known:]
        if key[0] in _OPERATORS or not names.isdisjoint(wanted)
    ]
    env.task_collection[known:] = kept


def _is_wanted(task: str, wanted: Iterable[str] | None) -> bool:
    return wanted is None or not set(_OPERATORS.get(task, wanted)).isdisjoint(wanted)


def _created(keys: Sequence[tuple[str, Any]], target: Target, host: Target | None) -> list[Task]:
    tasks = []
    for name, args in keys:
        try:
            tasks.append(create(name, args, target, host))
        except (TVMError, RuntimeError, ValueError) as error:
            logger.warning("no task can be made of %s%s: %s", name, args, error)
    return tasks
