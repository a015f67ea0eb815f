"""Random relay functions, well-typed by construction: operators over tensors of a few small shapes."""

from __future__ import annotations

import random
from collections.abc import Callable
from math import prod

import numpy as np

import tvm
from tvm import relay

Shape = tuple[int, ...]


class RandomGraph:
    """Grows a graph: every step applies one operator to tensors that are there already."""

    def __init__(self, seed: int, steps: int = 12) -> None:
        self.rng = random.Random(seed)
        self.values = np.random.default_rng(seed)
        self.params: list[relay.Var] = []
        self.tensors: list[tuple[relay.Expr, Shape]] = []
        for _ in range(self.rng.randint(1, 3)):
            self._add_input(self.rng.choice([(4, 6), (2, 3, 4), (1, 8), (5,), (2, 4, 6, 6)]))
        for _ in range(steps):
            self.rng.choice(_STEPS)(self)

    def function(self) -> relay.Function:
        """The function: one result, or several in a nested tuple, inputs and constants among them."""
        count = self.rng.randint(1, 3)
        results = [self.rng.choice(self.tensors)[0] for _ in range(count)] + [self.tensors[-1][0]]
        body = results[-1] if self.rng.random() < 0.3 else relay.Tuple(results)
        return relay.Function(self.params, body)

    def module(self) -> tvm.IRModule:
        return tvm.IRModule.from_expr(self.function())

    def inputs(self) -> dict[str, np.ndarray]:
        """A value for each input."""
        return {p.name_hint: self.array(p.type_annotation.concrete_shape) for p in self.params}

    def array(self, shape: Shape) -> np.ndarray:
        return self.values.uniform(-1, 1, shape).astype("float32")

    def pick(self, *ranks: int) -> tuple[relay.Expr, Shape]:
        """A tensor of one of these ranks; of any if there is none."""
        fitting = [t for t in self.tensors if not ranks or len(t[1]) in ranks]
        return self.rng.choice(fitting or self.tensors)

    def add(self, expr: relay.Expr, shape: Shape) -> None:
        self.tensors.append((expr, shape))

    def _add_input(self, shape: Shape) -> None:
        self.params.append(relay.var(f"x{len(self.params)}", shape=shape))
        self.add(self.params[-1], shape)


def _unary(graph: RandomGraph) -> None:
    x, shape = graph.pick()
    op = graph.rng.choice([relay.tanh, relay.sigmoid, relay.nn.relu, relay.abs, relay.negative])
    graph.add(op(x), shape)


def _binary(graph: RandomGraph) -> None:
    x, shape = graph.pick()
    same = [y for y, s in graph.tensors if s == shape]
    other = graph.rng.choice([*same, relay.const(graph.array(shape)), relay.const(0.5)])
    op = graph.rng.choice([relay.add, relay.subtract, relay.multiply, relay.maximum])
    graph.add(op(x, other), shape)


def _reshape(graph: RandomGraph) -> None:
    x, shape = graph.pick()
    new = graph.rng.choice([(prod(shape),), (1, *shape), (shape[0], prod(shape[1:]))])
    graph.add(relay.reshape(x, new), new)


def _transpose(graph: RandomGraph) -> None:
    x, shape = graph.pick(2, 3)
    axes = list(range(len(shape)))
    graph.rng.shuffle(axes)
    graph.add(relay.transpose(x, axes), tuple([shape[a] for a in axes]))


def _dense(graph: RandomGraph) -> None:
    x, shape = graph.pick(2)
    if len(shape) != 2:
        return
    units = graph.rng.choice([1, 3, 8])
    graph.add(relay.nn.dense(x, relay.const(graph.array((units, shape[1])))), (shape[0], units))


def _conv2d(graph: RandomGraph) -> None:
    x, shape = graph.pick(4)
    if len(shape) != 4 or min(shape[2:]) < 3:
        return
    weight = relay.const(graph.array((4, shape[1], 3, 3)))
    graph.add(
        relay.nn.conv2d(x, weight, channels=4, kernel_size=(3, 3), padding=(1, 1)),
        (shape[0], 4, *shape[2:]),
    )


def _reduce(graph: RandomGraph) -> None:
    x, shape = graph.pick()
    if not shape:
        return
    axis = graph.rng.randrange(len(shape))
    op = graph.rng.choice([relay.sum, relay.max, relay.mean])
    graph.add(op(x, axis=axis, keepdims=True), (*shape[:axis], 1, *shape[axis + 1 :]))


def _softmax(graph: RandomGraph) -> None:
    x, shape = graph.pick(2, 3)
    graph.add(relay.nn.softmax(x, axis=-1), shape)


def _split(graph: RandomGraph) -> None:
    x, shape = graph.pick()
    axes = [a for a, extent in enumerate(shape) if extent % 2 == 0]
    if not axes:
        return
    axis = graph.rng.choice(axes)
    halves = relay.split(x, 2, axis)
    half = (*shape[:axis], shape[axis] // 2, *shape[axis + 1 :])
    for number in range(graph.rng.randint(1, 2)):
        graph.add(halves[number], half)


def _concatenate(graph: RandomGraph) -> None:
    x, shape = graph.pick()
    if not shape or shape[0] > 16:
        return
    same = [y for y, s in graph.tensors if s == shape]
    other = graph.rng.choice([*same, relay.const(graph.array(shape))])
    graph.add(relay.concatenate([x, other], axis=0), (2 * shape[0], *shape[1:]))


def _constant(graph: RandomGraph) -> None:
    _, shape = graph.pick()
    graph.add(relay.const(graph.array(shape)), shape)


_STEPS: list[Callable[[RandomGraph], None]] = [
    _unary, _unary, _binary, _binary, _binary, _reshape, _transpose, _dense, _conv2d, _reduce,
    _softmax, _split, _concatenate, _constant,
]  # fmt: skip
