"""The classic steps of optimising a matrix multiplication on a CPU, in plain te.

usage: python -m benchmarks.matmul_steps

Each step is the one before with one more idea; the last column is how much faster than the first it is.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from rich.console import Console
from rich.table import Table

import tvm
from tvm import te

SIZE = 1024
BLOCK = 32
STEPS_OF_K = 4
TARGET = "llvm"

Program = tuple[te.Schedule, te.Tensor]


def main() -> None:
    steps_table(Console())


def steps_table(console: Console) -> None:
    """Time every step and check its numbers."""
    rng = np.random.default_rng(0)
    x, y = [rng.random((SIZE, SIZE), dtype="float32") for _ in range(2)]
    expected = x @ y
    table = Table("step", "ms", "times the first", title=f"{SIZE} x {SIZE} x {SIZE}, float32")
    first = None
    for name, make in STEPS.items():
        seconds = measure(make, x, y, expected)
        first = first or seconds
        table.add_row(name, f"{1e3 * seconds:.2f}", f"{first / seconds:.1f}")
    console.print(table)


def measure(
    make: Callable[[te.Tensor, te.Tensor], Program],
    x: np.ndarray,
    y: np.ndarray,
    expected: np.ndarray,
) -> float:
    """The shortest of up to ten runs, of one second together."""
    a, b = te.placeholder(x.shape, name="A"), te.placeholder(y.shape, name="B")
    s, c = make(a, b)
    func = tvm.build(s, [a, b, c], TARGET)
    given = [tvm.nd.array(v) for v in (x, y, np.zeros_like(x))]
    times: list[float] = []
    while not times or (len(times) < 10 and sum(times) < 1):
        start = time.perf_counter()
        func(*given)
        times.append(time.perf_counter() - start)
    np.testing.assert_allclose(given[2].numpy(), expected, rtol=1e-5)
    return min(times)


def product(a: te.Tensor, b: te.Tensor) -> te.Tensor:
    k = te.reduce_axis((0, SIZE), "k")
    return te.compute((SIZE, SIZE), lambda m, n: te.sum(a[m, k] * b[k, n], axis=k), name="C")


def baseline(a: te.Tensor, b: te.Tensor) -> Program:
    c = product(a, b)
    return te.create_schedule(c.op), c


def blocking(a: te.Tensor, b: te.Tensor) -> Program:
    c = product(a, b)
    s = te.create_schedule(c.op)
    mo, no, mi, ni = s[c].tile(*c.op.axis, BLOCK, BLOCK)
    ko, ki = s[c].split(c.op.reduce_axis[0], factor=STEPS_OF_K)
    s[c].reorder(mo, no, ko, ki, mi, ni)
    return s, c


def vectorization(a: te.Tensor, b: te.Tensor) -> Program:
    s, c = blocking(a, b)
    s[c].vectorize(s[c].leaf_iter_vars[-1])
    return s, c


def loop_permutation(a: te.Tensor, b: te.Tensor) -> Program:
    """The rows of a block outside the steps of k: A is read along its rows."""
    c = product(a, b)
    return permuted(c), c


def permuted(c: te.Tensor) -> te.Schedule:
    s = te.create_schedule(c.op)
    mo, no, mi, ni = s[c].tile(*c.op.axis, BLOCK, BLOCK)
    ko, ki = s[c].split(c.op.reduce_axis[0], factor=STEPS_OF_K)
    s[c].reorder(mo, no, ko, mi, ki, ni)
    s[c].vectorize(ni)
    return s


def packed_product(a: te.Tensor, b: te.Tensor) -> tuple[te.Tensor, te.Tensor]:
    """B in panels of a block's columns, and the product that reads it there."""
    packed = te.compute(
        (SIZE // BLOCK, SIZE, BLOCK), lambda big, k, small: b[k, big * BLOCK + small], name="packed"
    )
    k = te.reduce_axis((0, SIZE), "k")
    c = te.compute(
        (SIZE, SIZE),
        lambda m, n: te.sum(a[m, k] * packed[n // BLOCK, k, tvm.tir.indexmod(n, BLOCK)], axis=k),
        name="C",
    )
    return packed, c


def pack(s: te.Schedule, packed: te.Tensor) -> None:
    big, _, small = packed.op.axis
    s[packed].vectorize(small)
    s[packed].parallel(big)


def array_packing(a: te.Tensor, b: te.Tensor) -> Program:
    packed, c = packed_product(a, b)
    s = permuted(c)
    pack(s, packed)
    return s, c


def write_cache(a: te.Tensor, b: te.Tensor) -> Program:
    """A block is summed up in memory of its own, and written once."""
    packed, c = packed_product(a, b)
    s = te.create_schedule(c.op)
    cached = s.cache_write(c, "global")
    _, no, _, _ = s[c].tile(*c.op.axis, BLOCK, BLOCK)
    s[cached].compute_at(s[c], no)
    mc, nc = s[cached].op.axis
    ko, ki = s[cached].split(cached.op.reduce_axis[0], factor=STEPS_OF_K)
    s[cached].reorder(ko, mc, ki, nc)
    s[cached].vectorize(nc)
    s[cached].unroll(ki)
    pack(s, packed)
    return s, c


def parallel(a: te.Tensor, b: te.Tensor) -> Program:
    s, c = write_cache(a, b)
    s[c].parallel(s[c].leaf_iter_vars[0])
    return s, c


STEPS: dict[str, Callable[[te.Tensor, te.Tensor], Program]] = {
    "baseline": baseline,
    "blocking": blocking,
    "vectorization": vectorization,
    "loop permutation": loop_permutation,
    "array packing": array_packing,
    "write cache": write_cache,
    "parallel": parallel,
}  # fmt: skip


if __name__ == "__main__":
    main()
