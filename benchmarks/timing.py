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
            seconds = seconds_of(function)
            if round_ >= warmup:
                times[name].append(seconds)
    return _medians(times)


def alternate_stretches(
    functions: Mapping[str, Callable[[], object]], repeat: int, stretch: int, pause: float
) -> dict[str, float]:
    """Median seconds of each function; in each round every one runs several times, behind a pause.

    In the pause the threads of the one before stop waiting for more to do.
    """
    times: dict[str, list[float]] = {name: [] for name in functions}
    for _ in range(repeat):
        for name, function in functions.items():
            time.sleep(pause)
            function()
            times[name] += [seconds_of(function) for _ in range(stretch)]
    return _medians(times)


def shortest(
    functions: Mapping[str, Callable[[], object]],
    rounds: int,
    stretch: float = 0.02,
    pause: float = 0.05,
) -> dict[str, float]:
    """Least seconds of one call of each function; in a round each runs for a stretch of seconds.

    What is too short for a median on a shared machine is compared by its best. In the pause before a
    stretch the threads of the function before stop waiting for more to do.
    """
    best = {name: seconds_of(function) for name, function in functions.items()}
    for _ in range(rounds):
        for name, function in functions.items():
            time.sleep(pause)
            end = time.perf_counter() + stretch
            while time.perf_counter() < end:
                best[name] = min(best[name], seconds_of(function))
    return best


def seconds_of(function: Callable[[], object]) -> float:
    """What one call takes."""
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def _medians(times: Mapping[str, list[float]]) -> dict[str, float]:
    return {name: statistics.median(values) for name, values in times.items()}
