"""Random operators whose shapes are computed: known to folding in graphs, to the machine elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tvm import relay

from .scope import FLOATS, INTEGERS, Scope, Shape, tensor_type

Made = tuple[relay.Expr, Shape]


def numbers(s: Scope, values: Sequence[int]) -> relay.Expr:
    """The numbers as a vector that is no constant."""
    nothing: relay.Expr = relay.const(0, "int32")
    if not s.is_graph and s.chance(0.5):
        nothing = relay.clip(relay.cast(relay.max(s.of_dtypes(INTEGERS)), "int32"), 0, 0)
    return relay.add(relay.const(np.array(values, "int32")), nothing)


def of_computed_shape(s: Scope) -> relay.Expr:
    """A call of a dynamic operator, and the known shape of its result."""
    x = s.of_rank([*FLOATS, *INTEGERS], 1, 3)
    made, shape = s.pick(WAYS)(s, x, s.shape_of(x))
    return relay.reshape(made, shape)


def reshaped(s: Scope, x: relay.Expr, shape: Shape) -> Made:
    size = int(np.prod(shape))
    new = s.pick([(size,), (1, size), (size, 1), shape[::-1]])
    if s.chance(0.3):
        like = relay.shape_of(s.constant(new, "float32"))
        return relay.reshape(x, like), new
    written = list(new)
    if s.chance(0.5):
        written[s.rng.randrange(len(new))] = -1
    return relay.reshape(x, numbers(s, written)), new


def spread(s: Scope, x: relay.Expr, shape: Shape) -> Made:
    wide = (s.rng.randint(1, 2), *shape)
    if s.chance(0.3):
        return relay.broadcast_to(x, relay.shape_of(s.constant(wide, "float32"))), wide
    return relay.broadcast_to(x, numbers(s, wide)), wide


def tiled(s: Scope, x: relay.Expr, shape: Shape) -> Made:
    counts = [s.rng.randint(1, 2) for _ in shape]
    return relay.tile(x, numbers(s, counts)), tuple(np.multiply(shape, counts).tolist())


def sliced(s: Scope, x: relay.Expr, shape: Shape) -> Made:
    begin = [s.rng.randrange(d) for d in shape]
    end = [s.rng.randint(b + 1, d) for b, d in zip(begin, shape, strict=True)]
    step = [s.rng.randint(1, 2) for _ in shape]
    written = [b - d if s.chance(0.3) else b for b, d in zip(begin, shape, strict=True)]
    out = relay.strided_slice(x, numbers(s, written), numbers(s, end), numbers(s, step))
    counts = [-(-(e - b) // t) for b, e, t in zip(begin, end, step, strict=True)]
    return out, tuple(counts)


def padded(s: Scope, x: relay.Expr, shape: Shape) -> Made:
    widths = [(s.rng.randrange(2), s.rng.randrange(2)) for _ in shape]
    flat = numbers(s, [n for pair in widths for n in pair])
    out = relay.nn.pad(x, relay.reshape(flat, (len(shape), 2)), relay.const(1, s.dtype_of(x)))
    return out, tuple([d + a + b for d, (a, b) in zip(shape, widths, strict=True)])


def largest(s: Scope, x: relay.Expr, shape: Shape) -> Made:
    axis = s.rng.randrange(len(shape))
    count = s.rng.randint(1, shape[axis])
    k = relay.reshape(numbers(s, [count]), ())
    return relay.topk(x, k, axis, "values"), (*shape[:axis], count, *shape[axis + 1 :])


def filled(s: Scope, x: relay.Expr, shape: Shape) -> Made:
    dims = numbers(s, shape)
    dtype = s.dtype_of(x)
    made = [
        lambda: relay.zeros(dims, dtype),
        lambda: relay.ones(dims, dtype),
        lambda: relay.full(relay.const(2, dtype), dims, dtype),
    ]
    return relay.maximum(s.pick(made)(), x), shape


def taken(s: Scope, x: relay.Expr, shape: Shape) -> Made:
    axis = s.rng.randrange(len(shape))
    count = relay.reshape(numbers(s, [shape[axis]]), ())
    places = relay.arange(relay.const(0, "int32"), count, relay.const(1, "int32"), "int32")
    return relay.take(x, places, axis=axis), shape


def squeezed(s: Scope, x: relay.Expr, shape: Shape) -> Made:
    out = relay.expand_dims(x, relay.reshape(numbers(s, [0]), ()))
    if s.chance(0.5):
        return out, (1, *shape)
    return relay.squeeze(out, numbers(s, [0])), shape


def coded(s: Scope, x: relay.Expr, shape: Shape) -> Made:
    places = relay.clip(s.constant(shape, "int32"), 0, 3)
    depth = relay.reshape(numbers(s, [4]), ())
    out = relay.one_hot(places, relay.const(1.0), relay.const(0.0), depth, -1, "float32")
    return out, (*shape, 4)


def multiplied(s: Scope, x: relay.Expr, shape: Shape) -> Made:
    """A product of matrices with a number of rows that is computed."""
    rows = s.of_type(tensor_type((2, 3), "float32"))
    some = relay.strided_slice(rows, numbers(s, [0, 0]), numbers(s, [2, 3]), numbers(s, [1, 1]))
    out = relay.nn.dense(some, s.constant((4, 3), "float32"))
    return s.small(relay.nn.relu(relay.reshape(out, (2, 4)))), (2, 4)


WAYS: tuple[Callable[[Scope, relay.Expr, Shape], Made], ...] = (
    reshaped, reshaped, spread, tiled, sliced, sliced, padded, largest, filled, taken, squeezed,
    coded, multiplied,
)  # fmt: skip
