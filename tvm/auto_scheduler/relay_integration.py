"""Tasks out of relay programs: each kernel of a model that the auto-scheduler can take.

tasks, weights = auto_scheduler.extract_tasks(mod["main"], params, "llvm")
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from tvm._ffi.registry import register_func
from tvm.autotvm.task.relay_integration import fused_functions
from tvm.error import TVMError
from tvm.ir.module import IRModule
from tvm.ir.pass_context import PassContext
from tvm.relay.backend.kernels import compute_graph, kernel_name, schedule_for
from tvm.relay.function import Function
from tvm.relay.program import as_module
from tvm.support.scope import Scoped, compiling
from tvm.target import Target
from tvm.target.versions import layout_target
from tvm.te.declare import compute, placeholder
from tvm.te.schedule import Schedule
from tvm.te.tensor import ComputeOp, Tensor

from .compute_dag import ComputeDAG
from .dispatcher import is_auto_scheduler_enabled, schedule_of
from .hardware import HardwareParams
from .io_tensors import traverse_to_get_io_tensors
from .layout_rewrite import LayoutRewriteOption, layout_of_text, reads_rewritten
from .search_task import SearchTask
from .untuned import Untuned
from .workload_registry import register_workload_tensors

__all__ = [
    "TracingEnvironment", "TracingMode", "auto_schedule_topi", "call_all_topi_funcs",
    "enter_layout_rewrite", "exit_layout_rewrite", "extract_tasks", "is_auto_scheduler_enabled",
    "remove_index_check", "rewrite_compute_body", "rewrite_tensor_shape",
    "te_compiler_update_weights", "tensor_no_check_call", "traverse_to_get_io_tensors",
]  # fmt: skip

logger = logging.getLogger("auto_scheduler")

_CONFIG = {"relay.backend.use_auto_scheduler": True}
_TRACING: Scoped[Any] = Scoped("auto_scheduler.TracingEnvironment")


class TracingMode:
    """Which kernels of a program become tasks."""

    EXTRACT_TASK = 0  # all
    EXTRACT_COMPLEX_TASK_ONLY = 1  # those that reduce something
    PREPARE_LAYOUT_REWRITE = 2


class TracingEnvironment:
    """Collects the workloads of kernels inside a ``with`` block.

    Parameters
    ----------
    tracing_mode : int
        A :class:`TracingMode`.
    """

    current: TracingEnvironment | None = None

    def __init__(self, tracing_mode: int) -> None:
        self.tracing_mode = tracing_mode
        self.func_name_to_wkl_key: dict[str, list[str]] = {}
        self.wkl_key_to_weight: dict[str, int] = {}
        self.wkl_key_to_input_names: dict[str, list[str]] = {}
        self.wkl_key_to_dag: dict[str, ComputeDAG] = {}
        # the schedules of operators for the first kernel of a workload
        self.wkl_key_to_untuned: dict[str, Untuned] = {}

    def __enter__(self) -> TracingEnvironment:
        _TRACING.push(self)
        return self

    def __exit__(self, *error: object) -> None:
        _TRACING.pop()

    def add_workload_key(self, func_name: str, workload_key: str, weight: int = 1) -> None:
        """Note the workload of a kernel.

        Parameters
        ----------
        func_name : str
            Its name.
        workload_key : str
            Its workload.
        weight : int
            How often it is called.
        """
        self.func_name_to_wkl_key.setdefault(func_name, []).append(workload_key)
        self.wkl_key_to_weight[workload_key] = self.wkl_key_to_weight.get(workload_key, 0) + weight

    def add_workload_input_names(self, workload_key: str, input_names: list[str]) -> None:
        """Note the inputs of a workload that need given values.

        Parameters
        ----------
        workload_key : str
            The workload.
        input_names : list of str
            Their names.
        """
        self.wkl_key_to_input_names[workload_key] = input_names


def call_all_topi_funcs(
    mod: IRModule | Function, params: Any, target: Any, error_list: list[str], opt_level: int = 3
) -> None:
    """Let the kernels of a program be computed, for the sake of the environment around.

    Parameters
    ----------
    mod : IRModule or relay.Function
        The program.
    params : dict of str to NDArray, optional
        Values of its parameters.
    target : Target
        The target.
    error_list : list of str
        Gets the errors of kernels that cannot be computed.
    opt_level : int
        Of the passes before.
    """
    env = _TRACING.current()
    wanted = TracingMode.EXTRACT_TASK if env is None else env.tracing_mode
    with PassContext(opt_level=opt_level, config=_CONFIG), compiling(), layout_target(target):
        for func, calls in fused_functions(as_module(mod, params)).items():
            try:
                graph = compute_graph(func, target)
                tensors, _, is_complex = traverse_to_get_io_tensors(graph.outputs)
                dag = ComputeDAG(tensors) if tensors else None
            except TVMError as error:
                error_list.append(str(error))
                continue
            if dag is None or (wanted == TracingMode.EXTRACT_COMPLEX_TASK_ONLY and not is_complex):
                continue
            if env is not None:
                key = dag.workload_key()
                env.wkl_key_to_dag.setdefault(key, dag)
                env.wkl_key_to_untuned.setdefault(key, partial(_untuned, func, target))
                env.add_workload_key(kernel_name(func), key, calls)


def _untuned(func: Function, target: Any) -> tuple[Schedule, list[Tensor]]:
    """The schedule of a kernel's operators, and its arguments."""
    with PassContext(opt_level=3, config=_CONFIG), layout_target(target):
        graph = compute_graph(func, target)
        with Target(target):
            schedule = schedule_for(graph, target)
        constants = [tensor for tensor, _ in graph.constants]
        return schedule, [*graph.inputs, *constants, *graph.outputs]


def extract_tasks(
    mod: IRModule | Function,
    params: Any,
    target: Any,
    target_host: Any = None,
    hardware_params: HardwareParams | None = None,
    include_simple_tasks: bool = False,
    dump_workload_to_dag_log: Any = None,
    opt_level: int = 3,
    other_targets: Sequence[Any] | None = None,
) -> tuple[list[SearchTask], list[int]]:
    """The tasks of a program, and how often it has each.

    Parameters
    ----------
    mod, params :
        As of :func:`call_all_topi_funcs`.
    target, target_host : str or Target
        The target, and its host.
    hardware_params : HardwareParams, optional
        The machine.
    include_simple_tasks : bool
        Whether kernels that reduce nothing are tasks.
    dump_workload_to_dag_log : str, optional
        A file that gets the text of each program, by its workload.
    opt_level : int
        Of the passes before.
    other_targets : list of Target, optional
        Further targets of programs on several devices.
    """
    found, host = Target.canon_target_and_host(target, target_host)
    if found is None:
        raise TVMError("extracting tasks requires a target, got none")
    mode = (
        TracingMode.EXTRACT_TASK if include_simple_tasks else TracingMode.EXTRACT_COMPLEX_TASK_ONLY
    )
    errors: list[str] = []
    with TracingEnvironment(mode) as env:
        for each in [found, *[Target(other) for other in other_targets or ()]]:
            call_all_topi_funcs(mod, params, each, errors, opt_level)
    for error in errors:
        logger.debug("no task comes out of a kernel: %s", error)
    names: dict[str, list[str]] = {}
    for name, keys in env.func_name_to_wkl_key.items():
        for key in keys:
            names.setdefault(key, []).append(name)
    tasks = []
    for key, dag in env.wkl_key_to_dag.items():
        register_workload_tensors(key, dag.tensors)
        task = SearchTask(
            compute_dag=dag, workload_key=key, target=found, target_host=host,
            hardware_params=hardware_params, layout_rewrite_option=LayoutRewriteOption.NO_REWRITE,
            task_inputs=env.wkl_key_to_input_names.get(key),
            desc=",".join(dict.fromkeys(names[key])),
        )  # fmt: skip
        task.untuned = env.wkl_key_to_untuned[key]
        tasks.append(task)
    if dump_workload_to_dag_log is not None:
        texts = {task.workload_key: str(task.compute_dag) for task in tasks}
        # written in place: programs read what they have open
        Path(dump_workload_to_dag_log).write_text(json.dumps(texts), encoding="utf8")
    return tasks, [env.wkl_key_to_weight[task.workload_key] for task in tasks]


@register_func("auto_scheduler.enter_layout_rewrite")
def enter_layout_rewrite() -> None:
    """Begin to trace layouts; kernels keep theirs in this release, so that nothing is traced."""
    _TRACING.push(TracingEnvironment(TracingMode.PREPARE_LAYOUT_REWRITE))


@register_func("auto_scheduler.exit_layout_rewrite")
def exit_layout_rewrite() -> None:
    """End what :func:`enter_layout_rewrite` has begun."""
    _TRACING.pop()


@register_func("auto_scheduler.relay_integration.auto_schedule_topi_compute")
def auto_schedule_topi(func_name: str, outs: Sequence[Tensor]) -> Schedule | None:
    """The schedule of the current context for a kernel, or None.

    Parameters
    ----------
    func_name : str
        Its name.
    outs : list of Tensor
        Its outputs.
    """
    target = Target.current()
    if target is None or not is_auto_scheduler_enabled():
        return None
    return schedule_of(list(outs), target, func_name)


@register_func("auto_scheduler.relay_integration.te_compiler_update_weights")
def te_compiler_update_weights(function_weights: Mapping[str, int]) -> None:
    """Say how often a program calls each kernel.

    Parameters
    ----------
    function_weights : dict of str to int
        By the names of kernels.
    """
    env = _TRACING.current()
    if env is None:
        return
    env.wkl_key_to_weight = {}
    for name, weight in function_weights.items():
        for key in env.func_name_to_wkl_key.get(str(name), ()):
            env.wkl_key_to_weight[key] = env.wkl_key_to_weight.get(key, 0) + int(weight)


def tensor_no_check_call(tensor: Tensor, *indices: Any) -> Any:
    """The element of a tensor at indices.

    Parameters
    ----------
    tensor : Tensor
        The tensor.
    indices :
        Where.
    """
    return tensor(*indices)


def remove_index_check(tensor: Tensor) -> None:
    """Let a tensor be read with indices of its new layout; shapes are not checked against others here.

    Parameters
    ----------
    tensor : Tensor
        The tensor.
    """


def rewrite_compute_body(compute_tensor: Tensor, new_layout: Any) -> Any:
    """The compute reading its layout-free input in a new layout.

    Parameters
    ----------
    compute_tensor : Tensor
        The result of the compute.
    new_layout : str
        Such as ``"4j8k16j"``.
    """
    op = compute_tensor.op
    assert isinstance(op, ComputeOp)
    free = list(op.attrs["layout_free_placeholders"])
    if len(free) != 1:
        raise TVMError(f"one input of {op.name} may have a new layout, got {len(free)}")
    old = free[0]
    names = _axes_of(op, old)
    layout = layout_of_text(str(new_layout), names)
    new = placeholder(layout.new_shape, old.dtype, old.op.name)
    changed = reads_rewritten(op, old, new, layout)
    outputs = changed.outputs
    return outputs[0] if len(outputs) == 1 else outputs


def _axes_of(op: ComputeOp, source: Tensor) -> list[str]:
    dag = ComputeDAG([source, *op.outputs])
    (indices, *_) = dag.access_analyzer.read_from[op][source.op]
    return [str(getattr(index, "name", index)) for index in indices]


def rewrite_tensor_shape(tensor: Tensor, shape: Any) -> Tensor:
    """A tensor of another shape with the elements of a given one in their order.

    Parameters
    ----------
    tensor : Tensor
        The tensor.
    shape : sequence of int
        The shape.
    """
    return compute(shape, lambda *i: tensor(*i), name=tensor.op.name)
