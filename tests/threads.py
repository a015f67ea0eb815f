"""Threads of tests."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Any


def run_in_threads(work: Callable[..., None], arguments: Iterable[tuple[Any, ...]]) -> None:
    """Call a function in a thread for each tuple of arguments, and wait for all."""
    threads = [threading.Thread(target=work, args=given) for given in arguments]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
