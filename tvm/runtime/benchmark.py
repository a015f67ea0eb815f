"""Measured times of compiled functions."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from tvm._ffi.registry import get_global_func
from tvm._ffi.runtime_ctypes import Device
from tvm.support.notebook import table

if TYPE_CHECKING:
    from tvm.runtime.module import Module


class BenchmarkResult:
    """Seconds of each measurement, and their statistics."""

    def __init__(self, results: Sequence[float]) -> None:
        self.results = tuple(results)
        ordered = sorted(self.results)
        count = len(ordered)
        self.mean = sum(ordered) / count
        self.std = (sum((x - self.mean) ** 2 for x in ordered) / count) ** 0.5
        middle = count // 2
        self.median = ordered[middle] if count % 2 else (ordered[middle - 1] + ordered[middle]) / 2
        self.min = ordered[0]
        self.max = ordered[-1]

    def __repr__(self) -> str:
        return (
            f"BenchmarkResult(min={self.min}, mean={self.mean}, median={self.median}, "
            f"max={self.max}, std={self.std}, results={self.results})"
        )

    def __str__(self) -> str:
        head = "".join(f"{title:^14s}" for title, _ in self._milliseconds())
        row = "".join(f"{value:^14.4f}" for _, value in self._milliseconds())
        return f"Execution time summary:\n{head}\n{row}"

    def _repr_html_(self) -> str:
        columns = self._milliseconds()
        return table([title for title, _ in columns], [[f"{value:.4f}" for _, value in columns]])

    def _milliseconds(self) -> list[tuple[str, float]]:
        names = ("mean", "median", "max", "min", "std")
        return [(f"{name} (ms)", getattr(self, name) * 1000) for name in names]


def make_time_evaluator(
    module: Module | None, func_name: str, dev: Device, number: int, repeat: int, *options: Any
) -> Callable[..., BenchmarkResult]:
    """The function behind :meth:`Module.time_evaluator`."""
    if not isinstance(dev, Device):
        raise TypeError(f"a measurement needs a Device, got {type(dev).__name__}")
    measure = get_global_func("runtime.RPCTimeEvaluator")(
        module, func_name, dev.device_type, dev.device_id, number, repeat, *options
    )

    def evaluator(*args: Any) -> BenchmarkResult:
        """Measure with these arguments."""
        blob = measure(*args)
        return BenchmarkResult(struct.unpack(f"@{repeat}d", blob))

    return evaluator


def time_function(
    func: Callable[[], object], dev: Device, number: int, repeat: int, *options: Any
) -> BenchmarkResult:
    """Measure a Python or packed function; the options as of :meth:`Module.time_evaluator`, from the fifth."""
    evaluator = get_global_func("runtime.TimeFunction")(func, dev, number, repeat, *options)
    return BenchmarkResult(struct.unpack(f"@{repeat}d", evaluator()))
