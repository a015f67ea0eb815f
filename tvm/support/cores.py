"""How many processors there are to use."""

from __future__ import annotations

import os


def usable_cores() -> int:
    """The processors that this process may run on; of the machine where that cannot be told."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
