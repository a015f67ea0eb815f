"""Functions in processes of their own: what they break, leak or never finish stays there.

    worker = PopenWorker()
    worker.send(measure, [candidate], timeout=10)
    worker.recv()                                  # the result, or the exception

    pool = PopenPoolExecutor(max_workers=2, timeout=10)
    for result in pool.map_with_error_catching(measure, candidates):
        print(result.status, result.value)

The processes are fresh interpreters, no forks: they share no threads, locks or devices with this one.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import select
import signal
import struct
import subprocess
import sys
import threading
import time
from collections import namedtuple
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from enum import IntEnum
from pathlib import Path
from typing import IO, Any

from tvm.support.cores import usable_cores

_LENGTH = struct.Struct("<q")

# Ctrl-C in a terminal reaches the worker too, which ends without a word
_END_AT_CTRL_C = """import signal
signal.signal(signal.SIGINT, signal.SIG_DFL)
signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])"""


@contextlib.contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """Let a process that is started meanwhile begin with SIGINT blocked."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class StatusKind(IntEnum):
    """How far a call is."""

    RUNNING = 0
    COMPLETE = 1
    EXCEPTION = 2
    TIMEOUT = 3


MapResult = namedtuple("MapResult", ["status", "value"])
"""The outcome of one call: what it returned, or the exception."""


class RemoteTraceback(Exception):
    """The cause of an exception of a worker: where it was raised there."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text

    def __str__(self) -> str:
        return f"\n{self.text}"


def kill_child_processes(pid: int) -> None:
    """Kill the processes that a process has started, and those that they have.

    Parameters
    ----------
    pid : int
        The process, which is left alive.
    """
    for child in _children_of(pid):
        kill_child_processes(child)
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)


def _children_of(pid: int) -> list[int]:
    children = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            # the name, in parentheses, may hold anything
            parent = (folder / "stat").read_text().rpartition(")")[2].split()[1]
            if int(parent) == pid:
                children.append(int(folder.name))
    return children


def dump_object(value: Any) -> bytes:
    """The pickled value; functions of scripts, notebooks and other functions with their code."""
    import cloudpickle

    found: bytes = cloudpickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
    return found


def write_message(descriptor: int, message: bytes) -> None:
    """Write a message that :func:`read_message` reads."""
    rest = memoryview(_LENGTH.pack(len(message)) + message)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def read_message(descriptor: int, deadline: float | None = None) -> bytes | None:
    """A message; None if the other side has ended. Raises TimeoutError at the deadline."""
    head = _read_exactly(descriptor, _LENGTH.size, deadline)
    if head is None:
        return None
    (size,) = _LENGTH.unpack(head)
    return _read_exactly(descriptor, size, deadline)


def _read_exactly(descriptor: int, size: int, deadline: float | None) -> bytes | None:
    content = bytearray()
    while len(content) < size:
        if deadline is not None:
            left = max(deadline - time.monotonic(), 0.0)
            if not select.select([descriptor], [], [], left)[0]:
                raise TimeoutError("the call took longer than its timeout")
        part = os.read(descriptor, min(size - len(content), 1 << 20))
        if not part:
            return None
        content += part
    return bytes(content)


class PopenWorker:
    """A process that calls functions, one at a time; it starts with the first call.

    Parameters
    ----------
    initializer : function, optional
        Called in the process before anything else.
    initargs : tuple
        Its arguments.
    maximum_uses : int, optional
        After so many calls the next one gets a new process.
    stdout, stderr : int or file, optional
        Where the process writes, as for ``subprocess.Popen``.
    """

    def __init__(
        self,
        initializer: Callable[..., Any] | None = None,
        initargs: Sequence[Any] = (),
        maximum_uses: int | None = None,
        stdout: int | IO[Any] | None = None,
        stderr: int | IO[Any] | None = None,
    ) -> None:
        if initializer is not None and not callable(initializer):
            raise TypeError(f"initializer must be callable, got {type(initializer).__name__}")
        if maximum_uses is not None and maximum_uses < 1:
            raise ValueError(f"maximum_uses must be at least 1, got {maximum_uses}")
        self._initializer = initializer
        self._initargs = initargs
        self._maximum_uses = maximum_uses
        self._uses = 0
        self._stdout = stdout
        self._stderr = stderr
        self._proc: subprocess.Popen[bytes] | None = None
        self._reader = self._writer = -1
        self._timeout: float | None = None

    def __del__(self) -> None:
        with contextlib.suppress(Exception):  # modules may be gone at the end of the interpreter
            self.kill()

    def kill(self) -> None:
        """End the process and those that it has started; the next call gets a new one."""
        if self._proc is None:
            return
        process, self._proc = self._proc, None
        os.close(self._writer)
        os.close(self._reader)
        kill_child_processes(process.pid)
        process.kill()
        process.wait()

    def join(self, timeout: float | None = None) -> None:
        """Let the process finish what it does, and end.

        Parameters
        ----------
        timeout : float, optional
            How many seconds to wait; then the process is killed.
        """
        if self._proc is None:
            return
        os.close(self._writer)
        self._writer = os.open(os.devnull, os.O_WRONLY)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._proc.wait(timeout)
        self.kill()

    def is_alive(self) -> bool:
        """Whether there is a process."""
        return self._proc is not None and self._proc.poll() is None

    def send(
        self,
        fn: Callable[..., Any],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        timeout: float | None = None,
    ) -> None:
        """Let the process call a function; :meth:`recv` gives the result.

        Parameters
        ----------
        fn : function
            The function.
        args, kwargs :
            Its arguments.
        timeout : float, optional
            How many seconds it may take.
        """
        message = dump_object((fn, tuple(args), dict(kwargs or {})))
        if self._uses == self._maximum_uses:
            self.kill()
        if not self.is_alive():
            self.kill()
            self._start()
        self._uses += 1
        self._call(message, timeout)

    def recv(self) -> Any:
        """The result of the call that was sent last.

        Raises
        ------
        TimeoutError
            If it took too long; the process is killed.
        ChildProcessError
            If the process has ended without a result.
        Exception
            What the function raised; the cause tells where.
        """
        if self._proc is None:
            raise ChildProcessError("recv needs a call that was sent")
        try:
            started = self._receive(None)
            deadline = None if self._timeout is None else started[1] + self._timeout
            status, value, text = self._receive(deadline)
        except (TimeoutError, ChildProcessError):
            self.kill()
            raise
        if status != StatusKind.EXCEPTION:
            return value
        try:
            raise value from RemoteTraceback(text)
        finally:
            del value  # the frames that the exception remembers must not hold it in turn

    def _start(self) -> None:
        child_reads, self._writer = os.pipe()
        self._reader, child_writes = os.pipe()
        # the same modules must be found there as here
        program = (
            f"{_END_AT_CTRL_C}\nimport sys; sys.path[:] = {sys.path!r}\n"
            "from tvm.exec.popen_worker import main; main()"
        )
        with _interrupts_blocked():
            self._proc = subprocess.Popen(
                [sys.executable, "-c", program, str(child_reads), str(child_writes)],
                pass_fds=(child_reads, child_writes),
                stdout=self._stdout,
                stderr=self._stderr,
            )
        os.close(child_reads)
        os.close(child_writes)
        self._uses = 0
        if self._initializer is not None:
            self._call(dump_object((self._initializer, tuple(self._initargs), {})), None)
            self.recv()

    def _call(self, message: bytes, timeout: float | None) -> None:
        self._timeout = timeout
        with contextlib.suppress(BrokenPipeError):  # recv tells that the process has ended
            write_message(self._writer, message)

    def _receive(self, deadline: float | None) -> tuple[StatusKind, Any, str]:
        message = read_message(self._reader, deadline)
        if message is None:
            raise ChildProcessError("the process ended before the function returned")
        found: tuple[StatusKind, Any, str] = pickle.loads(message)
        return found


class PopenPoolExecutor:
    """Several workers behind the interface of ``concurrent.futures``.

    Parameters
    ----------
    max_workers : int, optional
        How many processes; by default as many as there are processors.
    timeout : float, optional
        How many seconds each call may take.
    initializer, initargs, stdout, stderr :
        As of :class:`PopenWorker`.
    maximum_process_uses : int, optional
        After so many calls a process is replaced.
    """

    def __init__(
        self,
        max_workers: int | None = None,
        timeout: float | None = None,
        initializer: Callable[..., Any] | None = None,
        initargs: Sequence[Any] = (),
        maximum_process_uses: int | None = None,
        stdout: int | IO[Any] | None = None,
        stderr: int | IO[Any] | None = None,
    ) -> None:
        if initializer is not None and not callable(initializer):
            raise TypeError(f"initializer must be callable, got {type(initializer).__name__}")
        self._threads = ThreadPoolExecutor(max_workers or usable_cores())
        self._timeout = timeout
        self._options = (initializer, initargs, maximum_process_uses, stdout, stderr)
        self._local = threading.local()
        self._workers: list[PopenWorker] = []
        self._lock = threading.Lock()

    def __del__(self) -> None:
        with contextlib.suppress(Exception):
            self._threads.shutdown(wait=False, cancel_futures=True)
            for worker in self._workers:
                worker.kill()

    def submit(self, fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Future[Any]:
        """Call the function in one of the processes; a future of the result."""
        return self._threads.submit(self._run, fn, args, kwargs)

    def map_with_error_catching(
        self, fn: Callable[[Any], Any], iterator: Iterable[Any]
    ) -> Iterator[MapResult]:
        """The outcomes of calls with each value, in their order.

        Parameters
        ----------
        fn : function
            The function.
        iterator : iterable
            The values.
        """
        for future in [self.submit(fn, value) for value in iterator]:
            try:
                yield MapResult(StatusKind.COMPLETE, future.result())
            except TimeoutError as error:
                yield MapResult(StatusKind.TIMEOUT, error)
            except Exception as error:
                yield MapResult(StatusKind.EXCEPTION, error)

    def _run(self, fn: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        worker = self._worker()
        worker.send(fn, args, kwargs, self._timeout)
        return worker.recv()

    def _worker(self) -> PopenWorker:
        """The worker of the calling thread."""
        worker: PopenWorker | None = getattr(self._local, "worker", None)
        if worker is None:
            worker = self._local.worker = PopenWorker(*self._options)
            with self._lock:
                self._workers.append(worker)
        return worker
