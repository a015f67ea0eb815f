"""Calls on a Dask cluster, each in a process of its own that a worker of the cluster can kill.

    fleet = Fleet("scheduler:8786")
    for outcome in fleet.call(build_candidate, [(inputs, options), ...], seconds=15):
        ...                                   # what the function returned, or the exception

When a worker dies its calls go to another one; workers that join meanwhile take their share.
"""

from __future__ import annotations

import fcntl
import os
import pickle
import tempfile
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

from tvm.contrib.popen_pool import PopenPoolExecutor, dump_object
from tvm.error import TVMError, install_hint

_CONNECTING = 5.0  # seconds for the scheduler to answer
_PATIENCE = 60.0  # seconds without any worker


class Fleet:
    """A Dask cluster.

    Parameters
    ----------
    cluster : str, distributed.Client or distributed cluster
        The scheduler's address, such as ``"scheduler:8786"``; or what is connected to it.
    """

    def __init__(self, cluster: Any) -> None:
        self.cluster = cluster
        self._client: Any = None

    @property
    def client(self) -> Any:
        """The connection, which is made with the first call."""
        if self._client is None:
            self._client = client = _connected(self.cluster)
            if client is not self.cluster:
                weakref.finalize(self, client.close, timeout=1)
        return self._client

    @property
    def threads(self) -> int:
        """How many calls the workers take at a time."""
        with suppress(TimeoutError):
            self.client.wait_for_workers(1, timeout=_PATIENCE)
        count = sum(self.client.nthreads().values())
        if not count:
            raise self._without_workers()
        return int(count)

    def call(
        self,
        function: Callable[..., Any],
        items: Sequence[tuple[Any, ...]],
        seconds: float,
        is_exclusive: bool = False,
    ) -> list[Any]:
        """Call a function with each of several tuples of arguments.

        Parameters
        ----------
        function : function
            Importable by the workers, or of a script, which is sent to them.
        items : list of tuple
            The arguments.
        seconds : float
            For each call; then its process is killed.
        is_exclusive : bool
            Whether a machine does nothing else of the kind meanwhile, as measurements require.

        Returns
        -------
        list
            What the function returned, or the exception: TimeoutError; ChildProcessError, if the process
            ended, or the workers that had it died one after the other.
        """
        futures = [
            self.client.submit(
                _call_in_process, dump_object((function, item)), seconds, is_exclusive, pure=False
            )
            for item in items
        ]
        try:
            self._wait(futures)
            return [_outcome(future) for future in futures]
        finally:
            self.client.cancel(futures)

    def _wait(self, futures: Sequence[Any]) -> None:
        import distributed

        wait: Any = distributed.wait
        seen = time.monotonic()
        while any([not future.done() for future in futures]):
            with suppress(TimeoutError):
                wait(futures, timeout=2)
            if self.client.nthreads():
                seen = time.monotonic()
            elif time.monotonic() - seen > _PATIENCE:
                raise self._without_workers()

    def _without_workers(self) -> TVMError:
        address = self.client.scheduler.address
        return TVMError(
            f"the Dask cluster at {address} has no workers",
            hint=f"start some: dask worker {address}",
        )


def _connected(cluster: Any) -> Any:
    try:
        import distributed
    except ImportError:
        raise TVMError(
            "a fleet requires the package distributed", hint=install_hint("fleet")
        ) from None
    client_class: Any = distributed.Client
    if isinstance(cluster, client_class):
        return cluster
    try:
        return client_class(cluster, timeout=_CONNECTING)
    except OSError as error:
        raise TVMError(
            f"no Dask scheduler answers at {cluster}: {error}", hint="start one: dask scheduler"
        ) from None


def raised(outcome: Any) -> Any:
    """An outcome of :meth:`Fleet.call`, or the exception that it is."""
    if isinstance(outcome, Exception):
        raise outcome
    return outcome


def _outcome(future: Any) -> Any:
    from distributed import KilledWorker

    try:
        return future.result()
    except KilledWorker as error:
        return ChildProcessError(str(error))
    except Exception as error:
        return error


def _call_in_process(message: bytes, seconds: float, is_exclusive: bool) -> Any:
    """Call a pickled function in another process of the worker."""
    if not is_exclusive:
        return _processes(seconds).submit(_call, message).result()
    with _machine_to_itself():
        return _processes(seconds).submit(_call, message).result()


def _call(message: bytes) -> Any:
    function, args = pickle.loads(message)
    return function(*args)


@cache
def _processes(seconds: float) -> PopenPoolExecutor:
    return PopenPoolExecutor(timeout=seconds)


@contextmanager
def _machine_to_itself() -> Iterator[None]:
    """Let no other worker of this user measure on this machine meanwhile."""
    path = Path(tempfile.gettempdir()) / f"tvm-measuring-{os.geteuid()}.lock"
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def run_library(
    content: bytes, suffix: str, run: Callable[..., Any], target: Any, library: Any, *rest: Any
) -> Any:
    """Run a candidate whose library came as bytes, where its worker is.

    Parameters
    ----------
    content : bytes
        The library.
    suffix : str
        Of its file.
    run : function
        ``run(target, library, *rest)`` measures it.
    target : Target
        What it was built for.
    library : BuildResult
        What was built; its file is replaced.
    """
    with tempfile.TemporaryDirectory(prefix="tvm-fleet-") as folder:
        path = Path(folder) / f"candidate{suffix}"
        path.write_bytes(content)
        return run(target, library._replace(filename=str(path)), *rest)
