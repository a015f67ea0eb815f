"""Numbers that describe a schedule, from which cost models learn.

*Itervar* features are a row for each loop: its length and place, its arithmetic, and the elements it
touches in each buffer. *Curve* features sample, for each buffer, how reuse grows with the elements
touched; they have the same length for schedules of any number of loops.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tvm.autotvm.touch import ANNOTATIONS, Loop, Touch, loops_of
from tvm.ir.pass_context import PassContext
from tvm.support.scope import compiling
from tvm.te.schedule.lower import lower_schedule
from tvm.tir.stmt import Stmt
from tvm.tir.transform.simplify import KEEP_LOOPS

ATTRIBUTES = ("length", "nest_level", "topdown", "bottomup", *[f"ann_{a}" for a in ANNOTATIONS])
ARITHMETIC = ("add", "mul", "div")
TOUCHES = ("stride", "mod", "count", "reuse", "T_count", "T_reuse")


def ana_lower(
    sch: Any,
    args: Sequence[Any],
    binds: Mapping[Any, Any] | None = None,
    simple_mode: bool = True,
) -> Stmt:
    """The loops of a schedule, those of one iteration too, nothing unrolled or vectorised.

    Reductions are their updates alone, so that schedules differ in no loop over initial values.

    Parameters
    ----------
    sch : te.Schedule
        The schedule.
    args : list of te.Tensor
        The arguments.
    binds : dict of Tensor to Buffer, optional
        Buffers that some tensors have.
    simple_mode : bool
        True: there is no other form.
    """
    if not simple_mode:
        raise ValueError("ana_lower needs simple_mode=True, got False")
    config = {**PassContext.current().config, KEEP_LOOPS: True}
    with PassContext(config=config), compiling():
        return lower_schedule(sch, args, "main", binds, is_initialized=False).body


def get_itervar_feature(sch: Any, args: Sequence[Any], take_log: bool = False) -> list[Any]:
    """A row for each loop: ``[["_itervar_", var], ["_attr_", ...], ["_arith_", ...], [buffer, ...]]``.

    Parameters
    ----------
    sch, args :
        As of :func:`ana_lower`.
    take_log : bool
        Whether numbers are replaced by their logarithms.
    """
    return [_row_of(loop, take_log) for loop in loops_of(ana_lower(sch, args))]


def _row_of(loop: Loop, take_log: bool) -> list[Any]:
    scaled = _logarithm if take_log else float
    one_hot = [float(loop.annotation == annotation) for annotation in ANNOTATIONS]
    places = [loop.length, loop.nest_level, loop.topdown, loop.bottomup]
    return [
        ["_itervar_", loop.var],
        ["_attr_", *[scaled(value) for value in places], *one_hot],
        ["_arith_", *[scaled(value) for value in (loop.add, loop.mul, loop.div)]],
        *[[name, *[scaled(v) for v in _numbers_of(t)]] for name, t in sorted(loop.touches.items())],
    ]


def _numbers_of(touch: Touch) -> tuple[float, ...]:
    counts = (touch.count, touch.reuse, touch.thread_count, touch.thread_reuse)
    return (touch.stride, touch.mod, *counts)


def _logarithm(value: float) -> float:
    return float(np.copysign(np.log2(abs(value) + 1), value))


def flatten_itervar_feature(fea: Sequence[Any]) -> np.ndarray[Any, Any]:
    """The numbers of :func:`get_itervar_feature` as one vector.

    Parameters
    ----------
    fea : list
        The rows.
    """
    return np.array([value for row in fea for pair in row[1:] for value in pair[1:]])


def get_itervar_feature_flatten(
    sch: Any, args: Sequence[Any], take_log: bool = True
) -> np.ndarray[Any, Any]:
    """The itervar features of a schedule as one vector.

    Parameters
    ----------
    sch, args, take_log :
        As of :func:`get_itervar_feature`.
    """
    return flatten_itervar_feature(get_itervar_feature(sch, args, take_log))


def get_flatten_name(fea: Sequence[Any]) -> list[str]:
    """A name for each number of :func:`flatten_itervar_feature`.

    Parameters
    ----------
    fea : list
        The rows.
    """
    of_pair = {"_attr_": ATTRIBUTES, "_arith_": ARITHMETIC}
    names = [
        f"{row[0][1]}.{pair[0]}.{of_pair.get(pair[0], TOUCHES)[place]}"
        for row in fea
        for pair in row[1:]
        for place in range(len(pair) - 1)
    ]
    return [f"f{number}.{name}" for number, name in enumerate(names)]


def get_buffer_curve_sample_flatten(
    sch: Any, args: Sequence[Any], sample_n: int = 30
) -> np.ndarray[Any, Any]:
    """The curve features of a schedule: for each buffer of the innermost loop samples of four curves.

    The reuse over the elements touched inside a loop, the elements over the reuse, the iterations
    outside over the elements, and the elements over the iterations outside; all as logarithms.

    Parameters
    ----------
    sch, args :
        As of :func:`ana_lower`.
    sample_n : int
        How many samples there are of each curve, two numbers each: the value, and how far the place
        is from the point that has it.
    """
    loops = loops_of(ana_lower(sch, args))
    samples: list[float] = []
    for name in _innermost_accesses(loops):
        around = [loop for loop in loops if name in loop.touches]
        count = _logarithms([loop.touches[name].count for loop in around])
        reuse = _logarithms([loop.touches[name].reuse for loop in around])
        outside = _logarithms([loop.topdown for loop in around])
        for x, y in ((count, reuse), (reuse, count), (count, outside), (outside, count)):
            samples += _samples_of(x, y, sample_n)
    return np.array(samples, dtype="float64")


def _innermost_accesses(loops: Sequence[Loop]) -> list[str]:
    """The last access of each buffer in the deepest loops; a copy in a scope is its buffer."""
    deepest = max([loop.nest_level for loop in loops], default=0)
    last: dict[str, str] = {}
    for loop in loops:
        if loop.nest_level == deepest:
            for name in loop.touches:
                buffer = name.rpartition("_")[0].partition(".")[0]
                last[buffer] = name
    return [last[buffer] for buffer in sorted(last)]


def _logarithms(values: Sequence[int]) -> list[float]:
    return [0.0, *sorted([math.log2(value) for value in values if value > 0])]


def _samples_of(x: Sequence[float], y: Sequence[float], sample_n: int) -> list[float]:
    """At 0, 1, 2, ... the value of the last point before, and the distance from it."""
    samples = []
    for at in range(sample_n):
        point = bisect_right(x, at + 1e-6) - 1
        samples += [y[point], at - x[point]]
    return samples
