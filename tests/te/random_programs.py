"""Small programs of random sizes, for random schedules: what is computed, not how.

sizes = Sizes(rng)
args = OPERATORS["matmul"](rng, sizes)     # inputs, then outputs
sizes.values                               # of the dimensions that are symbolic
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from tvm import te, tir

from .random_indexing import INDEXING
from .random_opaque import OPAQUE
from .random_sizes import Sizes

Body = Callable[..., Any]


def matmul(rng: random.Random, sizes: Sizes) -> list[te.Tensor]:
    n, m, depth = [sizes.dim(1, 6) for _ in range(3)]
    a, b = te.placeholder((n, depth), name="A"), te.placeholder((depth, m), name="B")
    k = te.reduce_axis((0, depth), name="k")
    c = te.compute((n, m), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    if rng.random() < 0.5:
        return [a, b, c]
    bias = te.placeholder((m,), name="bias")
    return [a, b, bias, te.compute((n, m), lambda i, j: c[i, j] + bias[j], name="D")]


def conv2d(rng: random.Random, sizes: Sizes) -> list[te.Tensor]:
    channels, filters = sizes.number(1, 2), sizes.dim(1, 3)
    height, width, stride, pad = sizes.number(2, 4), sizes.number(2, 4), sizes.number(1, 2), 1
    data = te.placeholder((channels, height, width), name="data")
    kernel = te.placeholder((filters, channels, 3, 3), name="kernel")
    inside = lambda y, x: te.all(y >= pad, y < height + pad, x >= pad, x < width + pad)  # noqa: E731
    padded = te.compute(
        (channels, height + 2 * pad, width + 2 * pad),
        lambda c, y, x: te.if_then_else(inside(y, x), data[c, y - pad, x - pad], 0.0),
        name="padded",
    )
    rc = te.reduce_axis((0, channels), name="rc")
    ry, rx = te.reduce_axis((0, 3), name="ry"), te.reduce_axis((0, 3), name="rx")
    out = te.compute(
        (filters, (height - 1) // stride + 1, (width - 1) // stride + 1),
        lambda f, y, x: te.sum(
            padded[rc, y * stride + ry, x * stride + rx] * kernel[f, rc, ry, rx],
            axis=[rc, ry, rx],
        ),
        name="conv",
    )
    zero = tir.const(0, "float32")
    relu = te.compute(out.shape, lambda *i: te.max(out(*i), zero), name="relu")
    return [data, kernel, relu]


def pooling(rng: random.Random, sizes: Sizes) -> list[te.Tensor]:
    channels, rows, columns = sizes.dim(1, 3), sizes.number(1, 4), sizes.dim(1, 4)
    window, stride = sizes.number(1, 3), sizes.number(1, 2)
    height = (rows - 1) * stride + window
    data = te.placeholder((channels, height, columns), name="data")
    scaled = te.compute(data.shape, lambda *i: data(*i) * 0.5, name="scaled")
    k = te.reduce_axis((0, window), name="k")
    choose = rng.choice([te.sum, te.max, te.min])
    pool = te.compute(
        (channels, rows, columns),
        lambda c, y, x: choose(scaled[c, y * stride + k, x], axis=k),
        name="pool",
    )
    if rng.random() < 0.5:
        return [data, pool]
    return [data, te.compute(pool.shape, lambda *i: pool(*i) + 1.0, name="out")]


def stencil_chain(rng: random.Random, sizes: Sizes) -> list[te.Tensor]:
    count = sizes.number(1, 4)
    n, m = sizes.dim(2 * count + 1, 2 * count + 5, empty=2 * count), sizes.dim(1, 6)
    index = "int32" if sizes.values else rng.choice(["int32", "int64"])
    size = tir.const(n, index) if isinstance(n, int) else n
    width = tir.const(m, index) if isinstance(m, int) else m
    a = te.placeholder((size, width), name="A")
    value = a
    for number in range(count):
        size = size - 2
        body = _shifted_sum(value) if rng.random() < 0.5 else _mirrored(value, width)
        value = te.compute((size, width), body, name=f"S{number}")
    return [a, value]


def _shifted_sum(tensor: te.Tensor) -> Body:
    return lambda i, j: tensor[i, j] + tensor[i + 2, j] * 2.0


def _mirrored(tensor: te.Tensor, width: Any) -> Body:
    return lambda i, j: tensor[i + 1, width - 1 - j] - 1.0


def shared_producers(rng: random.Random, sizes: Sizes) -> list[te.Tensor]:
    """A graph of stages of which several read the same ones; one or two outputs."""
    n, m = sizes.dim(1, 6), sizes.dim(1, 6)
    inputs = [te.placeholder((n, m), name=name) for name in "AB"[: sizes.number(1, 2)]]
    tensors = list(inputs)
    for number in range(sizes.number(2, 5)):
        a, b = rng.choice(tensors), rng.choice(tensors[-2:])
        tensors.append(te.compute((n, m), _joined(rng, a, b, n, m), name=f"T{number}"))
    ends = [tensors[-1]]
    if rng.random() < 0.3:
        ends.append(rng.choice(tensors[len(inputs) :]))
    return [*_read_by(ends), *dict.fromkeys(ends)]


def _joined(rng: random.Random, a: te.Tensor, b: te.Tensor, n: Any, m: Any) -> Body:
    kind = rng.randrange(5)
    if kind == 0:
        return lambda i, j: a[i, j] + b[i, m - 1 - j]
    if kind == 1:
        return lambda i, j: te.if_then_else(i > 0, a[i - 1, j], b[i, j])
    if kind == 2:
        k = te.reduce_axis((0, m), name="k")
        return lambda i, j: te.sum(a[i, k] * b[i, j], axis=k)
    if kind == 3:
        k = te.reduce_axis((0, n), name="k")
        return lambda i, j: te.max(a[k, j] - b[i, j], axis=k, where=k <= i)
    return lambda i, j: te.max(a[i, j], b[i, j]) * 0.5


def _read_by(ends: list[te.Tensor]) -> list[te.Tensor]:
    ops = [tensor.op for tensor in ends]
    order = te.schedule.PostDFSOrder(ops, te.schedule.CreateReadGraph(ops))
    return [op.output(0) for op in order if isinstance(op, te.tensor.PlaceholderOp)]


def normalize_rows(rng: random.Random, sizes: Sizes) -> list[te.Tensor]:
    n, m = sizes.dim(1, 6), sizes.dim(1, 6)
    a = te.placeholder((n, m), name="A")
    k, r = te.reduce_axis((0, m), name="k"), te.reduce_axis((0, m), name="r")
    top = te.compute((n,), lambda i: te.max(a[i, k], axis=k), name="top")
    shifted = te.compute((n, m), lambda i, j: a[i, j] - top[i], name="shifted")
    total = te.compute((n,), lambda i: te.sum(shifted[i, r], axis=r), name="total")
    out = te.compute((n, m), lambda i, j: shifted[i, j] * total[i], name="out")
    return [a, out]


def reduce_all(rng: random.Random, sizes: Sizes) -> list[te.Tensor]:
    n, m = sizes.dim(0, 6), sizes.dim(1, 6)
    a = te.placeholder((n, m), name="A")
    k, r = te.reduce_axis((0, n), name="k"), te.reduce_axis((0, m), name="r")
    total = te.compute((), lambda: te.sum(a[k, r], axis=[k, r]), name="total")
    return [a, te.compute((3,), lambda i: total() + i, name="out")]


def argmax(rng: random.Random, sizes: Sizes) -> list[te.Tensor]:
    n, m = sizes.dim(1, 6), sizes.dim(1, 6)
    a = te.placeholder((n, m), name="A")

    def pick(x: Any, y: Any) -> Any:
        first = tir.any(x[1] > y[1], tir.all(x[1].equal(y[1]), x[0] < y[0]))
        return tir.Select(first, x[0], y[0]), tir.Select(first, x[1], y[1])

    reducer = te.comm_reducer(
        pick, lambda t0, t1: (tir.const(2**20, t0), te.min_value(t1)), name="argmax"
    )
    k = te.reduce_axis((0, m), name="k")
    where, value = te.compute((n,), lambda i: reducer((k.var, a[i, k]), axis=k), name="best")
    return [a, te.compute((n,), lambda i: value[i] + where[i].astype("float32"), name="out")]


def transpose_reshape(rng: random.Random, sizes: Sizes) -> list[te.Tensor]:
    n, m = sizes.dim(1, 5, empty=1), sizes.dim(1, 5)
    a = te.placeholder((n, m), dtype="int32", name="A")
    t = te.compute((m, n), lambda i, j: a[j, i] + i, name="T")
    flat = te.compute((n * m,), lambda i: t[i // n, i % n] * 3, name="F")
    return [a, te.compute((n * m,), lambda i: flat[n * m - 1 - i] + 1, name="R")]


def cumulative(rng: random.Random, sizes: Sizes) -> list[te.Tensor]:
    """A scan whose step has stages of its own, with something before or behind."""
    steps, n = sizes.number(2, 5), sizes.dim(1, 5)
    a = te.placeholder((steps, n), name="A")
    x = te.compute(a.shape, lambda t, i: a[t, i] * 0.5, name="X") if rng.random() < 0.5 else a
    state = te.placeholder((steps, n), name="state")
    init = te.compute((1, n), lambda _, i: x[0, i], name="init")
    doubled = te.compute((steps, n), lambda t, i: state[t - 1, i] * 0.5, name="doubled")
    is_straight = rng.random() < 0.5
    other = (lambda i: i) if is_straight else (lambda i: n - 1 - i)
    update = te.compute(
        (steps, n), lambda t, i: doubled[t, other(i)] + x[t, i],
        name="update", tag="by column" if is_straight else "",
    )  # fmt: skip
    total = te.scan(init, update, state, inputs=[x], name="S")
    if rng.random() < 0.5:
        return [a, total]
    return [a, te.compute((n,), lambda i: total[steps - 1, i] + 1.0, name="last")]


def two_outputs(rng: random.Random, sizes: Sizes) -> list[te.Tensor]:
    n, m = sizes.dim(1, 6), sizes.dim(1, 6)
    a = te.placeholder((n, m), name="A")
    first, second = te.compute(
        (n, m), lambda i, j: (a[i, j] + 1.0, a[i, m - 1 - j] * 2.0), name="pair"
    )
    if rng.random() < 0.4:
        return [a, first, second]
    return [a, te.compute((n, m), lambda i, j: first[i, j] - second[i, j], name="out")]


OPERATORS: dict[str, Callable[[random.Random, Sizes], list[te.Tensor]]] = {
    "matmul": matmul,
    "conv2d": conv2d,
    "pooling": pooling,
    "stencil_chain": stencil_chain,
    "shared_producers": shared_producers,
    "normalize_rows": normalize_rows,
    "reduce_all": reduce_all,
    "argmax": argmax,
    "transpose_reshape": transpose_reshape,
    "cumulative": cumulative,
    "two_outputs": two_outputs,
    **INDEXING,
    **OPAQUE,
}

# those that blocks can express: scans and scripts have no such form
IN_BLOCKS = tuple(name for name in OPERATORS if name not in ("cumulative", *OPAQUE))
