"""Random relay programs, well-typed by construction.

    python -m tests.relay.random_programs --count 5000 --seed 0 --jobs 2

Each program is run by the interpreter, and compiled for the graph executor (if it is a graph) and
for the virtual machine at the levels 0 to 3; all must agree. Its text is read again and compared.

Conditions depend on integers alone, which all ways compute exactly; floats stay small.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

import tvm
from tvm import relay
from tvm.relay import adt

Shape = tuple[int, ...]
PRELUDE = """
type Choice[A] { One(A), Two(A, A), Neither, }
type Chain[A] { Link(A, Chain[A]), End, }
"""


def tensor_type(shape: Shape, dtype: str) -> relay.TensorType:
    return relay.TensorType(shape, dtype)


class Generator:
    """Writes one program; what it makes depends on the seed alone.

    With `is_graph` the program has no control flow, no data types and no references.
    """

    def __init__(self, seed: int, is_graph: bool) -> None:
        self.rng = random.Random(seed)
        self.is_graph = is_graph
        self.mod = relay.parse(PRELUDE) if not is_graph else tvm.IRModule()
        self.known: list[list[relay.Expr]] = []  # typed values in scope, by block
        self.count = 0

    # -- choices

    def pick(self, items: Sequence[Any]) -> Any:
        return items[self.rng.randrange(len(items))]

    def chance(self, share: float) -> bool:
        return self.rng.random() < share

    def shape(self, rank: int | None = None) -> Shape:
        rank = self.rng.choices([0, 1, 2, 3], [1, 2, 5, 2])[0] if rank is None else rank
        return tuple([self.rng.randint(1, 4) for _ in range(rank)])

    def dtype(self) -> str:
        return "float32" if self.chance(0.75) else "int32"

    def fresh(self, ty: relay.Type, name: str = "v") -> relay.Var:
        self.count += 1
        return relay.var(f"{name}{self.count}", ty)

    # -- programs

    def module(self) -> tvm.IRModule:
        params = [
            self.fresh(tensor_type(self.shape(), self.dtype()), "p")
            for _ in range(self.rng.randint(1, 4))
        ]
        if not self.is_graph:
            params.append(self.fresh(tensor_type((), "int32"), "p"))
        with_tuple = self.chance(0.3)
        body = self.block(params, partial(self.result, with_tuple), self.rng.randint(2, 9))
        self.mod["main"] = relay.Function(params, body)
        return relay.transform.InferType()(self.mod)

    def result(self, with_tuple: bool) -> relay.Expr:
        if with_tuple:
            return relay.Tuple([self.any_tensor() for _ in range(self.rng.randint(1, 3))])
        return self.any_tensor()

    def block(
        self, names: Sequence[relay.Expr], value: Callable[[], relay.Expr], steps: int
    ) -> relay.Expr:
        """Some values, bound by lets or used as they are, then the last one."""
        self.known.append([*names])
        bindings: list[tuple[relay.Var, relay.Expr]] = []
        for _ in range(steps):
            made = self.step(bindings)
            if made is None:
                continue
            ty = relay.transform.InferTypeLocal(made) if self.is_typed(made) else None
            if ty is not None and self.chance(0.4):
                variable = self.fresh(ty)
                bindings.append((variable, made))
                made = variable
            self.known[-1].append(made)
        body = value()
        self.known.pop()
        for variable, bound in reversed(bindings):
            body = relay.Let(variable, bound, body)
        return body

    def is_typed(self, expr: relay.Expr) -> bool:
        infer(expr, self.mod)
        return True

    def step(self, bindings: list[tuple[relay.Var, relay.Expr]]) -> relay.Expr | None:
        if self.is_graph or self.chance(0.6):
            return self.tensor()
        kind = self.pick(
            [
                self.conditional,
                self.matched,
                self.local_call,
                self.global_call,
                self.loop,
                self.chain,
            ]
        )
        if self.chance(0.2):
            return self.cell(bindings)
        return kind()

    # -- tensors

    def scope(self) -> list[relay.Expr]:
        return [e for block in self.known for e in block]

    def any_tensor(self) -> relay.Expr:
        found = [e for e in self.scope() if isinstance(type_of(e, self.mod), relay.TensorType)]
        return self.pick(found[-6:] if self.chance(0.8) else found)

    def of_dtype(self, dtype: str) -> relay.Expr:
        found = [
            e
            for e in self.scope()
            if isinstance(type_of(e, self.mod), relay.TensorType)
            and type_of(e, self.mod).dtype == dtype
        ]
        if found and self.chance(0.9):
            return self.pick(found[-6:])
        return self.constant(self.shape(), dtype)

    def of_type(self, ty: relay.TensorType) -> relay.Expr:
        """A tensor of a shape and dtype, made of what there is."""
        shape, dtype = tuple([int(d) for d in ty.shape]), str(ty.dtype)
        source = self.of_dtype(dtype)
        have = concrete(type_of(source, self.mod))
        if have == shape:
            return source
        if np.prod(have) == np.prod(shape):
            return relay.reshape(source, shape)
        if len(have) <= len(shape) and self.chance(0.7):
            whole = relay.sum(source)
            whole = relay.tanh(whole) if dtype == "float32" else whole
            return relay.broadcast_to(whole, shape)
        return self.constant(shape, dtype)

    def constant(self, shape: Shape, dtype: str) -> relay.Expr:
        rng = np.random.default_rng(self.rng.randrange(2**31))
        if dtype == "int32":
            return relay.const(rng.integers(-3, 4, shape), "int32")
        return relay.const(rng.uniform(-1, 1, shape).round(3), "float32")

    def tensor(self) -> relay.Expr:
        makers = [
            self.unary, self.unary, self.binary, self.binary, self.binary, self.reduced,
            self.moved, self.moved, self.joined, self.parted, self.product, self.normalised,
            self.converted, self.selected, self.applied, self.window,
        ]  # fmt: skip
        return self.pick(makers)()

    def unary(self) -> relay.Expr:
        x = self.any_tensor()
        if type_of(x, self.mod).dtype != "float32":
            return self.pick([relay.negative, relay.abs])(x)
        smooth = [
            relay.tanh,
            relay.sigmoid,
            relay.nn.relu,
            relay.negative,
            relay.abs,
            relay.erf,
            relay.cos,
        ]
        return self.pick(smooth)(x)

    def binary(self) -> relay.Expr:
        x = self.any_tensor()
        ty = type_of(x, self.mod)
        other = self.broadcastable(ty)
        op = self.pick([relay.add, relay.subtract, relay.multiply, relay.maximum, relay.minimum])
        return self.small(op(x, other) if self.chance(0.7) else op(other, x))

    def small(self, x: relay.Expr) -> relay.Expr:
        """Floats between -1 and 1, integers between -8 and 8."""
        if type_of(x, self.mod).dtype == "float32":
            return relay.tanh(x) if self.chance(0.5) else relay.clip(x, -2.0, 2.0)
        return relay.clip(x, -8, 8)

    def broadcastable(self, ty: relay.TensorType) -> relay.Expr:
        """A tensor that broadcasts to the shape."""
        shape = concrete(ty)
        kept = shape[self.rng.randint(0, len(shape)) :] if self.chance(0.4) else shape
        kept = tuple([d if self.chance(0.8) else 1 for d in kept])
        return self.of_type(tensor_type(kept, str(ty.dtype)))

    def reduced(self) -> relay.Expr:
        x = self.any_tensor()
        shape = concrete(type_of(x, self.mod))
        axes = [a for a in range(len(shape)) if self.chance(0.5)] or None
        op = self.pick([relay.sum, relay.max, relay.min])
        if type_of(x, self.mod).dtype == "float32" and self.chance(0.3):
            op = relay.mean
        return self.small(op(x, axis=axes, keepdims=self.chance(0.3)))

    def moved(self) -> relay.Expr:
        x = self.any_tensor()
        shape = concrete(type_of(x, self.mod))
        size = int(np.prod(shape))
        if not shape:
            return relay.expand_dims(x, axis=0)
        axis = self.rng.randrange(len(shape))
        begin = self.rng.randrange(shape[axis])
        ways: list[Callable[[], relay.Expr]] = [
            lambda: relay.transpose(x, self.rng.sample(range(len(shape)), len(shape))),
            lambda: relay.reshape(x, self.pick([(size,), (1, size), (size, 1), (-1,)])),
            lambda: relay.reverse(x, axis=axis),
            lambda: relay.strided_slice(x, [begin], [shape[axis]], axes=[axis]),
            lambda: relay.repeat(x, repeats=2, axis=axis),
            lambda: relay.nn.pad(x, [(0, int(i == axis)) for i in range(len(shape))]),
            lambda: relay.squeeze(x, [axis]) if shape[axis] == 1 else relay.expand_dims(x, axis),
            lambda: relay.take(x, relay.const([0, shape[axis] - 1]), axis=axis),
        ]
        return self.pick(ways[:4] if size > 64 else ways)()

    def joined(self) -> relay.Expr:
        x = self.any_tensor()
        ty = type_of(x, self.mod)
        if not ty.shape or np.prod(concrete(ty)) > 64:
            return relay.copy(x)
        axis = self.rng.randrange(len(ty.shape))
        others = [self.of_type(ty) for _ in range(self.rng.randint(1, 2))]
        if self.chance(0.3):
            return relay.stack([x, *others], axis=axis)
        return relay.concatenate([x, *others], axis=axis)

    def parted(self) -> relay.Expr:
        x = self.any_tensor()
        shape = concrete(type_of(x, self.mod))
        splittable = [a for a, d in enumerate(shape) if d > 1]
        if not splittable:
            return relay.TupleGetItem(relay.Tuple([x, self.any_tensor()]), 0)
        axis = self.pick(splittable)
        parts = relay.split(x, [self.rng.randint(1, shape[axis] - 1)], axis=axis)
        return parts[self.rng.randrange(2)]

    def product(self) -> relay.Expr:
        x = self.of_dtype("float32")
        shape = concrete(type_of(x, self.mod))
        rows = relay.reshape(x, (1, -1)) if len(shape) != 2 else x
        inner = concrete(type_of(rows, self.mod))[1]
        weight = self.of_type(tensor_type((self.rng.randint(1, 5), inner), "float32"))
        out = relay.nn.dense(rows, weight)
        if self.chance(0.5):
            units = concrete(type_of(weight, self.mod))[0]
            out = relay.nn.bias_add(out, self.of_type(tensor_type((units,), "float32")))
        return self.small(out)

    def window(self) -> relay.Expr:
        """A convolution or pooling over an image."""
        channels, size = self.rng.randint(1, 4), self.rng.randint(3, 6)
        x = self.of_type(tensor_type((1, channels, size, size), "float32"))
        kind = self.rng.randrange(3)
        if kind == 0:
            return relay.nn.max_pool2d(x, (2, 2), padding=(1, 1))
        if kind == 1:
            return relay.nn.avg_pool2d(
                x, (3, 3), padding=(1, 1), count_include_pad=self.chance(0.5)
            )
        weight = self.constant((self.rng.randint(1, 4), channels, 3, 3), "float32")
        return self.small(relay.nn.conv2d(x, weight, padding=(1, 1)))

    def normalised(self) -> relay.Expr:
        x = self.of_dtype("float32")
        shape = concrete(type_of(x, self.mod))
        if not shape:
            return relay.sigmoid(x)
        axis = self.rng.randrange(len(shape))
        return (
            relay.nn.softmax(x, axis=axis) if self.chance(0.7) else relay.nn.log_softmax(x, axis=-1)
        )

    def converted(self) -> relay.Expr:
        x = self.any_tensor()
        if type_of(x, self.mod).dtype == "int32":
            return relay.cast(x, "float32") * relay.const(0.125)
        return relay.cast(relay.cast(self.of_dtype("int32"), "int8"), "int32")

    def selected(self) -> relay.Expr:
        x = self.any_tensor()
        ty = type_of(x, self.mod)
        which = self.of_type(tensor_type(concrete(ty), "int32"))
        return relay.where(relay.greater(which, relay.const(0)), x, self.of_type(ty))

    def applied(self) -> relay.Expr:
        """A function where it is called."""
        x = self.any_tensor()
        return relay.Call(self.function([type_of(x, self.mod)]), [x])

    def function(self, types: Sequence[relay.Type], closed: bool = False) -> relay.Function:
        params = [self.fresh(ty, "a") for ty in types]
        outer, self.known = self.known, [] if closed or self.is_graph else self.known
        body = self.block(params, self.any_tensor, self.rng.randint(1, 3))
        self.known = outer
        return relay.Function(params, body)

    # -- the rest of the language

    def condition(self) -> relay.Expr:
        return relay.less(relay.sum(self.of_dtype("int32")), relay.const(self.rng.randint(-2, 4)))

    def conditional(self) -> relay.Expr:
        wanted = type_of(self.any_tensor(), self.mod)
        branches = [self.block([], partial(self.of_type, wanted), 2) for _ in range(2)]
        return relay.If(self.condition(), *branches)

    def matched(self) -> relay.Expr:
        """A value of a data type, and a match on it."""
        _, one, two, neither = self.mod.get_type("Choice")
        ty = type_of(self.any_tensor(), self.mod)
        made = self.pick([
            lambda: one(self.of_type(ty)),
            lambda: two(self.of_type(ty), self.of_type(ty)),
            lambda: relay.If(self.condition(), one(self.of_type(ty)), neither()),
        ])()  # fmt: skip
        clauses = []
        for constructor in self.rng.sample([one, two, neither], 3):
            fields = [self.fresh(ty, "f") for _ in constructor.inputs]
            pattern = adt.PatternConstructor(constructor, [adt.PatternVar(f) for f in fields])
            clauses.append(adt.Clause(pattern, self.block(fields, partial(self.of_type, ty), 1)))
        return adt.Match(made, clauses)

    def local_call(self) -> relay.Expr:
        """A closure bound by a let, called once or twice."""
        x = self.any_tensor()
        ty = type_of(x, self.mod)
        func = self.function([ty])
        out = infer(func, self.mod).ret_type
        name = self.fresh(relay.FuncType([ty], out), "g")
        call = relay.Call(name, [x])
        again = relay.Call(name, [self.of_type(ty)]) if self.chance(0.5) else call
        return relay.Let(name, func, self.small(relay.add(call, again)))

    def global_call(self) -> relay.Expr:
        x, y = self.any_tensor(), self.any_tensor()
        types = [type_of(x, self.mod), type_of(y, self.mod)]
        func = self.function(types, closed=True)
        infer(func, self.mod)
        self.count += 1
        gvar = relay.GlobalVar(f"f{self.count}")
        self.mod[gvar] = func.replace(ret_type=func.checked_type.ret_type)
        return relay.Call(gvar, [x, y])

    def loop(self) -> relay.Expr:
        """A recursive function that counts down."""
        state = self.any_tensor()
        ty = type_of(state, self.mod)
        scalar = relay.scalar_type("int32")
        name = self.fresh(relay.FuncType([scalar, ty], ty), "loop")
        i, s = self.fresh(scalar, "i"), self.fresh(ty, "s")
        step = self.block([s, i], partial(self.of_type, ty), 2)
        again = relay.Call(name, [i - relay.const(1), step])
        body = relay.If(relay.less(relay.const(0), i), again, s)
        count = relay.clip(relay.sum(self.of_dtype("int32")), 0, 4)
        func = relay.Function([i, s], body, ty)
        return relay.Let(name, func, relay.Call(name, [count, state]))

    def chain(self) -> relay.Expr:
        """A list that is made and folded."""
        _, link, end = self.mod.get_type("Chain")
        ty = type_of(self.any_tensor(), self.mod)
        values = [self.of_type(ty) for _ in range(self.rng.randint(0, 3))]
        made = end()
        for item in values:
            made = link(item, made)
        chain_type = self.mod.get_global_type_var("Chain")(ty)
        name = self.fresh(relay.FuncType([chain_type, ty], ty), "fold")
        xs, acc = self.fresh(chain_type, "xs"), self.fresh(ty, "acc")
        first, rest = self.fresh(ty, "x"), self.fresh(chain_type, "rest")
        joined = self.small(relay.add(acc, first))
        clauses = [
            adt.Clause(
                adt.PatternConstructor(link, [adt.PatternVar(first), adt.PatternVar(rest)]),
                relay.Call(name, [rest, joined]),
            ),
            adt.Clause(adt.PatternConstructor(end), acc),
        ]
        func = relay.Function([xs, acc], adt.Match(xs, clauses), ty)
        return relay.Let(name, func, relay.Call(name, [made, self.of_type(ty)]))

    def cell(self, bindings: list[tuple[relay.Var, relay.Expr]]) -> relay.Expr:
        """A cell that is written, perhaps, and read."""
        x = self.any_tensor()
        ty = type_of(x, self.mod)
        cell = self.fresh(relay.RefType(ty), "r")
        bindings.append((cell, relay.RefCreate(x)))
        if self.chance(0.7):
            written = self.of_type(ty)
            unit = self.fresh(relay.TupleType([]), "u")
            bindings.append((unit, relay.RefWrite(cell, written)))
        read = self.fresh(ty, "v")
        bindings.append((read, relay.RefRead(cell)))
        return read


def infer(expr: relay.Expr, mod: tvm.IRModule) -> relay.Type:
    return relay.analysis.infer_type_of(expr, mod)


type_of = infer


def concrete(ty: relay.TensorType) -> Shape:
    return tuple([int(d) for d in ty.shape])


def program(seed: int) -> tuple[tvm.IRModule, list[np.ndarray], bool]:
    """A module, arguments of its main, and whether it is a graph."""
    is_graph = seed % 2 == 0
    mod = Generator(seed, is_graph).module()
    rng = np.random.default_rng(seed)
    args = []
    for param in mod["main"].params:
        shape, dtype = concrete(param.checked_type), str(param.checked_type.dtype)
        values = rng.integers(-3, 4, shape) if dtype == "int32" else rng.uniform(-1, 1, shape)
        args.append(np.asarray(values, dtype))
    return mod, args, is_graph


def flat(value: Any) -> list[np.ndarray]:
    if hasattr(value, "numpy"):
        return [value.numpy()]
    return [array for item in value for array in flat(item)]


@dataclass
class Failure:
    seed: int
    where: str
    text: str


def compare(found: Any, expected: list[np.ndarray]) -> None:
    arrays = flat(found)
    assert len(arrays) == len(expected), (len(arrays), len(expected))
    for a, b in zip(arrays, expected, strict=True):
        assert a.shape == b.shape, (a.shape, b.shape)
        assert a.dtype == b.dtype, (a.dtype, b.dtype)
        np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-5)


def check_text(mod: tvm.IRModule) -> None:
    """The program read again from its text is the same."""
    text = mod.astext()
    again = relay.parse(text)
    tvm.ir.assert_structural_equal(again, mod, map_free_vars=True)
    assert again.astext() == text


def ways(seed: int, is_graph: bool, thorough: bool) -> list[tuple[str, int]]:
    """The executors and levels to try: all of them, or one level each."""
    kinds = ["graph", "vm"] if is_graph else ["vm"]
    if thorough:
        return [(kind, level) for kind in kinds for level in range(4)]
    return [(kind, (seed // 2 + i) % 4) for i, kind in enumerate(kinds)]


def check(seed: int, thorough: bool = False) -> Failure | None:
    """Run one program in its ways; None if all agree."""
    where = "generator"
    try:
        mod, args, is_graph = program(seed)
        where = "text"
        check_text(mod)
        where = "interpreter"
        expected = flat(relay.create_executor("debug", mod=mod).evaluate()(*args))
        for kind, level in ways(seed, is_graph, thorough):
            where = f"{kind} at level {level}"
            with tvm.transform.PassContext(opt_level=level):
                found = relay.create_executor(kind, mod=mod).evaluate()(*args)
            compare(found, expected)
    except Exception:
        return Failure(seed, where, traceback.format_exc(limit=-4))
    return None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    seeds = range(options.seed, options.seed + options.count)
    begin, failures = time.time(), []
    with ProcessPoolExecutor(options.jobs) as pool:
        for failure in pool.map(partial(check, thorough=True), seeds, chunksize=10):
            if failure is not None:
                failures.append(failure)
                print(f"seed {failure.seed}, {failure.where}:\n{failure.text}", flush=True)
    print(f"{options.count} programs, {len(failures)} failures, {time.time() - begin:.0f} s")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
