"""Random relay programs, well-typed by construction.

    python -m tests.relay.random_programs --count 5000 --seed 0 --jobs 2

Each program is run by the interpreter, and compiled for the graph and AOT executors (if it is a
graph) and for the virtual machine: every fourth at the levels 0 to 3, the others at 3 and one of the
rest; all must agree. So must the interpreter after passes in a random order, up to the digits that
these leave, and some programs exported and loaded. The text of the program, before and after, is
read again and compared.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

import tvm
from tvm import relay
from tvm.relay.transform import FlexibleShapeDispatch

from .random_language.computed_shapes import of_computed_shape
from .random_language.control import DATA_TYPES, closed_applied, construct
from .random_language.operators import operator
from .random_language.passes import EXACT, ROUGH, Kind, Tolerance, draw_passes, run_passes, widest
from .random_language.quantised import quantised, simulated
from .random_language.saved import saved_ways
from .random_language.scope import Scope, concrete, draw_values, tensor_type


class Generator(Scope):
    """Writes one program.

    With `is_graph` the program has no control flow, no data types and no references.
    """

    def __init__(self, seed: int, is_graph: bool) -> None:
        super().__init__(seed, tvm.IRModule() if is_graph else relay.parse(DATA_TYPES), is_graph)

    def module(self) -> tvm.IRModule:
        params = [
            self.fresh(tensor_type(self.shape(), self.dtype()), "p")
            for _ in range(self.rng.randint(1, 4))
        ]
        self.exact = [p for p in params if p.type_annotation.dtype == "float32"]
        if not self.is_graph:
            params.append(self.fresh(tensor_type((), "int32"), "p"))
        with_tuple = self.chance(0.3)
        body = self.block(params, partial(self.result, with_tuple), self.length())
        self.mod["main"] = relay.Function(params, body)
        return relay.transform.InferType()(self.mod)

    def length(self) -> int:
        """How many values main has; some programs are long."""
        return self.rng.randint(12, 30) if self.chance(0.1) else self.rng.randint(2, 9)

    def result(self, with_tuple: bool) -> relay.Expr:
        if not with_tuple:
            return self.any_tensor()
        fields = [self.any_tensor() for _ in range(self.rng.randint(1, 3))]
        if self.chance(0.3):
            fields.insert(self.rng.randrange(2), relay.Tuple([self.any_tensor()]))
        return relay.Tuple(fields)

    def step(self, bindings: list[tuple[relay.Var, relay.Expr]]) -> relay.Expr:
        if self.is_graph or self.chance(0.6):
            if self.chance(0.1):
                return self.pick([quantised, quantised, simulated, of_computed_shape])(self)
            return closed_applied(self) if self.chance(0.04) else operator(self)
        return construct(self, bindings)


@dataclass(frozen=True)
class Program:
    """A module with arguments of its main."""

    mod: tvm.IRModule
    args: list[np.ndarray]
    kind: Kind


def program(seed: int) -> Program:
    """The program of a seed: a graph if it is even, one of unknown shapes for some of the others."""
    is_graph = seed % 2 == 0
    mod = Generator(seed, is_graph).module()
    rng = np.random.default_rng(seed)
    args = []
    for param in mod["main"].params:
        ty = param.checked_type
        args.append(draw_values(rng, concrete(ty), str(ty.dtype)))
    has_references = "ref(" in mod.astext()
    is_dynamic = False
    if seed % 8 in (3, 4) and (erased := without_extents(mod, random.Random(seed))) is not None:
        mod, is_dynamic = erased, True
    text = mod.astext()
    kind = Kind(is_graph, has_references, is_dynamic, "qnn." in text, "float16" in text)
    return Program(mod, args, kind)


def without_extents(mod: tvm.IRModule, rng: random.Random) -> tvm.IRModule | None:
    """The program with some dimensions of parameters unknown; None if it then has no types."""
    main = mod["main"]
    params = []
    for param in main.params:
        shape = [relay.Any() if rng.random() < 0.5 else d for d in concrete(param.checked_type)]
        params.append(relay.Var(param.name_hint, relay.TensorType(shape, param.checked_type.dtype)))
    body = relay.bind(main.body, dict(zip(main.params, params, strict=True)))
    mod = mod.clone()
    mod["main"] = relay.Function(params, body)
    try:
        return relay.transform.InferType()(mod)
    except tvm.TVMError:
        return None


def with_choice_of_extents(made: Program, rng: random.Random) -> tvm.IRModule | None:
    """The program with a function for each of some extents of a parameter; None if it has no axes."""
    shapes = [arg.shape for arg in made.args]
    positions = [i for i, shape in enumerate(shapes) if shape]
    if made.kind.is_dynamic or not positions:
        return None
    position = rng.choice(positions)
    axis = rng.randrange(len(shapes[position]))
    extent, padded = shapes[position][axis], rng.random() < 0.5

    def dispatch(extents: list[int]) -> tvm.IRModule:
        turned = FlexibleShapeDispatch(extents, axis, padded, 0, [position], affects_output=False)
        return relay.transform.DynamicToStatic()(turned(made.mod))

    try:
        return dispatch([extent, 2 * extent])
    except tvm.TVMError:  # the program has no types at the other extent
        return dispatch([extent])


def flat_result(way: Callable[[], Any]) -> list[np.ndarray]:
    return flat(way())


def flat(value: Any) -> list[np.ndarray]:
    if hasattr(value, "numpy"):
        return [value.numpy()]
    return [array for item in value for array in flat(item)]


@dataclass
class Failure:
    seed: int
    where: str
    text: str


def compare(
    arrays: list[np.ndarray], expected: list[np.ndarray], tolerance: Tolerance = EXACT
) -> None:
    assert len(arrays) == len(expected), (len(arrays), len(expected))
    rtol, atol = tolerance
    for a, b in zip(arrays, expected, strict=True):
        assert a.shape == b.shape, (a.shape, b.shape)
        assert a.dtype == b.dtype, (a.dtype, b.dtype)
        np.testing.assert_allclose(a, b, rtol=rtol, atol=atol)


def check_text(mod: tvm.IRModule) -> None:
    """The program read again from its text is the same."""
    text = mod.astext()
    again = relay.parse(text)
    for gvar, func in mod.functions.items():  # one by one: what they share is shown in each
        found = again[gvar.name_hint]
        tvm.ir.assert_structural_equal(found, func, map_free_vars=True)
    assert again.astext() == text


def ways(seed: int, kind: Kind, thorough: bool) -> list[tuple[str, int]]:
    """The executors and levels to try: one level each; all or two of them if thorough."""
    kinds = ["graph", "aot", "vm"] if kind.is_graph and not kind.is_dynamic else ["vm"]
    turn = seed // 2 % 4
    if not thorough:
        return [(kind, (turn + i) % 4) for i, kind in enumerate(kinds)]
    levels = range(4) if turn == 0 else (turn - 1, 3)
    return [(kind, level) for kind in kinds for level in levels]


def runs(
    seed: int, made: Program, thorough: bool
) -> Iterator[tuple[str, Callable[[], list[np.ndarray]], Tolerance]]:
    """The ways to the results of a program, with their names and how near these come."""
    for kind, level in ways(seed, made.kind, thorough):
        # what LLVM makes of kernels takes most of the time, and is not what is tried here
        target = "llvm" if (seed + level) % 8 == 0 else "llvm -opt-level=0"
        way = partial(run, made.mod, made.args, kind, level, target)
        yield f"{kind} at level {level}", way, EXACT
    if thorough and seed % 16 < 2:
        saved = saved_ways(made.mod, made.args, made.kind.is_graph, seed // 16 % 4)
        for name, call in saved:
            yield f"{name}, exported and loaded", partial(flat_result, call), EXACT
    rng = random.Random(seed)
    for _ in range(2 if thorough else 1):
        passes = draw_passes(rng, made.kind)
        names = ", ".join([p.info.name for p in passes])
        by_vm = rng.random() < 0.3
        yield f"passes {names}", partial(run_after, made, passes, by_vm), widest(passes, made.kind)
    if rng.random() < 0.1 and (flexible := with_choice_of_extents(made, rng)) is not None:
        yield "flexible shapes", partial(run, flexible, made.args, "vm", seed % 4), EXACT


def run(
    mod: tvm.IRModule,
    args: list[np.ndarray],
    kind: str,
    level: int,
    target: str = "llvm -opt-level=0",
) -> list[np.ndarray]:
    config = {"tir.usmp.enable": True} if kind == "aot" and level % 2 else {}
    with tvm.transform.PassContext(opt_level=level, config=config):
        return flat(relay.create_executor(kind, mod=mod, target=target).evaluate()(*args))


def run_after(made: Program, passes: list[tvm.transform.Pass], by_vm: bool) -> list[np.ndarray]:
    mod = run_passes(made.mod, passes)
    check_text(mod)
    return run(mod, made.args, "vm" if by_vm else "debug", 2)


def check(seed: int, thorough: bool = False) -> Failure | None:
    """Run one program in its ways; None if all agree."""
    where = "generator"
    try:
        made = program(seed)
        where = "text"
        check_text(made.mod)
        where = "interpreter"
        expected = run(made.mod, made.args, "debug", 2)
        own = ROUGH if made.kind.is_rough else EXACT
        for name, way, tolerance in runs(seed, made, thorough):
            where = name
            compare(way(), expected, max(own, tolerance))
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
