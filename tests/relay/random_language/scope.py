"""What random programs are drawn with: choices, the values in scope, tensors of wanted types."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

import tvm
from tvm import relay

Shape = tuple[int, ...]
FLOATS = ("float32", "float64", "float16")
NARROW = ("int8", "int16", "uint8")
INTEGERS = ("int32", "int64", *NARROW)
MAX_SIZE = 64  # of tensors that are made larger


def tensor_type(shape: Shape, dtype: str) -> relay.TensorType:
    return relay.TensorType(shape, dtype)


def concrete(ty: relay.Type) -> Shape:
    return tuple([int(d) for d in ty.shape])


class Scope:
    """The choices of one program; they depend on the seed alone.

    Floats stay between -8 and 8, integers too: no way of computing may overflow. Integers and
    booleans never depend on floats, for which ways differ in the last digits.
    """

    def __init__(self, seed: int, mod: tvm.IRModule, is_graph: bool) -> None:
        self.rng = random.Random(seed)
        self.mod = mod
        self.is_graph = is_graph
        self.known: list[list[relay.Expr]] = []  # typed values in scope, by block
        self.exact: list[relay.Var] = []  # float parameters: the same bits in all ways
        self.count = 0
        self.floats = ["float32"] * 6
        self.integers = ["int32"] * 4
        if self.chance(0.4):
            self.floats += self.rng.sample(["float64", "float64", "float16"], 2)
            self.integers += self.rng.sample(["int64", "int8", "int16", "uint8", "bool"], 3)

    # -- choices

    def pick(self, items: Sequence[Any]) -> Any:
        return items[self.rng.randrange(len(items))]

    def chance(self, share: float) -> bool:
        return self.rng.random() < share

    def shape(self, rank: int | None = None) -> Shape:
        rank = self.rng.choices([0, 1, 2, 3], [1, 2, 5, 2])[0] if rank is None else rank
        return tuple([self.rng.randint(1, 4) for _ in range(rank)])

    def dtype(self) -> str:
        return self.pick(self.floats if self.chance(0.7) else self.integers)

    def fresh(self, ty: relay.Type | None, name: str = "v") -> relay.Var:
        self.count += 1
        return relay.Var(f"{name}{self.count}", ty)

    def type_of(self, expr: relay.Expr) -> relay.Type:
        return relay.analysis.infer_type_of(expr, self.mod)

    def dtype_of(self, expr: relay.Expr) -> str:
        return str(self.type_of(expr).dtype)

    def shape_of(self, expr: relay.Expr) -> Shape:
        return concrete(self.type_of(expr))

    # -- tensors in scope

    def tensors(self, dtypes: Sequence[str] | None = None) -> list[relay.Expr]:
        """The tensors in scope of one of the dtypes."""
        found = []
        for block in self.known:
            for expr in block:
                ty = self.type_of(expr)
                if isinstance(ty, relay.TensorType) and (not dtypes or str(ty.dtype) in dtypes):
                    found.append(expr)
        return found

    def recent(self, items: Sequence[Any]) -> Any:
        """One of them, most often one of the last."""
        return self.pick(items[-6:] if self.chance(0.8) else items)

    def any_tensor(self) -> relay.Expr:
        return self.recent(self.tensors())

    def of_dtypes(self, dtypes: Sequence[str]) -> relay.Expr:
        found = self.tensors(dtypes)
        if found and self.chance(0.9):
            return self.recent(found)
        return self.constant(self.shape(), dtypes[0])

    def a_float(self) -> relay.Expr:
        return self.of_dtypes(FLOATS)

    def an_integer(self) -> relay.Expr:
        return self.of_dtypes(INTEGERS)

    def a_number(self) -> relay.Expr:
        return self.of_dtypes(self.rng.choices([FLOATS, INTEGERS], [3, 1])[0])

    def of_rank(self, dtypes: Sequence[str], low: int, high: int = 4) -> relay.Expr:
        """A small tensor of a rank in a range."""
        fitting = [
            e
            for e in self.tensors(dtypes)
            if low <= len(self.shape_of(e)) <= high and np.prod(self.shape_of(e)) <= MAX_SIZE
        ]
        if fitting:
            return self.recent(fitting)
        return self.of_type(tensor_type(self.shape(self.rng.randint(low, min(high, 3))), dtypes[0]))

    def of_type(self, ty: relay.Type) -> relay.Expr:
        """A value of a type, made of what there is."""
        if isinstance(ty, relay.TupleType):
            return relay.Tuple([self.of_type(field) for field in ty.fields])
        shape, dtype = concrete(ty), str(ty.dtype)
        source = self.of_dtypes([dtype])
        have = self.shape_of(source)
        if have == shape:
            return source
        if np.prod(have) == np.prod(shape):
            return relay.reshape(source, shape)
        if len(have) <= len(shape) and self.chance(0.7):
            whole = relay.all(source) if dtype == "bool" else relay.max(source)
            return relay.broadcast_to(whole, shape)
        return self.constant(shape, dtype)

    def constant(self, shape: Shape, dtype: str) -> relay.Expr:
        return relay.const(self.values(shape, dtype), dtype)

    def values(self, shape: Shape, dtype: str) -> np.ndarray:
        rng = np.random.default_rng(self.rng.randrange(2**31))
        return draw_values(rng, shape, dtype)

    def small(self, x: relay.Expr) -> relay.Expr:
        """Floats between -2 and 2, integers between -8 and 8."""
        dtype = self.dtype_of(x)
        if dtype == "bool":
            return x
        if dtype in FLOATS:
            return relay.tanh(x) if self.chance(0.5) else relay.clip(x, -2.0, 2.0)
        return relay.clip(x, 0 if dtype == "uint8" else -8, 8)

    # -- blocks

    @contextmanager
    def closed(self) -> Iterator[None]:
        """What is written inside uses nothing from outside."""
        outer = self.known, self.exact
        self.known, self.exact = [], []
        yield
        self.known, self.exact = outer

    def block(
        self, names: Sequence[relay.Expr], value: Callable[[], relay.Expr], steps: int
    ) -> relay.Expr:
        """Some values, bound by lets or used as they are, then the last one."""
        self.known.append([*names])
        bindings: list[tuple[relay.Var, relay.Expr]] = []
        for _ in range(steps):
            made = self.step(bindings)
            ty = self.type_of(made)
            if self.chance(0.4):
                variable = self.fresh(ty)
                bindings.append((variable, made))
                made = variable
            self.known[-1].append(made)
        body = value()
        self.known.pop()
        for variable, bound in reversed(bindings):
            body = relay.Let(variable, bound, body)
        return body

    def step(self, bindings: list[tuple[relay.Var, relay.Expr]]) -> relay.Expr:
        """One more value; what has effects goes to the bindings, for its order."""
        raise NotImplementedError


def draw_values(rng: np.random.Generator, shape: Shape, dtype: str) -> np.ndarray:
    """An array of small values."""
    if dtype == "bool":
        return np.asarray(rng.integers(0, 2, shape), "bool")
    if dtype in FLOATS:
        return np.asarray(rng.uniform(-1, 1, shape).round(3), dtype)
    return np.asarray(rng.integers(0 if dtype == "uint8" else -3, 4, shape), dtype)
