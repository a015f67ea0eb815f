"""Running candidates: one at a time in another process, which is replaced if it hangs or ends."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tvm._ffi.registry import get_global_func
from tvm.autotvm.measure.build_methods import BuildResult
from tvm.autotvm.measure.interface import MeasureErrorNo, MeasureInput, MeasureResult, Runner
from tvm.contrib.popen_pool import PopenPoolExecutor
from tvm.error import TVMError
from tvm.rpc.client import connect_tracker
from tvm.rpc.server import Server
from tvm.rpc.tracker import Tracker
from tvm.runtime import ndarray as nd
from tvm.runtime.device import device
from tvm.runtime.module import Module, load_module

# of the message of an error so many characters are kept
_LONGEST_MESSAGE = 1024
_LOCAL_KEY = "local"


@dataclass(frozen=True)
class EvaluatorConfig:
    """How a candidate is timed."""

    number: int  # calls in one measurement, of which the mean counts
    repeat: int  # measurements
    min_repeat_ms: int  # `number` grows until one measurement takes this long
    enable_cpu_cache_flush: bool = False  # empty the caches before each measurement
    device: int = 0  # which device of the target's kind
    cooldown_interval: float = 0.0  # seconds of rest behind each candidate
    is_trimmed: bool = False  # leave out the fastest and the slowest of three and more measurements


class LocalSession:
    """This process, with the methods of a remote one."""

    def load_module(self, path: str) -> Module:
        """The library in a file."""
        return load_module(path)

    def device(self, dev_type: str, dev_id: int = 0) -> Any:
        """A device of this machine."""
        return device(dev_type, dev_id)

    def cpu(self, dev_id: int = 0) -> Any:
        """The processor of this machine."""
        return device("cpu", dev_id)

    def get_function(self, name: str) -> Any:
        """A global function."""
        return get_global_func(name)


class DefaultModuleLoader:
    """Loads what was built.

    Parameters
    ----------
    pre_load_function : function, optional
        Called with the session and the :class:`BuildResult` before.
    """

    def __init__(self, pre_load_function: Callable[..., Any] | None = None) -> None:
        self.pre_load_function = pre_load_function

    @contextmanager
    def __call__(self, remote_kwargs: Any, build_result: BuildResult) -> Iterator[tuple[Any, Any]]:
        session: Any = _session_of(remote_kwargs) if remote_kwargs else LocalSession()
        if self.pre_load_function is not None:
            self.pre_load_function(session, build_result)
        if not remote_kwargs:
            yield session, session.load_module(build_result.filename)
            return
        session.upload(build_result.filename)
        # its folder goes with the session
        yield session, session.load_module(Path(build_result.filename).name)


def _session_of(remote_kwargs: Mapping[str, Any]) -> Any:
    """A session with a machine of a tracker, for as long as one candidate may take."""
    asked = dict(remote_kwargs)
    tracker = connect_tracker(asked["host"], asked["port"], key_file=asked.get("key_file"))
    return tracker.request(
        asked["device_key"], priority=asked.get("priority", 1), session_timeout=asked["timeout"]
    )


def default_module_loader(pre_load_function: Callable[..., Any] | None = None) -> Any:
    """The loader of a runner that does not have its own.

    Parameters
    ----------
    pre_load_function : function, optional
        Called with the session and the :class:`BuildResult` before.
    """
    return DefaultModuleLoader(pre_load_function)


class LocalRunner(Runner):
    """Runs candidates on this machine.

    Parameters
    ----------
    timeout : float
        Seconds for one candidate.
    number : int
        Calls in one measurement, of which the mean counts.
    repeat : int
        Measurements; of three and more the fastest and the slowest are dropped.
    min_repeat_ms : int
        ``number`` grows until one measurement takes this long.
    cooldown_interval : float
        Seconds between candidates.
    enable_cpu_cache_flush : bool
        Whether the caches are emptied of all arguments but the first before each measurement; to be
        used with ``number=1`` and ``min_repeat_ms=0``.
    module_loader : function, optional
        ``loader(remote_kwargs, build_result)`` is a context of a session and the loaded module.
    use_tracker : bool
        Whether candidates go through a server of this machine and its tracker, as those of
        :class:`RPCRunner` do.

    Attributes
    ----------
    ref_input : list of numpy.ndarray or None
        The arguments; by default random values.
    executor : PopenPoolExecutor
        Runs the candidates; another one with its ``submit`` may take its place.
    """

    def __init__(
        self,
        timeout: float = 10,
        number: int = 4,
        repeat: int = 3,
        min_repeat_ms: int = 0,
        cooldown_interval: float = 0.1,
        enable_cpu_cache_flush: bool = False,
        module_loader: Callable[..., Any] | None = None,
        *,
        use_tracker: bool = False,
    ) -> None:
        super().__init__(timeout, 1)  # two at a time would disturb each other
        self.number = number
        self.repeat = repeat
        self.min_repeat_ms = min_repeat_ms
        self.cooldown_interval = cooldown_interval
        self.enable_cpu_cache_flush = enable_cpu_cache_flush
        self.module_loader = module_loader or default_module_loader()
        self.use_tracker = use_tracker
        self.tracker: Tracker | None = None
        self.server: Server | None = None
        self._ref_input: list[Any] | None = None
        # a machine of a tracker has to be waited for
        limit = timeout * 2 if use_tracker else timeout
        self.executor: Any = PopenPoolExecutor(max_workers=1, timeout=limit)

    @property
    def ref_input(self) -> list[Any] | None:
        return self._ref_input

    @ref_input.setter
    def ref_input(self, val: Sequence[Any] | None) -> None:
        self._ref_input = None if val is None else list(val)

    def set_task(self, task: Any) -> None:
        """Prepare for a task; with ``use_tracker`` a tracker and a server begin with the first one.

        Parameters
        ----------
        task : Task
            The task.
        """
        super().set_task(task)
        if self.use_tracker and self.server is None:
            self.tracker, self.server = start_local_server(_LOCAL_KEY)

    @property
    def _remote_kwargs(self) -> dict[str, Any]:
        if self.tracker is None:
            return {}
        return {
            "device_key": _LOCAL_KEY, "host": self.tracker.host, "port": self.tracker.port,
            "timeout": self.timeout,
        }  # fmt: skip

    @property
    def config(self) -> EvaluatorConfig:
        """How candidates are timed."""
        return EvaluatorConfig(
            self.number, self.repeat, self.min_repeat_ms, self.enable_cpu_cache_flush,
            cooldown_interval=self.cooldown_interval, is_trimmed=True,
        )  # fmt: skip

    def get_build_kwargs(self) -> dict[str, Any]:
        return {}

    def run(
        self, measure_inputs: Sequence[MeasureInput], build_results: Sequence[Any]
    ) -> list[MeasureResult]:
        pairs = zip(measure_inputs, build_results, strict=True)
        # the space of a candidate may be large, its target says enough
        return [self._run_one(getattr(inp, "target", None), built) for inp, built in pairs]

    def _run_one(self, target: Any, built: Any) -> MeasureResult:
        if isinstance(built, MeasureResult):
            return built
        started = time.time()
        future = self.executor.submit(
            run_candidate, target, built, self.config, self._ref_input, self.module_loader,
            self._remote_kwargs,
        )  # fmt: skip
        return outcome_of(future.result, built, started)


def start_local_server(key: str) -> tuple[Tracker, Server]:
    """A tracker of this machine, and a server that it gives out; they end when they are let go.

    Parameters
    ----------
    key : str
        What the server is registered as.
    """
    tracker = Tracker(port=0)
    return tracker, Server(port=0, key=key, tracker_addr=("127.0.0.1", tracker.port))


def as_limits_of_gpu(device: Any) -> dict[str, Any]:
    """What :func:`gpu_verify_pass` has to know of an accelerator."""
    extents = device.max_thread_dimensions or [None] * 3
    return {
        "check_gpu": {
            "max_shared_memory_per_block": device.max_shared_memory_per_block,
            "max_threads_per_block": device.max_threads_per_block,
            **dict(zip(("max_thread_x", "max_thread_y", "max_thread_z"), extents, strict=True)),
        }
    }


def run_candidate(
    target: Any,
    built: BuildResult,
    config: EvaluatorConfig,
    ref_input: Sequence[Any] | None,
    module_loader: Callable[..., Any],
    remote_kwargs: Mapping[str, Any] | None = None,
) -> MeasureResult:
    """Load a candidate and measure it, in the runner's process.

    Parameters
    ----------
    target : Target
        What the candidate was built for.
    built : BuildResult
        The library.
    config : EvaluatorConfig
        How it is timed.
    ref_input : list of numpy.ndarray or None
        The arguments; by default random values.
    module_loader : function
        Loads the library.
    remote_kwargs : dict, optional
        The tracker's machine to measure on; by default this one.
    """
    started = time.time()
    try:
        with module_loader(dict(remote_kwargs or {}), built) as (session, module):
            dev = session.device(target.kind.name, config.device)
            flush = "cache_flush_cpu_non_first_arg" if config.enable_cpu_cache_flush else ""
            measure = module.time_evaluator(
                module.entry_name, dev, config.number, config.repeat, config.min_repeat_ms,
                f_preproc=flush,
            )  # fmt: skip
            costs = measure(*_arguments(built.arg_info, ref_input, dev, session)).results
    except TVMError as error:
        return failure(MeasureErrorNo.RUNTIME_DEVICE, error, started, built)
    if config.is_trimmed and len(costs) > 2:
        costs = tuple(sorted(costs)[1:-1])
    ended = time.time()
    time.sleep(config.cooldown_interval)
    return MeasureResult(costs, MeasureErrorNo.NO_ERROR, ended - started + built.time_cost, ended)


def outcome_of(
    result_of_process: Callable[[], MeasureResult], built: BuildResult, started: float
) -> MeasureResult:
    """What a process of a runner found of a candidate, or why it found nothing.

    Parameters
    ----------
    result_of_process : function
        Gives what :func:`run_candidate` returned there, or raises.
    built : BuildResult
        The library.
    started : float
        When it was given to the process, in seconds since the epoch.
    """
    try:
        return result_of_process()
    except TimeoutError as error:
        return failure(MeasureErrorNo.RUN_TIMEOUT, error, started, built)
    except ChildProcessError as error:
        return failure(MeasureErrorNo.RUNTIME_DEVICE, error, started, built)
    except Exception as error:
        return failure(MeasureErrorNo.UNKNOWN_ERROR, error, started, built)


def _arguments(
    arg_info: Sequence[tuple[Any, str]], ref_input: Sequence[Any] | None, dev: Any, session: Any
) -> list[Any]:
    if ref_input is not None:
        return [nd.array(value, dev) for value in ref_input]
    fill = session.get_function("tvm.contrib.random.random_fill")
    host = session.cpu(0)
    arrays = []
    for shape, dtype in arg_info:
        array = nd.empty(shape, dtype, host)
        fill(array)
        # random numbers are made by processors; both devices are of the machine that measures
        arrays.append(array if dev == host else array.copyto(dev))
    return arrays


def failure(
    kind: MeasureErrorNo, error: Exception, started: float, built: BuildResult
) -> MeasureResult:
    """The outcome of a candidate that could not be measured."""
    text = "".join(traceback.format_exception(error))
    plain = RuntimeError(str(error)[:_LONGEST_MESSAGE]) if isinstance(error, TVMError) else error
    ended = time.time()
    return MeasureResult((text, plain), kind, ended - started + built.time_cost, ended)


__all__ = [
    "DefaultModuleLoader",
    "EvaluatorConfig",
    "LocalRunner",
    "LocalSession",
    "as_limits_of_gpu",
    "default_module_loader",
    "failure",
    "outcome_of",
    "run_candidate",
    "start_local_server",
]
