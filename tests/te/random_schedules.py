"""Random legal schedules of small operators, for comparing what they compute with the unscheduled.

    program = random_program(seed)
    program.schedule      # split, fused, reordered, attached, cached, annotated at random
    program.plain         # the same operations, every stage at the root
    program.args          # inputs, then outputs
    program.steps         # what was done, as text

The same seed gives the same program. Interpreter and code generators share it.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tvm import te, tir


@dataclass
class Program:
    """A schedule, and what it has to agree with."""

    name: str
    args: list[te.Tensor]
    schedule: te.Schedule
    plain: te.Schedule
    steps: list[str] = field(default_factory=list)

    def arrays(self, seed: int = 0) -> list[np.ndarray]:
        """Random inputs and zeroed outputs."""
        source = np.random.default_rng(seed)
        result = []
        for tensor in self.args:
            shape = [int(dim) for dim in tensor.shape]
            if not isinstance(tensor.op, te.tensor.PlaceholderOp):
                result.append(np.zeros(shape, tensor.dtype))
            elif tensor.dtype.is_float:
                result.append(source.uniform(-1, 1, shape).astype(tensor.dtype))
            else:
                result.append(source.integers(0, 50, shape).astype(tensor.dtype))
        return result


def matmul(rng: random.Random) -> list[te.Tensor]:
    n, m, depth = [rng.randint(1, 9) for _ in range(3)]
    a, b = te.placeholder((n, depth), name="A"), te.placeholder((depth, m), name="B")
    k = te.reduce_axis((0, depth), name="k")
    c = te.compute((n, m), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    if rng.random() < 0.5:
        return [a, b, c]
    bias = te.placeholder((m,), name="bias")
    return [a, b, bias, te.compute((n, m), lambda i, j: c[i, j] + bias[j], name="D")]


def conv2d(rng: random.Random) -> list[te.Tensor]:
    channels, filters = rng.randint(1, 3), rng.randint(1, 3)
    height, width, stride, pad = rng.randint(3, 5), rng.randint(3, 5), rng.randint(1, 2), 1
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


def stencil_chain(rng: random.Random) -> list[te.Tensor]:
    n, m, count = rng.randint(1, 9), rng.randint(1, 9), rng.randint(1, 4)
    index = rng.choice(["int32", "int64"])
    a = te.placeholder((tir.const(n + 2 * count, index), tir.const(m, index)), name="A")
    value, size = a, n + 2 * count
    for number in range(count):
        size -= 2
        before, shape = value, (tir.const(size, index), tir.const(m, index))
        body = _shifted_sum(before) if rng.random() < 0.5 else _mirrored(before, m)
        value = te.compute(shape, body, name=f"S{number}")
    return [a, value]


def _shifted_sum(tensor: te.Tensor) -> Callable[..., Any]:
    return lambda i, j: tensor[i, j] + tensor[i + 2, j] * 2.0


def _mirrored(tensor: te.Tensor, width: int) -> Callable[..., Any]:
    return lambda i, j: tensor[i + 1, width - 1 - j] - 1.0


def normalize_rows(rng: random.Random) -> list[te.Tensor]:
    n, m = rng.randint(1, 8), rng.randint(1, 9)
    a = te.placeholder((n, m), name="A")
    k, r = te.reduce_axis((0, m), name="k"), te.reduce_axis((0, m), name="r")
    top = te.compute((n,), lambda i: te.max(a[i, k], axis=k), name="top")
    shifted = te.compute((n, m), lambda i, j: a[i, j] - top[i], name="shifted")
    total = te.compute((n,), lambda i: te.sum(shifted[i, r], axis=r), name="total")
    out = te.compute((n, m), lambda i, j: shifted[i, j] * total[i], name="out")
    return [a, out]


def reduce_all(rng: random.Random) -> list[te.Tensor]:
    n, m = rng.randint(0, 7), rng.randint(1, 7)
    a = te.placeholder((n, m), name="A")
    k, r = te.reduce_axis((0, n), name="k"), te.reduce_axis((0, m), name="r")
    total = te.compute((), lambda: te.sum(a[k, r], axis=[k, r]), name="total")
    return [a, te.compute((3,), lambda i: total() + i, name="out")]


def argmax(rng: random.Random) -> list[te.Tensor]:
    n, m = rng.randint(1, 7), rng.randint(1, 9)
    a = te.placeholder((n, m), name="A")

    def pick(x: Any, y: Any) -> Any:
        first = tir.any(x[1] > y[1], tir.all(x[1].equal(y[1]), x[0] < y[0]))
        return tir.Select(first, x[0], y[0]), tir.Select(first, x[1], y[1])

    reducer = te.comm_reducer(
        pick, lambda t0, t1: (tir.const(2**30, t0), te.min_value(t1)), name="argmax"
    )
    k = te.reduce_axis((0, m), name="k")
    where, value = te.compute((n,), lambda i: reducer((k.var, a[i, k]), axis=k), name="best")
    return [a, te.compute((n,), lambda i: value[i] + where[i].astype("float32"), name="out")]


def transpose_reshape(rng: random.Random) -> list[te.Tensor]:
    n, m = rng.randint(1, 6), rng.randint(1, 6)
    a = te.placeholder((n, m), dtype="int32", name="A")
    t = te.compute((m, n), lambda i, j: a[j, i] + i, name="T")
    flat = te.compute((n * m,), lambda i: t[i // n, i % n] * 3, name="F")
    return [a, te.compute((n * m,), lambda i: flat[n * m - 1 - i] + 1, name="R")]


OPERATORS: dict[str, Callable[[random.Random], list[te.Tensor]]] = {
    "matmul": matmul,
    "conv2d": conv2d,
    "stencil_chain": stencil_chain,
    "normalize_rows": normalize_rows,
    "reduce_all": reduce_all,
    "argmax": argmax,
    "transpose_reshape": transpose_reshape,
}


def random_program(seed: int, operator: str | None = None) -> Program:
    """The program of a seed; of a random operator unless one is named."""
    rng = random.Random(seed)
    name = operator or rng.choice(list(OPERATORS))
    args = OPERATORS[name](rng)
    outputs = [t for t in args if not isinstance(t.op, te.tensor.PlaceholderOp)]
    ops = [t.op for t in outputs]
    program = Program(name, args, te.create_schedule(ops), te.create_schedule(ops))
    _Scheduler(rng, program).run()
    return program


class _Scheduler:
    """Applies random primitives; consumers before producers, so that attach points stay."""

    def __init__(self, rng: random.Random, program: Program) -> None:
        self.rng = rng
        self.program = program
        self.schedule = program.schedule

    def note(self, text: str) -> None:
        self.program.steps.append(text)

    def run(self) -> None:
        self.add_caches()
        for stage in reversed(list(self.schedule.stages)):
            if isinstance(stage.op, te.tensor.PlaceholderOp):
                continue
            self.place(stage)
            if not stage.is_inlined:
                self.transform(stage)
        self.bounds = te.schedule.InferBound(self.schedule.normalize())
        for stage in self.schedule.stages:
            if not stage.is_inlined and not isinstance(stage.op, te.tensor.PlaceholderOp):
                self.annotate(stage)

    def add_caches(self) -> None:
        for stage in list(self.schedule.stages):
            op = stage.op
            if isinstance(op, te.tensor.PlaceholderOp):
                readers = [s.op for s in self.schedule.stages if op.output(0) in s.op.input_tensors]
                if readers and self.rng.random() < 0.3:
                    self.note(f"cache_read({op.name})")
                    self.schedule.cache_read(op.output(0), "global", readers)
            elif self.rng.random() < 0.3:
                if op.num_outputs == 1 and self.rng.random() < 0.3 and op.axis:
                    axis = self.rng.choice(op.axis)
                    factor = self.rng.randint(1, 5)
                    self.note(f"split({op.name}, {axis.var.name}, {factor}) before cache_write")
                    stage.split(axis, factor=factor)
                self.note(f"cache_write({op.name})")
                self.schedule.cache_write(list(op.outputs), "global")
            elif op.num_outputs == 1 and op.reduce_axis and self.rng.random() < 0.3:
                self.factor(stage)

    def factor(self, stage: te.Stage) -> None:
        axis = self.rng.choice(stage.op.reduce_axis)
        outer, inner = stage.split(axis, factor=self.rng.randint(1, 4))
        chosen = self.rng.choice([outer, inner])
        position = self.rng.randint(0, len(stage.op.axis))
        self.note(f"rfactor({stage.op.name}, {chosen.var.name}, {position})")
        self.schedule.rfactor(stage.op.output(0), chosen, position)

    def place(self, stage: te.Stage) -> None:
        if stage.is_output:
            return
        readers = [
            s for s in self.schedule.stages
            if any(t in s.op.input_tensors for t in stage.op.outputs)
        ]  # fmt: skip
        if not stage.op.reduce_axis and self.rng.random() < 0.25:
            self.note(f"compute_inline({stage.op.name})")
            stage.compute_inline()
        elif len(readers) == 1 and not readers[0].is_inlined and self.rng.random() < 0.7:
            loops = readers[0].leaf_iter_vars
            if loops:
                loop = self.rng.choice(loops)
                self.note(f"compute_at({stage.op.name}, {readers[0].op.name}, {loop.var.name})")
                stage.compute_at(readers[0], loop)

    def transform(self, stage: te.Stage) -> None:
        for _ in range(self.rng.randint(0, 4)):
            loops = list(stage.leaf_iter_vars)
            if not loops:
                return
            kind = self.rng.choice(["split", "split", "nparts", "fuse", "reorder"])
            loop = self.rng.choice(loops)
            if kind in ("split", "nparts"):
                amount = self.rng.randint(1, 5)
                stage.split(loop, **{"factor" if kind == "split" else "nparts": amount})
                self.note(f"{kind}({stage.op.name}, {loop.var.name}, {amount})")
            elif kind == "fuse" and len(loops) > 1:
                at = self.rng.randrange(len(loops) - 1)
                stage.fuse(loops[at], loops[at + 1])
                self.note(f"fuse({stage.op.name}, {loops[at].var.name}, {loops[at + 1].var.name})")
            elif kind == "reorder":
                order = self.rng.sample(loops, len(loops))
                stage.reorder(*order)
                self.note(f"reorder({stage.op.name}, {[iv.var.name for iv in order]})")

    def annotate(self, stage: te.Stage) -> None:
        loops = stage.leaf_iter_vars
        if not loops:
            return
        attached = [s.attach_ivar for s in self.schedule.stages if s.attach_stage is stage]
        spatial = [iv for iv in loops if iv.iter_type == tir.IterVar.DataPar]
        last, first = loops[-1], loops[0]
        is_constant = isinstance(self.bounds[last].extent, tir.IntImm)
        is_free = is_constant and not any(iv is last for iv in attached)
        if is_free and any(iv is last for iv in spatial) and self.rng.random() < 0.3:
            stage.vectorize(last)
            self.note(f"vectorize({stage.op.name}, {last.var.name})")
        elif is_constant and self.rng.random() < 0.3:
            stage.unroll(last)
            self.note(f"unroll({stage.op.name}, {last.var.name})")
        is_root = stage.attach_stage is None and first is not last
        if is_root and any(iv is first for iv in spatial) and self.rng.random() < 0.3:
            stage.parallel(first)
            self.note(f"parallel({stage.op.name}, {first.var.name})")
