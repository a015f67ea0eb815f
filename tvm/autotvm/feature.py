"""Numbers that describe a schedule, from which cost models learn.

*Itervar* features are a row for each loop: its length and place, its arithmetic, and the elements it
touches in each buffer. *Curve* features sample, for each buffer, how reuse grows with the elements
touched; they have the same length for schedules of any number of loops.
"""

from __future__ import annotations

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
        return lower_schedule(sch, args, "main", binds).body


def get_itervar_feature(sch: Any, args: Sequence[Any], take_log: bool = False) -> list[Any]:
    """A row for each loop: ``[["_itervar_", var], ["_attr_", ...], ["_arith_", ...], [buffer, ...]]``.

    Parameters
    ----------
    sch : te.Schedule
        The schedule.
    args : list of te.Tensor
        The arguments.
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
    sch : te.Schedule
        The schedule.
    args : list of te.Tensor
        The arguments.
    take_log : bool
        Whether numbers are replaced by their logarithms.
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
    """The curve features of a schedule: for each buffer samples at powers of two.

    Three curves: the reuse over the elements touched inside a loop, the elements over the iterations
    outside, and the elements over the iterations inside.

    Parameters
    ----------
    sch : te.Schedule
        The schedule.
    args : list of te.Tensor
        The arguments.
    sample_n : int
        How many samples there are of each curve.
    """
    points: dict[str, list[tuple[float, float, float, float]]] = {}
    for loop in loops_of(ana_lower(sch, args)):
        for name, touch in loop.touches.items():
            point = (touch.count, touch.reuse, loop.topdown, loop.bottomup)
            points.setdefault(name, []).append(point)
    curves = []
    for name in sorted(points):
        count, reuse, outside, inside = np.array(points[name], dtype="float64").T
        for x, y in ((count, reuse), (outside, count), (inside, count)):
            curves.append(_samples_of(x, y, sample_n))
    return np.concatenate(curves) if curves else np.zeros(0)


def _samples_of(x: Any, y: Any, sample_n: int) -> np.ndarray[Any, Any]:
    """The logarithm of the largest y with x up to 1, 2, 4, ..."""
    bounds = 2.0 ** np.arange(sample_n)
    reached = np.where(x[None, :] <= bounds[:, None], y[None, :], 0.0)
    samples: np.ndarray[Any, Any] = np.log2(reached.max(axis=1) + 1)
    return samples
