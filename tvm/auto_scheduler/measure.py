"""Building and running candidates, each in a process that can be killed.

builder, runner = auto_scheduler.LocalBuilder(), auto_scheduler.LocalRunner()
built = builder.build(inputs)
results = runner.run(inputs, built)
"""

from __future__ import annotations

from .builder import (
    BuildFunc,
    LocalBuilder,
    ProgramBuilder,
    local_build_worker,
    local_builder_build,
)
from .dask_measure import DaskBuilder, DaskRunner
from .measure_record import MeasureCallback
from .measure_types import BuildResult, MeasureErrorNo, MeasureInput, MeasureResult
from .measurer import ProgramMeasurer
from .runner import (
    LocalRPCMeasureContext,
    LocalRunner,
    ProgramRunner,
    RPCRunner,
    local_run,
    rpc_runner_run,
)
from .runner_args import (
    TASK_INPUT_CHECK_FUNC_REGISTRY,
    prepare_input_map,
    prepare_runner_args,
    register_task_input_check_func,
)
from .task import search_task_class

__all__ = [
    "TASK_INPUT_CHECK_FUNC_REGISTRY", "BuildFunc", "BuildResult", "DaskBuilder", "DaskRunner", "LocalBuilder",
    "LocalRPCMeasureContext", "LocalRunner", "MeasureCallback", "MeasureErrorNo", "MeasureInput",
    "MeasureResult", "ProgramBuilder", "ProgramMeasurer", "ProgramRunner", "PythonBasedMeasureCallback", "RPCRunner",
    "local_build_worker", "local_builder_build", "local_run", "prepare_input_map",
    "prepare_runner_args", "recover_measure_input", "register_task_input_check_func",
    "rpc_runner_run",
]  # fmt: skip


class PythonBasedMeasureCallback(MeasureCallback):
    """The base of callbacks of programs, which override ``callback``."""


def recover_measure_input(inp: MeasureInput, rebuild_state: bool = False) -> MeasureInput:
    """A candidate of a record, with the graph of its task.

    Parameters
    ----------
    inp : MeasureInput
        The candidate.
    rebuild_state : bool
        Whether its state gets stages, too.
    """
    old = inp.task
    task = search_task_class.required(
        workload_key=old.workload_key,
        target=old.target,
        hardware_params=old.hardware_params,
        layout_rewrite_option=old.layout_rewrite_option,
        task_inputs=list(old.task_input_names),
    )
    state = task.compute_dag.full_state(inp.state) if rebuild_state else inp.state
    return MeasureInput(task, state)
