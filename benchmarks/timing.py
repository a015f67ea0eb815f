"""Timing of functions that take turns: absolute times on shared machines mean nothing alone."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping


def alternate(
    functions: Mapping[str, Callable[[], object]], repeat: int, warmup: int = 2
) -> dict[str, float]:
    """Median seconds of each function; in each round every one runs once."""
    times: dict[str, list[float]] = {name: [] for name in functions}
    for round_ in range(warmup + repeat):
        for name, function in functions.items():
            start = time.perf_counter()
            function()
            if round_ >= warmup:
                times[name].append(time.perf_counter() - start)
    return {name: statistics.median(values) for name, values in times.items()}
