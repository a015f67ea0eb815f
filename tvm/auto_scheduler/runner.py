"""Running candidates: on this machine, or on machines that a tracker gives out.

Each is loaded and timed in another process, as AutoTVM's are; what hangs or crashes there is replaced.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any

from tvm.autotvm.measure.build_methods import BuildResult as MeasuredLibrary
from tvm.autotvm.measure.run_methods import (
    EvaluatorConfig,
    default_module_loader,
    outcome_of,
    run_candidate,
    start_local_server,
)
from tvm.contrib.popen_pool import PopenPoolExecutor
from tvm.runtime.object import Object

from .measure_types import BuildResult, MeasureErrorNo, MeasureInput, MeasureResult
from .runner_args import prepare_runner_args
from .utils import check_remote, get_const_tuple, shortened


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


class PoolRunner(ProgramRunner):
    """Runs candidates in a pool of processes.

    Parameters
    ----------
    timeout : float
        Seconds for one candidate.
    n_parallel : int
        How many at a time.
    config : EvaluatorConfig
        How they are timed; a flush of the caches goes with single calls.
    """

    def __init__(self, timeout: float, n_parallel: int, config: EvaluatorConfig) -> None:
        self.timeout = timeout
        self.n_parallel = n_parallel
        self.number = 1 if config.enable_cpu_cache_flush else config.number
        self.repeat = config.repeat
        self.min_repeat_ms = 0 if config.enable_cpu_cache_flush else config.min_repeat_ms
        self.cooldown_interval = config.cooldown_interval
        self.enable_cpu_cache_flush = config.enable_cpu_cache_flush
        self.device = config.device
        self._pool: PopenPoolExecutor | None = None

    @property
    def pool(self) -> PopenPoolExecutor:
        """The processes, which start with the first candidates."""
        if self._pool is None:
            self._pool = PopenPoolExecutor(self.n_parallel, timeout=self.seconds_in_pool)
        return self._pool

    @property
    def seconds_in_pool(self) -> float:
        """How long a process may take for a candidate."""
        return self.timeout

    @property
    def config(self) -> EvaluatorConfig:
        """How candidates are timed."""
        return EvaluatorConfig(
            self.number, self.repeat, self.min_repeat_ms, self.enable_cpu_cache_flush, self.device,
            self.cooldown_interval,
        )  # fmt: skip

    @property
    def remote_kwargs(self) -> dict[str, Any]:
        """The tracker's machine to measure on; none is this one."""
        return {}

    def run(
        self,
        measure_inputs: Sequence[MeasureInput],
        build_results: Sequence[BuildResult],
        verbose: int = 1,
    ) -> list[MeasureResult]:
        started = time.time()
        pairs = list(zip(measure_inputs, build_results, strict=True))
        given = [self._submitted(inp, built) for inp, built in pairs]
        return [
            found
            if isinstance(found, MeasureResult)
            else as_result(outcome_of(found.result, as_library(built), started))
            for found, built in zip(given, build_results, strict=True)
        ]

    def _submitted(self, inp: MeasureInput, built: BuildResult) -> Future[Any] | MeasureResult:
        if (failed := failed_before(inp, built)) is not None:
            return failed
        library, values = as_library(built), prepare_runner_args(inp, built)
        future: Future[Any] = self.pool.submit(
            run_candidate, inp.task.target, library, self.config, values, default_module_loader(),
            self.remote_kwargs,
        )  # fmt: skip
        return future


def failed_before(inp: MeasureInput, built: BuildResult) -> MeasureResult | None:
    """The outcome of a candidate that cannot be run: its build failed, or its inputs have no values."""
    if built.error_no != MeasureErrorNo.NO_ERROR:
        return MeasureResult([], built.error_no, built.error_msg, built.time_cost, time.time())
    try:
        prepare_runner_args(inp, built)
    except Exception:
        text = shortened(traceback.format_exc())
        return MeasureResult([], MeasureErrorNo.UNKNOWN_ERROR, text, built.time_cost, time.time())
    return None


def as_library(built: BuildResult) -> MeasuredLibrary:
    """What a builder gave, as the process that measures takes it."""
    info = tuple([(get_const_tuple(t.shape), str(t.dtype)) for t in built.args])
    return MeasuredLibrary(built.filename, info, None, built.time_cost)


def as_result(found: Any) -> MeasureResult:
    """What the process that measures gave."""
    if found.error_no == MeasureErrorNo.NO_ERROR:
        return MeasureResult(found.costs, 0, None, found.all_cost, found.timestamp)
    kind = int(found.error_no)
    text = "running timed out" if kind == MeasureErrorNo.RUN_TIMEOUT else str(found.costs[0])
    return MeasureResult([], kind, shortened(text), found.all_cost, found.timestamp)


class LocalRunner(PoolRunner):
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
        config = EvaluatorConfig(
            number, repeat, min_repeat_ms, enable_cpu_cache_flush, device, cooldown_interval
        )
        super().__init__(timeout, 1, config)  # two at a time would disturb each other


class RPCRunner(PoolRunner):
    """Runs candidates on machines that a tracker gives out.

    Raises RuntimeError if none answers.

    Parameters
    ----------
    key : str
        What kind of machine.
    host : str
        The tracker's address.
    port : int
        Its port.
    priority : int
        Of the requests.
    n_parallel : int
        How many candidates at a time, on as many machines.
    timeout, number, repeat, min_repeat_ms, cooldown_interval, enable_cpu_cache_flush, device :
        As of :class:`LocalRunner`.
    key_file : str, optional
        The file of the secret that the tracker and its machines were given.
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
        *,
        key_file: str | None = None,
    ) -> None:
        config = EvaluatorConfig(
            number, repeat, min_repeat_ms, enable_cpu_cache_flush, device, cooldown_interval
        )
        super().__init__(timeout, n_parallel, config)
        self.key = key
        self.host = host
        self.port = port
        self.priority = priority
        self.key_file = key_file
        if not check_remote(key, host, port, priority, timeout, key_file=key_file):
            raise RuntimeError(
                f"the tracker {host}:{port} has no machine for the key {key!r} that answers; "
                "python -m tvm.exec.query_rpc_tracker tells what it has"
            )

    @property
    def seconds_in_pool(self) -> float:
        """A candidate may have to wait for those before it."""
        return self.timeout * (self.n_parallel + 1)

    @property
    def remote_kwargs(self) -> dict[str, Any]:
        return {
            "device_key": self.key, "host": self.host, "port": self.port,
            "priority": self.priority, "timeout": self.timeout, "key_file": self.key_file,
        }  # fmt: skip


class LocalRPCMeasureContext:
    """A tracker and a server on this machine, and a runner that measures through them.

    They end when the context is let go.

    Parameters
    ----------
    priority, n_parallel, timeout, number, repeat, min_repeat_ms, cooldown_interval :
        As of :class:`RPCRunner`.
    enable_cpu_cache_flush, device :
        As of :class:`RPCRunner`.

    Attributes
    ----------
    tracker : rpc.Tracker
        The tracker.
    server : rpc.Server
        The server.
    runner : RPCRunner
        The runner.
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
        key = "$local$device"
        self.tracker, self.server = start_local_server(key)
        self.runner = RPCRunner(
            key, "127.0.0.1", self.tracker.port, priority, n_parallel, timeout, number, repeat,
            min_repeat_ms, cooldown_interval, enable_cpu_cache_flush, device,
        )  # fmt: skip


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
    """Run candidates as :class:`RPCRunner` does.

    Parameters
    ----------
    inputs, build_results, verbose :
        As of :func:`local_run`.
    key, host, port, priority, n_parallel, timeout, number, repeat, min_repeat_ms :
        As of :class:`RPCRunner`.
    cooldown_interval, enable_cpu_cache_flush, device :
        As of :class:`RPCRunner`.
    """
    runner = RPCRunner(
        key, host, port, priority, n_parallel, timeout, number, repeat, min_repeat_ms,
        cooldown_interval, enable_cpu_cache_flush, device,
    )  # fmt: skip
    return runner.run(inputs, build_results, verbose)
