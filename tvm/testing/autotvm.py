"""A template, tasks and records that tests of tuning are written with."""

from __future__ import annotations

import random
import time
from typing import Any

import tvm.te as te
from tvm import autotvm
from tvm.autotvm.measure import MeasureErrorNo, MeasureInput, MeasureResult, Runner
from tvm.target import Target


class DummyRunner(Runner):
    """Says of every candidate that it has run, in times drawn at random."""

    def __init__(self) -> None:
        super().__init__(1, 1)

    def get_build_kwargs(self) -> dict[str, Any]:
        """Nothing has to be known of the device."""
        return {}

    def run(self, measure_inputs: Any, build_results: Any) -> list[MeasureResult]:
        """Times of 10 to 20 ms.

        Parameters
        ----------
        measure_inputs : list of MeasureInput
            The candidates.
        build_results : list of BuildResult
            What was built of them.
        """
        del build_results
        return [
            MeasureResult(
                (0.01 + 0.01 * random.random(),), MeasureErrorNo.NO_ERROR, 0.02, time.time()
            )
            for _ in measure_inputs
        ]


@autotvm.template("testing/matmul")
def matmul(N: int, L: int, M: int, dtype: str) -> tuple[te.Schedule, list[te.Tensor]]:
    """A matrix product, tiled in both directions.

    Parameters
    ----------
    N, L, M : int
        The extents.
    dtype : str
        The data type.
    """
    a = te.placeholder((N, L), name="A", dtype=dtype)
    b = te.placeholder((L, M), name="B", dtype=dtype)
    k = te.reduce_axis((0, L), name="k")
    c = te.compute((N, M), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    schedule = te.create_schedule(c.op)
    y, x = c.op.axis

    config = autotvm.get_config()
    config.define_split("tile_y", y, num_outputs=2)
    config.define_split("tile_x", x, num_outputs=2)
    yo, yi = config["tile_y"].apply(schedule, c, y)
    xo, xi = config["tile_x"].apply(schedule, c, x)
    schedule[c].reorder(yo, xo, k, yi, xi)
    return schedule, [a, b, c]


@autotvm.template("testing/bad_matmul")
def bad_matmul(N: int, L: int, M: int, dtype: str) -> tuple[te.Schedule, list[te.Tensor]]:
    """The same; for targets with the key ``bad_device`` its loops are bound to threads none has.

    Parameters
    ----------
    N, L, M : int
        The extents.
    dtype : str
        The data type.
    """
    schedule, args = matmul(N, L, M, dtype)
    target = Target.current()
    if target is not None and "bad_device" in target.keys:
        stage = schedule[args[-1]]
        stage.bind(stage.leaf_iter_vars[0], te.thread_axis("threadIdx.x"))
    return schedule, args


def get_sample_task(n: int = 128) -> tuple[Any, Target]:
    """A task of square matrices, and its target.

    Parameters
    ----------
    n : int
        The extent.
    """
    target = Target("llvm")
    return autotvm.task.create("testing/matmul", args=(n, n, n, "float32"), target=target), target


def get_sample_records(n: int) -> list[tuple[MeasureInput, MeasureResult]]:
    """Records of the first configurations; the times grow with their numbers.

    Parameters
    ----------
    n : int
        How many; after the last configuration the first comes again.
    """
    task, target = get_sample_task()
    space = task.config_space
    return [
        (
            MeasureInput(target, task, space.get(i % len(space))),
            MeasureResult((i + 1,), MeasureErrorNo.NO_ERROR, i, time.time()),
        )
        for i in range(n)
    ]
