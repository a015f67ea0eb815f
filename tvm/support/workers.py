"""Work shared out between this process and forked copies of it.

    share_out(compile, parts, 2)    # each part is compiled once, by this process or by another

A copy starts at once with all that this process knows, and nothing comes back but what the work leaves
on disk. What a copy could not do is left undone: its caller does it, and sees why it failed.
"""

from __future__ import annotations

import gc
import os
import signal
import struct
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import TypeVar

from tvm.support.cores import usable_cores

T = TypeVar("T")

_INDEX = struct.Struct("<I")
_MOST_ITEMS = 4096 // _INDEX.size  # what a pipe takes without waiting for readers
_MOST_PROCESSES = 8
_MOST_UNASKED = 4  # they share memory, which tells nobody how much of it is free
# how long a copy may take for its last item: seconds, and times the longest item done here
_PATIENCE, _SLOWEST = 5.0, 4.0
# the module of the thread that redraws the line of progress
_REDRAWING = "rich.live"


def usual_processes() -> int:
    """How many processes may share work where nobody said: one for each core, as far as it is safe.

    A copy has the calling thread alone, and locks that other threads held stay locked in it. Those
    of LLVM and of the runtime are taken care of, Python's own are not: where other threads run
    Python, there is one process.
    """
    if sys.platform != "linux" or _other_threads():
        return 1
    return min(usable_cores(), _MOST_UNASKED)


def _other_threads() -> set[int]:
    redrawing = {t.ident for t in threading.enumerate() if type(t).__module__ == _REDRAWING}
    return sys._current_frames().keys() - redrawing - {threading.get_ident()}


def share_out(
    work: Callable[[T], object],
    items: Sequence[T],
    processes: int,
    lock: AbstractContextManager[object] | None = None,
) -> None:
    """Call ``work`` on each item, in one of several processes.

    Parameters
    ----------
    work : callable
        What leaves its results on disk.
    items : list
        At most 1024 of them are done.
    processes : int
        How many work at most, this one among them.
    lock : context manager, optional
        Held while this process is copied, so that no other thread holds it in a copy.
    """
    items = items[:_MOST_ITEMS]
    count = min(processes, len(items), _MOST_PROCESSES)
    if count < 2 or not hasattr(os, "fork"):
        return
    queue, feed = os.pipe()
    copies: list[int] = []
    longest = 0.0
    try:
        os.write(feed, b"".join([_INDEX.pack(index) for index in range(len(items))]))
        os.close(feed)
        with suppress(OSError):  # too many processes, or no memory for one
            for _ in range(count - 1):
                _start_copy(work, items, queue, lock or nullcontext(), copies)
        for index in _taken(queue):
            start = time.monotonic()
            work(items[index])
            longest = max(longest, time.monotonic() - start)
        while copies and _has_ended(copies[-1], _PATIENCE + _SLOWEST * longest):
            copies.pop()
    finally:
        os.close(queue)
        for process in copies:  # the work here failed or was interrupted, or the copy hangs
            with suppress(ProcessLookupError, ChildProcessError):
                os.kill(process, signal.SIGKILL)
                os.waitpid(process, 0)


def _has_ended(process: int, seconds: float) -> bool:
    """Wait for a copy that has at most one item left to do."""
    limit = time.monotonic() + seconds
    while time.monotonic() < limit:
        try:
            if os.waitpid(process, os.WNOHANG)[0]:
                return True
        except ChildProcessError:  # the program waits for all of its children, or ignores their end
            return True
        time.sleep(0.002)
    return False


def _taken(queue: int) -> Iterator[int]:
    """Indices that no other process took."""
    while data := os.read(queue, _INDEX.size):
        yield _INDEX.unpack(data)[0]


def _start_copy(
    work: Callable[[T], object],
    items: Sequence[T],
    queue: int,
    lock: AbstractContextManager[object],
    copies: list[int],
) -> None:
    """Start a process that works until the queue is empty, and note its number."""
    parent, blocked = os.getpid(), signal.pthread_sigmask(signal.SIG_BLOCK, [])
    try:
        with lock, warnings.catch_warnings():
            # a copy has one thread; what it runs takes no lock of the others
            warnings.simplefilter("ignore", DeprecationWarning)
            # Ctrl-C would lose the number here, and go on in the caller's code in the copy
            signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
            process = os.fork()
        if process:
            copies.append(process)
            return
        _work_in_copy(work, items, queue, parent, blocked)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)


def _work_in_copy(
    work: Callable[[T], object],
    items: Sequence[T],
    queue: int,
    parent: int,
    blocked: Iterable[int],
) -> None:
    try:
        with suppress(ValueError):  # a copied thread may not be the main one
            # handlers and event loops of the program are not for copies
            signal.set_wakeup_fd(-1)
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        gc.disable()  # what this process does not own it must not finish
        for index in _taken(queue):
            work(items[index])
            if os.getppid() != parent:  # nobody wants the rest
                break
    finally:
        os._exit(0)
