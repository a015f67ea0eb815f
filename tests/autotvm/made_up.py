"""A builder and a runner that take no time."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tvm import autotvm
from tvm.autotvm.measure import Builder, MeasureErrorNo, MeasureResult, Runner
from tvm.autotvm.tuner import Tuner


class NoBuilder(Builder):
    """Builds nothing."""

    def build(self, measure_inputs: Sequence[Any]) -> list[Any]:
        return [None for _ in measure_inputs]


class MadeUpRunner(Runner):
    """Takes the cost of a candidate from a function; None is a failure."""

    def __init__(self, cost: Callable[[Any], float | None]) -> None:
        super().__init__(1, 1)
        self.cost = cost
        self.seen: list[int] = []

    def get_build_kwargs(self) -> dict[str, Any]:
        return {}

    def run(self, measure_inputs: Sequence[Any], build_results: Sequence[Any]) -> list[Any]:
        self.seen += [inp.config.index for inp in measure_inputs]
        return [self._result(self.cost(inp.config)) for inp in measure_inputs]

    def _result(self, cost: float | None) -> MeasureResult:
        if cost is None:
            error = ("traceback", RuntimeError("made up"))
            return MeasureResult(error, MeasureErrorNo.RUNTIME_DEVICE, 0.1, time.time())
        return MeasureResult((cost,), MeasureErrorNo.NO_ERROR, 0.1, time.time())


def far_from_16_by_32(config: Any) -> float:
    """A valley with its bottom at the tile of 16 rows and 32 columns."""
    y, x = config["tile_y"].size[-1], config["tile_x"].size[-1]
    return 1e-3 * (1 + abs(np.log2(y) - 4) + abs(np.log2(x) - 5))


def tune(
    tuner: Tuner, cost: Any = far_from_16_by_32, n_trial: int = 1000, **options: Any
) -> list[int]:
    """Tune with these costs; the points in the order in which they were tried."""
    runner = MadeUpRunner(cost)
    option = autotvm.measure_option(NoBuilder(1, 4), runner)
    tuner.tune(n_trial=n_trial, measure_option=option, **options)
    return runner.seen
