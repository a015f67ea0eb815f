"""Operators of random relax programs that pick and put elements by index."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tvm import relax
from tvm.relax import op

from .random_operands import Operand, has_axes, is_number


def _indices(g: Any, extent: int, *shape: int, lowest: int = 0) -> np.ndarray:
    count = math.prod(shape)
    drawn = [g.rng.randrange(lowest, extent) for _ in range(count)]
    return np.array(drawn, "int64").reshape(shape)


def gather_elements(g: Any) -> Operand | None:
    x = g.pick(lambda x: has_axes(x) and x.array.size)
    if x is None:
        return None
    axis = g.rng.randrange(x.array.ndim)
    shape = [g.rng.randint(1, extent) for extent in x.array.shape]
    where_ = _indices(g, x.array.shape[axis], *shape)
    part = x.array[tuple([slice(n) if i != axis else slice(None) for i, n in enumerate(shape)])]
    made = np.take_along_axis(part, where_, axis)
    return Operand(op.gather_elements(x.expr, relax.const(where_), axis), made, x.is_exact)


def index_tensor(g: Any) -> Operand | None:
    x = g.pick(lambda x: has_axes(x) and x.array.size)
    if x is None:
        return None
    shapes = [(3, 1), (2,), (1, 2), (3, 2)]
    given = [
        _indices(g, extent, *g.rng.choice(shapes), lowest=-extent)
        for extent in x.array.shape[: g.rng.randint(1, x.array.ndim)]
    ]
    constants = [relax.const(i) for i in given]
    return Operand(op.index_tensor(x.expr, constants), x.array[tuple(given)], x.is_exact)


def index_put(g: Any) -> Operand | None:
    x = g.pick(lambda x: has_axes(x) and is_number(x) and x.array.size)
    if x is None:
        return None
    extent, made = x.array.shape[0], x.array.copy()
    rows = np.array(g.rng.sample(range(extent), g.rng.randint(1, extent)), "int64")
    rows = rows - extent * (g.rng.random() < 0.5)
    values = np.asarray(g.rng.randint(-3, 3), x.array.dtype)
    is_sum = g.rng.random() < 0.5
    made[rows] = made[rows] + values if is_sum else values
    expr = op.index_put(x.expr, [relax.const(rows)], relax.const(values), is_sum)
    return Operand(expr, made, x.is_exact)


def take(g: Any) -> Operand | None:
    x = g.pick(lambda x: has_axes(x) and x.array.size)
    if x is None:
        return None
    axis = g.rng.randrange(x.array.ndim)
    indices = g.numbers.integers(0, x.array.shape[axis], g.rng.choice([(2,), (3,), (2, 2)])).astype(
        g.rng.choice(["int32", "int64"])
    )
    made = np.take(x.array, indices, axis)
    return (
        Operand(op.take(x.expr, relax.const(indices), axis), made, x.is_exact)
        if made.ndim < 6
        else None
    )
