"""Small programs with stages that are no plain computes: statements, scripts, intrinsics, two states.

args = OPAQUE["between_statements"](rng, sizes)     # inputs, then outputs
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from tvm import te, tir

from .random_sizes import Sizes


def between_statements(rng: random.Random, sizes: Sizes) -> list[te.Tensor]:
    """Computes around a stage that is written as statements."""
    n, m = sizes.dim(1, 5), sizes.dim(1, 5)
    a = te.placeholder((n, m), name="A")
    before = te.compute((n, m), lambda i, j: a[i, j] * 2.0, name="before")

    def reverse_rows(ins: list[Any], outs: list[Any]) -> tir.Stmt:
        ib = tir.ir_builder.create()
        source, target = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
        with ib.for_range(0, n, name="y") as y, ib.for_range(0, m, name="x") as x:
            target[y, x] = source[n - 1 - y, x]
        return ib.get()

    turned = te.extern((n, m), [before], reverse_rows, name="turned", dtype="float32")
    return [a, te.compute((n, m), lambda i, j: turned[i, j] + before[i, j], name="out")]


@te.hybrid.script
def _increased(a, n, m):
    out = output_tensor((n, m), "float32")
    for i in range(n):
        for j in range(m):
            out[i, j] = a[i, j] + 1.0
    return out


def between_scripts(rng: random.Random, sizes: Sizes) -> list[te.Tensor]:
    """Computes around a stage that is a script, whose loops can be scheduled too."""
    n, m = sizes.number(1, 5), sizes.number(1, 5)
    a = te.placeholder((n, m), name="A")
    before = te.compute((n, m), lambda i, j: a[i, j] * 2.0, name="before")
    more = _increased(before, tir.const(n, "int32"), tir.const(m, "int32"))
    return [a, te.compute((n, m), lambda i, j: more[n - 1 - i, j] * before[i, j], name="out")]


def between_intrinsics(rng: random.Random, sizes: Sizes) -> list[te.Tensor]:
    """Computes around a stage that calls an intrinsic for each row."""
    n, m = sizes.dim(1, 5), sizes.number(1, 5)
    a = te.placeholder((n, m), name="A")
    before = te.compute((n, m), lambda i, j: a[i, j] + 1.0, name="before")
    scale = _scale_intrin(m)
    rows = te.compute((n, m), lambda i: scale(before[n - 1 - i, 0:m]), name="rows")
    return [a, te.compute((n, m), lambda i, j: rows[i, m - 1 - j] - 1.0, name="out")]


def _scale_intrin(size: int) -> Any:
    x = te.placeholder((size,), name="x")
    z = te.compute((size,), lambda i: x[i] * 3.0, name="z")

    def work(ins: list[Any], outs: list[Any]) -> tir.Stmt:
        ib = tir.ir_builder.create()
        with ib.for_range(0, size, name="e") as e:
            ib.emit(outs[0].vstore([e], ins[0].vload([e]) * 3.0))
        return ib.get()

    return te.decl_tensor_intrin(
        z.op, work, name="scale", default_buffer_params={"offset_factor": 1}
    )


def two_states(rng: random.Random, sizes: Sizes) -> list[te.Tensor]:
    """A scan of two states that read each other, from two first steps."""
    steps, n = sizes.number(3, 6), sizes.dim(1, 4)
    x = te.placeholder((steps, n), name="X")
    a, b = te.placeholder((steps, n), name="a"), te.placeholder((steps, n), name="b")
    init_a = te.compute((2, n), lambda t, i: x[t, i], name="init_a")
    init_b = te.compute((2, n), lambda t, i: x[t, i] * 2.0, name="init_b")
    new_a = te.compute(
        (steps, n), lambda t, i: a[t - 1, i] + a[t - 2, i] + b[t - 1, i], name="new_a"
    )
    new_b = te.compute((steps, n), lambda t, i: x[t, i] - b[t - 2, i] * 0.5, name="new_b")
    first, second = te.scan([init_a, init_b], [new_a, new_b], [a, b], inputs=[x], name="S")
    if rng.random() < 0.5:
        return [x, first, second]
    last = steps - 1
    return [x, te.compute((n,), lambda i: first[last, i] + second[last, i], name="last")]


OPAQUE: dict[str, Callable[[random.Random, Sizes], list[te.Tensor]]] = {
    "between_statements": between_statements,
    "between_scripts": between_scripts,
    "between_intrinsics": between_intrinsics,
    "two_states": two_states,
}
