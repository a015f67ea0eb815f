"""Running candidates on machines of a tracker: each is sent there, loaded and measured in a session of its own."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

from tvm import knobs
from tvm.autotvm.env import AutotvmGlobalScope, reset_global_scope
from tvm.autotvm.measure.interface import MeasureInput, MeasureResult, Runner
from tvm.autotvm.measure.run_methods import (
    EvaluatorConfig,
    as_limits_of_gpu,
    default_module_loader,
    outcome_of,
    run_candidate,
)
from tvm.contrib.popen_pool import PopenPoolExecutor
from tvm.error import TVMError
from tvm.rpc.client import RPCSession, connect_tracker


class RPCRunner(Runner):
    """Runs candidates on machines that a tracker gives out.

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
    timeout : float
        Seconds for one candidate.
    n_parallel : int, optional
        How many at a time, on as many machines; by default one for each processor here.
    number : int
        Calls in one measurement, of which the mean counts.
    repeat : int
        Measurements; of three and more the fastest and the slowest are dropped.
    min_repeat_ms : int
        ``number`` grows until one measurement takes this long.
    cooldown_interval : float
        Seconds between candidates.
    enable_cpu_cache_flush : bool
        Whether the caches are emptied of all arguments but the first before each measurement.
    module_loader : function, optional
        ``loader(remote_kwargs, build_result)`` is a context of a session and the loaded module.
    key_file : str, optional
        The file of the secret that the tracker and its machines were given.
    """

    def __init__(
        self,
        key: str,
        host: str,
        port: int,
        priority: int = 1,
        timeout: float = 10,
        n_parallel: int | None = None,
        number: int = 4,
        repeat: int = 3,
        min_repeat_ms: int = 0,
        cooldown_interval: float = 0.1,
        enable_cpu_cache_flush: bool = False,
        module_loader: Callable[..., Any] | None = None,
        *,
        key_file: str | None = None,
    ) -> None:
        super().__init__(timeout, n_parallel)
        self.key = key
        self.host = host
        self.port = port
        self.priority = priority
        self.key_file = key_file
        self.number = number
        self.repeat = repeat
        self.min_repeat_ms = min_repeat_ms
        self.cooldown_interval = cooldown_interval
        self.enable_cpu_cache_flush = enable_cpu_cache_flush
        self.module_loader = module_loader or default_module_loader()
        self._ref_input: list[Any] | None = None
        # a candidate may have to wait for those before it
        self.executor: Any = PopenPoolExecutor(
            max_workers=self.n_parallel,
            timeout=timeout * (self.n_parallel + 1),
            initializer=reset_global_scope,
            initargs=(AutotvmGlobalScope.current,),
        )

    @property
    def ref_input(self) -> list[Any] | None:
        """The arguments; by default random values."""
        return self._ref_input

    @ref_input.setter
    def ref_input(self, val: Sequence[Any] | None) -> None:
        self._ref_input = None if val is None else list(val)

    @property
    def _remote_kwargs(self) -> dict[str, Any]:
        return {
            "device_key": self.key, "host": self.host, "port": self.port,
            "priority": self.priority, "timeout": self.timeout, "key_file": self.key_file,
        }  # fmt: skip

    def set_task(self, task: Any) -> None:
        """Prepare for a task; raises RuntimeError if no machine answers.

        Parameters
        ----------
        task : Task
            The task.
        """
        self.task = task
        if not check_remote(task.target, self.key, self.host, self.port, key_file=self.key_file):
            raise RuntimeError(
                f"the tracker {self.host}:{self.port} has no machine for the key {self.key!r} that "
                "answers; python -m tvm.exec.query_rpc_tracker tells what it has"
            )

    def get_build_kwargs(self) -> dict[str, Any]:
        """The limits of the machine's accelerator, if the task is for one."""
        target = self.task.target
        if target.kind.name in ("llvm", "c"):
            return {}
        remote = request_remote(self.key, self.host, self.port, key_file=self.key_file)
        return as_limits_of_gpu(remote.device(target.kind.name, 0))

    def run(
        self, measure_inputs: Sequence[MeasureInput], build_results: Sequence[Any]
    ) -> list[MeasureResult]:
        """Run candidates.

        Parameters
        ----------
        measure_inputs : list of MeasureInput
            The candidates.
        build_results : list of BuildResult or MeasureResult
            What the builder has returned for them.
        """
        pairs = list(zip(measure_inputs, build_results, strict=True))
        started = time.time()
        futures = [self._submitted(inp, built) for inp, built in pairs]
        outcomes = zip(futures, build_results, strict=True)
        return [
            built if future is None else outcome_of(future.result, built, started)
            for future, built in outcomes
        ]

    def _submitted(self, inp: MeasureInput, built: Any) -> Future[MeasureResult] | None:
        if isinstance(built, MeasureResult):
            return None
        config = EvaluatorConfig(
            self.number, self.repeat, self.min_repeat_ms, self.enable_cpu_cache_flush,
            cooldown_interval=self.cooldown_interval, is_trimmed=True,
        )  # fmt: skip
        # the space of a candidate may be large, its target says enough
        future: Future[MeasureResult] = self.executor.submit(
            run_candidate, inp.target, built, config, self._ref_input, self.module_loader,
            self._remote_kwargs,
        )  # fmt: skip
        return future


def run_through_rpc(
    measure_input: MeasureInput,
    build_result: Any,
    number: int,
    repeat: int,
    min_repeat_ms: int,
    cooldown_interval: float,
    remote_kwargs: dict[str, Any],
    ref_input: Sequence[Any] | None,
    enable_cpu_cache_flush: bool = False,
    module_loader: Callable[..., Any] | None = None,
) -> MeasureResult:
    """Measure a candidate on a machine of a tracker, in this process.

    Parameters
    ----------
    measure_input : MeasureInput
        The candidate.
    build_result : BuildResult or MeasureResult
        What was built of it.
    number, repeat, min_repeat_ms, cooldown_interval, enable_cpu_cache_flush, module_loader :
        As of :class:`RPCRunner`.
    remote_kwargs : dict
        The arguments of :func:`request_remote`.
    ref_input : list of numpy.ndarray or None
        The arguments; by default random values.
    """
    if isinstance(build_result, MeasureResult):
        return build_result
    config = EvaluatorConfig(
        number, repeat, min_repeat_ms, enable_cpu_cache_flush,
        cooldown_interval=cooldown_interval, is_trimmed=True,
    )  # fmt: skip
    loader = module_loader or default_module_loader()
    target = measure_input.target
    return run_candidate(target, build_result, config, ref_input, loader, remote_kwargs)


def request_remote(
    device_key: str,
    host: str | None = None,
    port: int | None = None,
    priority: int = 1,
    timeout: float = 60,
    *,
    key_file: str | None = None,
) -> RPCSession:
    """A session with a machine of a tracker.

    Parameters
    ----------
    device_key : str
        What kind of machine.
    host : str, optional
        The tracker's address; by default ``TVM_TRACKER_HOST``.
    port : int, optional
        Its port; by default ``TVM_TRACKER_PORT``.
    priority : int
        Of the request.
    timeout : float
        Seconds after which the session ends.
    key_file : str, optional
        The file of the secret that the tracker was given.
    """
    address = host or knobs.TRACKER_HOST.value
    if not address:
        raise TVMError(
            "request_remote requires the address of a tracker",
            hint="pass host=..., or set TVM_TRACKER_HOST",
        )
    tracker = connect_tracker(address, port or knobs.TRACKER_PORT.value, key_file=key_file)
    return tracker.request(device_key, priority=priority, session_timeout=timeout)


def check_remote(
    target: Any,
    device_key: str,
    host: str | None = None,
    port: int | None = None,
    priority: int = 100,
    timeout: float = 10,
    *,
    key_file: str | None = None,
) -> bool:
    """Whether a tracker gives out a machine that has the target's device, in time.

    Parameters
    ----------
    target : Target
        The target.
    device_key, host, port, priority, key_file :
        As of :func:`request_remote`.
    timeout : float
        How many seconds to wait.
    """
    found: list[bool] = []

    def ask() -> None:
        # whoever has gone, or is none, does not answer
        with suppress(OSError, RuntimeError):
            remote = request_remote(device_key, host, port, priority, key_file=key_file)
            kind = target.kind.name if hasattr(target, "kind") else str(target)
            found.append(bool(remote.device(kind, 0).exist))

    # a request waits for as long as there is no machine
    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    thread.join(timeout)
    return bool(found and found[0])
