"""Small programs that several tests schedule, and how to run them."""

from __future__ import annotations

from typing import Any

import numpy as np

from tvm import te
from tvm.tir.interp import interpret


def chain(size: Any = 10) -> tuple[te.Tensor, te.Tensor, te.Tensor]:
    """A -> B = A * 2 -> C = B + 1."""
    a = te.placeholder((size,), name="A")
    b = te.compute((size,), lambda i: a[i] * 2, name="B")
    return a, b, te.compute((size,), lambda i: b[i] + 1, name="C")


def matmul(n: Any = 8, m: Any = 6, depth: Any = 10) -> tuple[te.Tensor, te.Tensor, te.Tensor]:
    """C = A @ B."""
    a, b = te.placeholder((n, depth), name="A"), te.placeholder((depth, m), name="B")
    k = te.reduce_axis((0, depth), name="k")
    return a, b, te.compute((n, m), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")


def run(schedule: te.Schedule, args: list[Any], *inputs: Any) -> list[np.ndarray]:
    """The outputs of a schedule in the interpreter; the outputs come after the inputs in args."""
    func = te.schedule.lower_schedule(schedule, args)
    outputs = [
        np.full([int(dim) for dim in tensor.shape], 77, tensor.dtype)
        for tensor in args[len(inputs) :]
    ]
    interpret(func, *inputs, *outputs)
    return outputs


def check_chain(schedule: te.Schedule, a: te.Tensor, c: te.Tensor) -> None:
    """The schedule of a chain computes A * 2 + 1."""
    data = np.arange(int(a.shape[0]), dtype="float32")
    (result,) = run(schedule, [a, c], data)
    np.testing.assert_array_equal(result, data * 2 + 1)


def check_matmul(schedule: te.Schedule, a: te.Tensor, b: te.Tensor, c: te.Tensor) -> None:
    """The schedule of a matrix product computes it."""
    source = np.random.default_rng(0)
    x, y = [source.random([int(d) for d in t.shape], "float32") for t in (a, b)]
    (result,) = run(schedule, [a, b, c], x, y)
    np.testing.assert_allclose(result, x @ y, rtol=1e-5)
