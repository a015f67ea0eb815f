"""Building and running candidates, each in a process that can be killed.

builder, runner = auto_scheduler.LocalBuilder(), auto_scheduler.LocalRunner()
built = builder.build(inputs)
results = runner.run(inputs, built)
"""

from __future__ import annotations

import logging
import shutil
import tempfile
import time
import traceback
import weakref
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np

from tvm.autotvm.measure.build_methods import BuildResult as MeasuredLibrary
from tvm.autotvm.measure.run_methods import default_module_loader, run_candidate
from tvm.contrib.popen_pool import PopenPoolExecutor
from tvm.driver.build_module import build
from tvm.error import TVMError
from tvm.runtime.object import Object
from tvm.support.cores import usable_cores
from tvm.te.declare import placeholder
from tvm.te.tensor import PlaceholderOp, Tensor

from .compute_dag import ComputeDAG
from .measure_record import MeasureCallback
from .measure_types import BuildResult, MeasureErrorNo, MeasureInput, MeasureResult
from .steps import Step
from .task import Task, search_task_class
from .task_inputs import get_task_input_buffer
from .utils import get_const_tuple

__all__ = [
    "BuildFunc", "BuildResult", "LocalBuilder", "LocalRunner", "MeasureCallback", "MeasureErrorNo",
    "MeasureInput", "MeasureResult", "ProgramBuilder", "ProgramRunner",
    "PythonBasedMeasureCallback", "local_build_worker", "local_builder_build", "local_run",
    "prepare_input_map", "prepare_runner_args", "recover_measure_input",
    "register_task_input_check_func",
]  # fmt: skip

logger = logging.getLogger("auto_scheduler")

# of the message of an error so many characters are kept
MAX_ERROR_MSG_LEN = 1024
# functions that tell inputs of tasks by what reads them
TASK_INPUT_CHECK_FUNC_REGISTRY: dict[str, Callable[..., Any]] = {}


class PythonBasedMeasureCallback(MeasureCallback):
    """The base of callbacks of programs, which override ``callback``."""


class BuildFunc:
    """How candidates become libraries.

    Attributes
    ----------
    name : str
        ``default``, or ``custom``.
    build_func : function
        ``f(library name, files)`` links a library; None links as usual.
    """

    name = "default"
    build_func: Callable[..., Any] | None = None


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


class ProgramBuilder(Object):
    """Builds candidates."""

    n_parallel: int = 1
    timeout: float = 0

    def build(self, measure_inputs: Sequence[MeasureInput], verbose: int = 1) -> list[BuildResult]:
        """Build candidates.

        Parameters
        ----------
        measure_inputs : list of MeasureInput
            The candidates.
        verbose : int
            0 is silent.
        """
        raise NotImplementedError


class ProgramRunner(Object):
    """Runs what a builder has built."""

    timeout: float = 0

    def run(
        self,
        measure_inputs: Sequence[MeasureInput],
        build_results: Sequence[BuildResult],
        verbose: int = 1,
    ) -> list[MeasureResult]:
        """Run candidates.

        Parameters
        ----------
        measure_inputs : list of MeasureInput
            The candidates.
        build_results : list of BuildResult
            Their libraries.
        verbose : int
            0 is silent.
        """
        raise NotImplementedError


class LocalBuilder(ProgramBuilder):
    """Builds candidates on this machine, several at a time, in processes of their own.

    Parameters
    ----------
    timeout : float
        Seconds for one candidate.
    n_parallel : int, optional
        How many at a time; by default one for each processor.
    build_func : str or function
        ``"default"`` makes a shared library; a function ``f(library name, files)`` links one itself,
        with the suffix of its attribute ``output_format``.
    """

    def __init__(
        self, timeout: float = 15, n_parallel: int | None = None, build_func: Any = "default"
    ) -> None:
        if isinstance(build_func, str) and build_func != "default":
            raise ValueError(
                f"Invalid build_func: {build_func}; 'default' or a function is required"
            )
        if callable(build_func):
            BuildFunc.name, BuildFunc.build_func = "custom", build_func
        self.timeout = timeout
        self.n_parallel = n_parallel or usable_cores()
        self.link = None if isinstance(build_func, str) else build_func
        self.folder = tempfile.mkdtemp(prefix="tvm-auto-scheduler-")
        self._clean = weakref.finalize(self, shutil.rmtree, self.folder, ignore_errors=True)
        self._pool: PopenPoolExecutor | None = None

    @property
    def pool(self) -> PopenPoolExecutor:
        """The processes, which start with the first candidates."""
        if self._pool is None:
            self._pool = PopenPoolExecutor(self.n_parallel, timeout=self.timeout)
        return self._pool

    def build(self, measure_inputs: Sequence[MeasureInput], verbose: int = 1) -> list[BuildResult]:
        # the libraries of the last batch have been run
        shutil.rmtree(self.folder, ignore_errors=True)
        Path(self.folder).mkdir(parents=True)
        futures = [
            self.pool.submit(build_candidate, *_light(inp), self.folder, self.link)
            for inp in measure_inputs
        ]
        results = [self._outcome(future) for future in futures]
        for result in results:
            result.owner = self
        return results

    def _outcome(self, future: Any) -> BuildResult:
        try:
            outcome: tuple[Any, ...] = future.result()
        except TimeoutError:
            return BuildResult(
                None, [], MeasureErrorNo.BUILD_TIMEOUT, "building timed out", self.timeout
            )
        except Exception as error:  # the process ended, or the candidate cannot be sent to it
            return BuildResult(None, [], MeasureErrorNo.COMPILE_HOST, _shortened(str(error)), 0.0)
        filename, args, failure, seconds = outcome
        if failure is not None:
            kind, text = failure
            return BuildResult(None, [], kind, text, seconds)
        tensors = [placeholder(shape, dtype, name) for shape, dtype, name in args]
        return BuildResult(filename, tensors, MeasureErrorNo.NO_ERROR, None, seconds)


def _light(inp: MeasureInput) -> tuple[Any, ...]:
    """What another process needs of a candidate: no state, no analyses."""
    task = inp.task
    dag = task.compute_dag or ComputeDAG(task.workload_key)
    return (
        dag.tensors, dag.ops, inp.state.transform_steps, task.target, task.layout_rewrite_option
    )  # fmt: skip


def build_candidate(
    tensors: Sequence[Tensor],
    ops: Sequence[Any],
    steps: tuple[Step, ...],
    target: Any,
    layout_rewrite: int,
    folder: str,
    link: Callable[..., Any] | None,
) -> tuple[str | None, list[Any], tuple[int, str] | None, float]:
    """Build a candidate, in a process of the builder: the library, its arguments, the error, seconds."""
    started = time.time()
    dag = ComputeDAG.of(tensors, ops)
    try:
        state = dag.graph.state_after(steps)
        schedule, args = dag.apply_steps_from_state(state, layout_rewrite)
    except Exception:
        error = (int(MeasureErrorNo.INSTANTIATION_ERROR), _shortened(traceback.format_exc()))
        return None, [], error, time.time() - started
    try:
        with target:
            library = build(schedule, args, target=target)
        suffix = "so" if link is None else str(getattr(link, "output_format", "so"))
        path = str(Path(folder) / f"tmp_func_{uuid4().hex[:16]}.{suffix}")
        library.export_library(path, fcompile=link)
    except Exception:
        error = (int(MeasureErrorNo.COMPILE_HOST), _shortened(traceback.format_exc()))
        return None, [], error, time.time() - started
    described = [(get_const_tuple(t.shape), str(t.dtype), t.op.name) for t in args]
    return path, described, None, time.time() - started


def _shortened(text: str) -> str:
    half = MAX_ERROR_MSG_LEN // 2
    return text if len(text) <= 2 * half else f"{text[:half]}\n...\n{text[-half:]}"


class LocalRunner(ProgramRunner):
    """Runs candidates on this machine, one at a time in another process.

    Parameters
    ----------
    timeout : float
        Seconds for one candidate.
    number : int
        Calls in one measurement, of which the mean counts.
    repeat : int
        Measurements.
    min_repeat_ms : int
        ``number`` grows until one measurement takes this long.
    cooldown_interval : float
        Seconds between candidates.
    enable_cpu_cache_flush : bool
        Whether the caches are emptied of all arguments but the first before each measurement.
    device : int
        Which device of the target's kind.
    """

    def __init__(
        self,
        timeout: float = 10,
        number: int = 3,
        repeat: int = 1,
        min_repeat_ms: int = 100,
        cooldown_interval: float = 0.0,
        enable_cpu_cache_flush: bool = False,
        device: int = 0,
    ) -> None:
        if enable_cpu_cache_flush:
            number, min_repeat_ms = 1, 0
        self.timeout = timeout
        self.number = number
        self.repeat = repeat
        self.min_repeat_ms = min_repeat_ms
        self.cooldown_interval = cooldown_interval
        self.enable_cpu_cache_flush = enable_cpu_cache_flush
        self.device = device
        self._pool: PopenPoolExecutor | None = None

    @property
    def pool(self) -> PopenPoolExecutor:
        """The process, which starts with the first candidate: two would disturb each other."""
        if self._pool is None:
            self._pool = PopenPoolExecutor(1, timeout=self.timeout)
        return self._pool

    def run(
        self,
        measure_inputs: Sequence[MeasureInput],
        build_results: Sequence[BuildResult],
        verbose: int = 1,
    ) -> list[MeasureResult]:
        pairs = zip(measure_inputs, build_results, strict=True)
        return [self._run_one(inp, built) for inp, built in pairs]

    def _run_one(self, inp: MeasureInput, built: BuildResult) -> MeasureResult:
        if built.error_no != MeasureErrorNo.NO_ERROR:
            return MeasureResult([], built.error_no, built.error_msg, built.time_cost, time.time())
        started = time.time()
        kind = MeasureErrorNo.RUNTIME_DEVICE
        try:
            values = prepare_runner_args(inp, built)
            result = self.measure(inp.task, built, values)
            time.sleep(self.cooldown_interval)
            if result.error_no == MeasureErrorNo.NO_ERROR:
                seconds = time.time() - started + built.time_cost
                return MeasureResult(result.costs, 0, None, seconds, time.time())
            kind, text = result.error_no, str(result.costs[0])
        except TimeoutError:
            kind, text = MeasureErrorNo.RUN_TIMEOUT, "running timed out"
        except ChildProcessError as error:
            text = str(error)
        except Exception:
            kind, text = MeasureErrorNo.UNKNOWN_ERROR, traceback.format_exc()
        seconds = time.time() - started + built.time_cost
        return MeasureResult([], kind, _shortened(text), seconds, time.time())

    def measure(self, task: Task, built: BuildResult, values: Any) -> Any:
        """The outcome of a library, from the process."""
        info = tuple([(get_const_tuple(t.shape), str(t.dtype)) for t in built.args])
        library = MeasuredLibrary(built.filename, info, None, built.time_cost)
        options = (self.number, self.repeat, self.min_repeat_ms, self.enable_cpu_cache_flush)
        future = self.pool.submit(
            run_candidate, task.target, library, options, values, default_module_loader()
        )
        return future.result()


class RPCRunner(ProgramRunner):
    """Runs candidates on other machines, which a tracker knows; needs ``tvm.rpc``.

    Parameters
    ----------
    key, host, port :
        What kind of machine, and the tracker.
    priority, n_parallel, timeout, number, repeat, min_repeat_ms, cooldown_interval :
        As of :class:`LocalRunner`.
    enable_cpu_cache_flush, device :
        As of :class:`LocalRunner`.
    """

    def __init__(
        self,
        key: str,
        host: str,
        port: int,
        priority: int = 1,
        n_parallel: int = 1,
        timeout: float = 10,
        number: int = 3,
        repeat: int = 1,
        min_repeat_ms: int = 100,
        cooldown_interval: float = 0.0,
        enable_cpu_cache_flush: bool = False,
        device: int = 0,
    ) -> None:
        raise _without_rpc("RPCRunner")


class LocalRPCMeasureContext:
    """A tracker and a server on this machine, and a runner that measures through them.

    Parameters
    ----------
    priority, n_parallel, timeout, number, repeat, min_repeat_ms, cooldown_interval :
        As of :class:`RPCRunner`.
    enable_cpu_cache_flush, device :
        As of :class:`RPCRunner`.
    """

    def __init__(
        self,
        priority: int = 1,
        n_parallel: int = 1,
        timeout: float = 10,
        number: int = 3,
        repeat: int = 1,
        min_repeat_ms: int = 0,
        cooldown_interval: float = 0.0,
        enable_cpu_cache_flush: bool = False,
        device: int = 0,
    ) -> None:
        raise _without_rpc("LocalRPCMeasureContext")


def _without_rpc(who: str) -> TVMError:
    return TVMError(
        f"{who} measures through tvm.rpc, which the auto-scheduler does not do in this release",
        hint="measure on this machine: auto_scheduler.LocalRunner(...)",
    )


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


def local_build_worker(args: Sequence[Any]) -> tuple[Any, ...]:
    """Build one candidate here: the library, its arguments, the error, seconds.

    Parameters
    ----------
    args : tuple
        What :meth:`MeasureInput.serialize` gave; ``"default"`` or a function to link with.
    """
    data, link, *_ = args
    folder = tempfile.mkdtemp(prefix="tvm-auto-scheduler-")
    parts = (*_light(MeasureInput.deserialize(data)), folder, None if link == "default" else link)
    return build_candidate(*parts)


def local_builder_build(
    inputs: Sequence[MeasureInput],
    timeout: float,
    n_parallel: int,
    build_func: Any = "default",
    verbose: int = 1,
) -> list[BuildResult]:
    """Build candidates as :class:`LocalBuilder` does; the libraries stay until the program ends.

    Parameters
    ----------
    inputs : list of MeasureInput
        The candidates.
    timeout, n_parallel, build_func :
        As of :class:`LocalBuilder`.
    verbose : int
        0 is silent.
    """
    builder = LocalBuilder(timeout, n_parallel, build_func)
    results = builder.build(inputs, verbose)
    builder._clean.detach()
    weakref.finalize(BuildFunc, shutil.rmtree, builder.folder, ignore_errors=True)
    return results


def local_run(
    inputs: Sequence[MeasureInput],
    build_results: Sequence[BuildResult],
    timeout: float = 10,
    number: int = 3,
    repeat: int = 1,
    min_repeat_ms: int = 0,
    cooldown_interval: float = 0,
    enable_cpu_cache_flush: bool = False,
    verbose: int = 1,
    device: int = 0,
) -> list[MeasureResult]:
    """Run candidates as :class:`LocalRunner` does.

    Parameters
    ----------
    inputs : list of MeasureInput
        The candidates.
    build_results : list of BuildResult
        Their libraries.
    timeout, number, repeat, min_repeat_ms, cooldown_interval, enable_cpu_cache_flush, device :
        As of :class:`LocalRunner`.
    verbose : int
        0 is silent.
    """
    runner = LocalRunner(
        timeout, number, repeat, min_repeat_ms, cooldown_interval, enable_cpu_cache_flush, device
    )
    return runner.run(inputs, build_results, verbose)


def rpc_runner_run(
    inputs: Sequence[MeasureInput],
    build_results: Sequence[BuildResult],
    key: str,
    host: str,
    port: int,
    priority: int = 1,
    n_parallel: int = 1,
    timeout: float = 10,
    number: int = 3,
    repeat: int = 1,
    min_repeat_ms: int = 0,
    cooldown_interval: float = 0.0,
    enable_cpu_cache_flush: bool = False,
    verbose: int = 1,
    device: int = 0,
) -> list[MeasureResult]:
    """Run candidates as :class:`RPCRunner` does; needs ``tvm.rpc``.

    Parameters
    ----------
    inputs, build_results, verbose :
        As of :func:`local_run`.
    key, host, port, priority, n_parallel, timeout, number, repeat, min_repeat_ms :
        As of :class:`RPCRunner`.
    cooldown_interval, enable_cpu_cache_flush, device :
        As of :class:`RPCRunner`.
    """
    raise _without_rpc("rpc_runner_run")
