"""Small programs that read at computed positions, and compute in several types.

args = INDEXING["upsample"](rng, sizes)     # inputs, then outputs
"""

from __future__ import annotations

import random
from collections.abc import Callable

from tvm import te, tir

from .random_sizes import Sizes


def upsample(rng: random.Random, sizes: Sizes) -> list[te.Tensor]:
    """Each element is repeated, then neighbours are averaged again."""
    n, m, by = sizes.dim(1, 4), sizes.dim(1, 3), sizes.number(1, 3)
    a = te.placeholder((n, m), name="A")
    up = te.compute((n * by, m * by), lambda i, j: a[i // by, j // by] * 2.0, name="up")
    ry, rx = te.reduce_axis((0, by), name="ry"), te.reduce_axis((0, by), name="rx")
    down = te.compute(
        (n, m), lambda i, j: te.sum(up[i * by + ry, j * by + rx], axis=[ry, rx]), name="down"
    )
    if rng.random() < 0.5:
        return [a, down]
    return [a, te.compute((n, m), lambda i, j: down[i, j] - a[i, j], name="out")]


def gather(rng: random.Random, sizes: Sizes) -> list[te.Tensor]:
    """Rows chosen by a table."""
    n, m, count = sizes.number(1, 5), sizes.dim(1, 4), sizes.dim(1, 5)
    a = te.placeholder((n, m), name="A")
    table = te.placeholder((count,), dtype="int32", name="table")
    twice = te.compute((n, m), lambda i, j: a[i, j] * 2.0, name="twice")
    row = te.compute((count,), lambda i: te.indexmod(table[i], n), name="row")
    picked = te.compute((count, m), lambda i, j: twice[row[i], j] + 1.0, name="picked")
    return [a, table, te.compute((count, m), lambda i, j: picked[i, m - 1 - j], name="out")]


def joined(rng: random.Random, sizes: Sizes) -> list[te.Tensor]:
    """Two arrays, one behind the other."""
    n, m, width = sizes.dim(1, 4), sizes.dim(1, 4), sizes.dim(1, 4)
    a, b = te.placeholder((n, width), name="A"), te.placeholder((m, width), name="B")
    first = te.compute(a.shape, lambda i, j: a[i, j] * 2.0, name="first")
    second = te.compute(b.shape, lambda i, j: b[i, j] + 1.0, name="second")
    whole = te.compute(
        (n + m, width),
        lambda i, j: te.if_then_else(i < n, first[i, j], second[i - n, j]),
        name="whole",
    )
    return [a, b, te.compute(whole.shape, lambda i, j: whole[n + m - 1 - i, j], name="out")]


def edges(rng: random.Random, sizes: Sizes) -> list[te.Tensor]:
    """Neighbours of which those outside are the last ones inside."""
    n, m, reach = sizes.dim(1, 6, empty=1), sizes.dim(1, 4), sizes.number(1, 3)
    a = te.placeholder((n, m), name="A")
    scaled = te.compute((n, m), lambda i, j: a[i, j] * 0.5, name="scaled")
    k = te.reduce_axis((-reach, 2 * reach + 1), name="k")
    choose = rng.choice([te.sum, te.max, te.min])
    near = lambda i: te.max(te.min(i, n - 1), 0)  # noqa: E731
    out = te.compute((n, m), lambda i, j: choose(scaled[near(i + k), j], axis=k), name="near")
    return [a, te.compute((n, m), lambda i, j: out[i, j] + scaled[i, j], name="out")]


def narrow_types(rng: random.Random, sizes: Sizes) -> list[te.Tensor]:
    """Products of small integers in a wide sum, and back."""
    n, m, depth = [sizes.dim(1, 5) for _ in range(3)]
    kind, other = rng.choice([("int8", "int8"), ("uint8", "int8"), ("int16", "int16")])
    a, b = te.placeholder((n, depth), kind, "A"), te.placeholder((m, depth), other, "B")
    k = te.reduce_axis((0, depth), name="k")
    wide = te.compute(
        (n, m),
        lambda i, j: te.sum(a[i, k].astype("int32") * b[j, k].astype("int32"), axis=k),
        name="wide",
    )
    low, high = tir.const(-100, "int32"), tir.const(100, "int32")
    back = te.compute(
        (n, m), lambda i, j: te.max(te.min(wide[i, j] >> 4, high), low).astype("int8"), name="back"
    )
    if rng.random() < 0.5:
        return [a, b, back]
    is_odd = lambda i, j: (back[i, j] & tir.const(1, "int8")).equal(tir.const(1, "int8"))  # noqa: E731
    odd = te.compute((n, m), is_odd, name="odd")
    return [a, b, te.compute((n, m), lambda i, j: tir.Select(odd[i, j], 3.0, wide[i, j] * 0.5))]


def running_start(rng: random.Random, sizes: Sizes) -> list[te.Tensor]:
    """A reduction that goes on from a value, of a triangle."""
    n, m = sizes.dim(1, 5), sizes.dim(1, 5)
    a, bias = te.placeholder((n, m), name="A"), te.placeholder((n,), name="bias")
    k = te.reduce_axis((0, m), name="k")
    where = {"where": k <= 2} if rng.random() < 0.5 else {}
    total = te.compute(
        (n,), lambda i: te.sum(a[i, k] * 0.5, axis=k, init=bias[i], **where), name="total"
    )
    return [a, bias, te.compute((n, m), lambda i, j: total[i] * a[i, j], name="out")]


INDEXING: dict[str, Callable[[random.Random, Sizes], list[te.Tensor]]] = {
    "upsample": upsample,
    "gather": gather,
    "joined": joined,
    "edges": edges,
    "narrow_types": narrow_types,
    "running_start": running_start,
}
