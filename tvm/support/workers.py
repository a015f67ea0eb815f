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
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import TypeVar

T = TypeVar("T")

_INDEX = struct.Struct("<I")
_MOST_ITEMS = 4096 // _INDEX.size  # what a pipe takes without waiting for readers
_MOST_PROCESSES = 8
_LONGEST_ITEM = 60.0  # seconds


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
    try:
        os.write(feed, b"".join([_INDEX.pack(index) for index in range(len(items))]))
        os.close(feed)
        for _ in range(count - 1):
            copies.append(_copy_of_process(work, items, queue, lock or nullcontext()))
        for index in _taken(queue):
            work(items[index])
        while copies and _has_ended(copies[-1]):
            copies.pop()
    finally:
        os.close(queue)
        for process in copies:  # the work here failed or was interrupted, or the copy hangs
            os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)


def _has_ended(process: int) -> bool:
    """Wait for a copy that has at most one item left to do."""
    limit = time.monotonic() + _LONGEST_ITEM
    while time.monotonic() < limit:
        if os.waitpid(process, os.WNOHANG)[0]:
            return True
        time.sleep(0.002)
    return False


def _taken(queue: int) -> Iterator[int]:
    """Indices that no other process took."""
    while data := os.read(queue, _INDEX.size):
        yield _INDEX.unpack(data)[0]


def _copy_of_process(
    work: Callable[[T], object],
    items: Sequence[T],
    queue: int,
    lock: AbstractContextManager[object],
) -> int:
    """A process that works until the queue is empty; its number."""
    with lock, warnings.catch_warnings():
        # a copy has one thread; what it runs takes no lock of the others
        warnings.simplefilter("ignore", DeprecationWarning)
        process = os.fork()
    if process:
        return process
    try:
        with suppress(ValueError):  # a copied thread may not be the main one
            signal.signal(signal.SIGINT, signal.SIG_DFL)
        gc.disable()  # what this process does not own it must not finish
        for index in _taken(queue):
            work(items[index])
    finally:
        os._exit(0)
