"""Random relax programs, well-typed by construction, with what numpy makes of the same.

    python -m tests.relax.random_programs --count 2000 --seed 0 --jobs 2

Each program is built with the kernel library and, after passes in a random order, without it, at a
random level of optimisation, by a random pipeline, as bytecode or machine code; both results must be
numpy's. What struct info says of each variable is compared with the arrays, and the text of the program
is read again.
"""

from __future__ import annotations

import argparse
import random
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

import tvm
from tvm import relax, tir
from tvm.relax import transform as passes

from .random_functions import FUNCTIONS
from .random_operands import Operand
from .random_operators import OPERATORS
from .random_structure import STRUCTURE


@dataclass
class Program:
    """A module, its arguments, and what ``main`` must return."""

    module: tvm.IRModule
    arguments: list[np.ndarray]
    expected: list[np.ndarray]
    is_exact: list[bool]


class Generator:
    """Writes one program; some of its dimensions are symbolic."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.numbers = np.random.default_rng(seed)
        self.builder = relax.BlockBuilder()
        self.symbols: list[tuple[tir.Var, int]] = []
        if self.rng.random() < 0.4:
            extents = self.rng.sample(range(2, 8), self.rng.randint(1, 2))
            self.symbols = [(tir.Var(f"n{i}", "int64"), e) for i, e in enumerate(extents)]
        self.known: list[Operand] = []

    def dimension(self) -> tuple[Any, int]:
        if self.symbols and self.rng.random() < 0.5:
            return self.rng.choice(self.symbols)
        extent = self.rng.choice([1, 1, 2, 3, 4, 5, 8])
        return extent, extent

    def array(self, shape: Sequence[int], dtype: str) -> np.ndarray:
        """Numbers that sums and products of a few keep exact."""
        if dtype == "bool":
            return self.numbers.integers(0, 2, shape).astype("bool")
        whole = self.numbers.integers(-6, 7, shape)
        return (whole / 4 if dtype.startswith("float") else whole).astype(dtype)

    def dtype(self) -> str:
        return self.rng.choice(["float32"] * 6 + ["int32", "int64", "bool", "float64"])

    def tensor(self, shape: Sequence[Any], dtype: str) -> relax.TensorStructInfo:
        return relax.TensorStructInfo(shape, dtype)

    def program(self) -> Program:
        params, arguments = [], []
        rank = self.rng.randint(1, 4)
        base = [self.dimension() for _ in range(rank)]
        for i in range(self.rng.randint(2, 4)):
            dims = base if self.rng.random() < 0.6 else [self.dimension() for _ in range(rank)]
            array = self.array([extent for _, extent in dims], self.dtype())
            params.append(relax.Var(f"p{i}", self.tensor([d for d, _ in dims], str(array.dtype))))
            arguments.append(array)
            self.known.append(Operand(params[-1], array, True))
        # symbols that no parameter defines are not there for shapes either
        bound = {
            v
            for p in params
            for v in relax.analysis.definable_tir_vars_in_struct_info(p.struct_info)
        }
        self.symbols = [(v, e) for v, e in self.symbols if v in bound]
        for _ in range(self.rng.randint(0, 2)):
            array = self.array([e for d, e in base], self.dtype())
            self.known.append(Operand(relax.const(array), array, True))
        with self.builder.function("main", params):
            for _ in range(self.rng.randint(1, 3)):
                if self.rng.random() < 0.6:
                    self.dataflow_block()
                else:
                    self.emit_some()
            results = self.results()
            self.builder.emit_func_output(relax.Tuple([r.expr for r in results]))
        return Program(
            self.builder.get(), arguments, [r.array for r in results], [r.is_exact for r in results]
        )

    def dataflow_block(self) -> None:
        """A block, of whose values some are visible behind it."""
        before = len(self.known)
        with self.builder.dataflow():
            self.emit_some()
            made = self.known[before:]
            kept = self.rng.sample(made, self.rng.randint(1, len(made))) if made else []
            outputs = [Operand(self.builder.emit_output(r.expr), r.array, r.is_exact) for r in kept]
        self.known[before:] = outputs

    def results(self) -> list[Operand]:
        last = self.known[-1]
        return [last, *self.rng.sample(self.known, min(2, len(self.known)))]

    def emit_some(self) -> None:
        wanted = self.rng.randint(1, 6)
        for _ in range(20 * wanted):
            if wanted == 0:
                return
            drawn = self.rng.choices((OPERATORS, STRUCTURE, FUNCTIONS), (0.65, 0.2, 0.15))[0]
            made = self.rng.choice(drawn)(self)
            if made is None or made.array.size > 4096:
                continue
            expr = self.builder.emit(made.expr)
            check_struct_info(expr.struct_info, made.array, dict(self.symbols))
            self.known.append(Operand(expr, made.array, made.is_exact and is_small(made.array)))
            wanted -= 1

    # what operators ask for

    def pick(self, accepts: Callable[[Operand], bool]) -> Operand | None:
        """One of the tensors so far, later ones more often."""
        found = [operand for operand in self.known if accepts(operand)]
        if not found:
            return None
        return found[max(self.rng.randrange(len(found)), self.rng.randrange(len(found)))]


def is_small(array: np.ndarray) -> bool:
    """Whether sums and products of a few of these are exact."""
    return array.size == 0 or float(np.abs(array.astype("float64")).max()) < 2**9


def check_struct_info(info: Any, array: np.ndarray, values: dict[tir.Var, int]) -> None:
    """Raise AssertionError unless struct info describes the array."""
    assert info.dtype == str(array.dtype), f"inferred {info}, numpy gives {array.dtype}"
    assert info.ndim == array.ndim, f"inferred {info}, numpy gives the shape {array.shape}"
    numbers = {var: tir.IntImm("int64", value) for var, value in values.items()}
    if info.dimensions is not None:
        dims = [
            tvm.arith.Analyzer().simplify(tir.stmt_functor.substitute(d, numbers))
            for d in info.dimensions
        ]
        assert [int(d) for d in dims] == list(array.shape), (
            f"inferred {info}, numpy gives {array.shape}"
        )


PASSES: tuple[Callable[[], Any], ...] = (
    passes.CanonicalizeBindings, passes.EliminateCommonSubexpr, passes.FoldConstant,
    passes.DeadCodeElimination, passes.ToNonDataflow, passes.ConvertToDataflow, passes.LegalizeOps,
    passes.LambdaLift, passes.Normalize, passes.ExpandTupleArguments,
    passes.RemoveUnusedParameters, passes.RemoveUnusedOutputs, passes.TopologicalSort,
    passes.InlinePrivateFunctions, passes.DataflowUseInplaceCalls, passes.AdjustMatmulOrder,
    passes.ExpandMatmulOfSum, passes.ComputePrimValue, passes.RemoveRedundantReshape,
)  # fmt: skip
PIPELINE = (
    passes.LegalizeOps,
    passes.AnnotateTIROpPattern,
    passes.FoldConstant,
    passes.FuseOps,
    passes.FuseTIR,
)


def run(mod: tvm.IRModule, arguments: Sequence[np.ndarray], **options: Any) -> list[np.ndarray]:
    """What the virtual machine gives."""
    machine = relax.VirtualMachine(relax.build(mod, "llvm", **options), tvm.cpu())
    found = machine["main"](*[tvm.nd.array(a) for a in arguments])
    return [item.numpy() for item in found]


def compare(program: Program, found: list[np.ndarray], way: str) -> None:
    """Raise AssertionError where results are not numpy's."""
    for i, (a, b) in enumerate(zip(found, program.expected, strict=True)):
        assert a.dtype == b.dtype and a.shape == b.shape, f"{way}, result {i}: {a.dtype}{a.shape}"
        if program.is_exact[i] or b.dtype.kind in "iub":
            np.testing.assert_array_equal(a, b, err_msg=f"{way}, result {i}")
        else:
            scale = float(np.abs(b).max()) if b.size else 1.0
            np.testing.assert_allclose(
                a, b, rtol=2e-4, atol=2e-5 * max(scale, 1.0), err_msg=f"{way}, result {i}"
            )


def check(seed: int) -> None:
    """Raise an error unless a program gives what numpy gives in all ways."""
    with np.errstate(all="ignore"):
        program = Generator(seed).program()
    mod, rng = program.module, random.Random(seed)
    assert relax.analysis.well_formed(mod)
    again = tvm.script.from_source(mod.script(show_meta=True))
    tvm.ir.assert_structural_equal(again, mod)
    compare(program, run(mod, program.arguments), "kernels")
    drawn = rng.sample(PASSES, rng.randint(0, 4)) + (list(PIPELINE) if rng.random() < 0.7 else [])
    for make in drawn:
        mod = make()(mod)
    mode, level = rng.choice(["bytecode", "compiled"]), rng.randint(0, 3)
    if rng.random() < 0.5:
        mod = relax.get_pipeline("zero")(mod)
        drawn.append(relax.pipeline.zero_pipeline)
    names = ", ".join([make.__name__ for make in drawn])
    # without the pass that calls the library's kernels
    mod = passes.LegalizeOps()(mod)
    with tvm.transform.PassContext(opt_level=level):
        found = run(mod, program.arguments, exec_mode=mode)
    compare(program, found, f"{mode} at level {level} after {names}")


def _reported(seed: int) -> tuple[int, str]:
    try:
        check(seed)
    except Exception:
        return seed, traceback.format_exc()
    return seed, ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    failed = 0
    seeds = range(options.seed, options.seed + options.count)
    with ProcessPoolExecutor(options.jobs) as pool:
        for seed, text in pool.map(_reported, seeds, chunksize=8):
            if text:
                failed += 1
                print(f"seed {seed}:\n{text}", flush=True)
    print(f"{failed} of {options.count} programs fail")


if __name__ == "__main__":
    main()
