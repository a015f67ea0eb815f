"""Whether random schedules compute what the unscheduled programs do, in the interpreter, LLVM and C.

    python -m tests.te.agreement --count 50000 --seed 1      # a long run, with progress

Programs are compiled many at a time: starting the code generator costs more than a small program.
Those whose loops are bound to threads of a device run in the interpreter alone, lowered and with the
barriers that builds for devices add: no host can compile them.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import tvm
from tvm import tir
from tvm.driver.build_module import build_lowered
from tvm.runtime import Module
from tvm.target import Target
from tvm.te.schedule import lower_schedule
from tvm.tir.analysis import verify_ssa
from tvm.tir.interp import interpret
from tvm.tir.transform import ThreadSync

from ..codegen.c.compiled import compiled
from .random_schedules import Program, random_program

BATCH = 50
BUILDERS: dict[str, Callable[[tvm.IRModule], Module]] = {
    "llvm": lambda module: build_lowered(module, Target("llvm")),
    "llvm -opt-level=0": lambda module: build_lowered(module, Target("llvm -opt-level=0")),
    "c": lambda module: compiled(build_lowered(module, Target("c")), options=["-O0"]),
}
UNSET = 77


@dataclass
class Case:
    """A seed, its program, and what went wrong."""

    seed: int
    program: Program | None = None
    func: tir.PrimFunc | None = None
    expected: list[np.ndarray] = field(default_factory=list)
    failure: str = ""

    @property
    def name(self) -> str:
        return f"program_{self.seed}"

    def fail(self, text: str) -> None:
        if not self.failure:
            steps = "; ".join(self.program.steps) if self.program else ""
            kind = self.program.name if self.program else "?"
            self.failure = f"seed {self.seed} ({kind}): {text}\n    {steps}"

    def attempt(self, what: str, action: Any) -> Any:
        """The action's result; an error of it is this case's failure."""
        try:
            return action()
        except Exception as error:
            lines = str(error).splitlines() or [""]
            self.fail(f"{what}: {type(error).__name__}: {lines[0]}")
            return None

    def arrays(self) -> list[np.ndarray]:
        assert self.program is not None
        return self.program.arrays(self.seed, UNSET)

    def compare(self, what: str, actual: list[np.ndarray]) -> None:
        for got, wanted in zip(actual, self.expected, strict=True):
            if not np.allclose(got, wanted, rtol=1e-4, atol=1e-4, equal_nan=True):
                self.fail(f"{what} gives {got.ravel()[:8]}, not {wanted.ravel()[:8]}")


def disagreements(seeds: range, targets: Sequence[str] = ("llvm",)) -> list[str]:
    """What is wrong with the programs of some seeds; nothing, one hopes."""
    cases = [_interpreted(seed) for seed in seeds]
    on_host = [case for case in cases if not (case.failure or case.program.needs_device)]
    modules = _lowered(on_host)
    for target in targets:
        _run_compiled([case for case in on_host if not case.failure], modules, target)
    return [case.failure for case in cases if case.failure]


def _interpreted(seed: int) -> Case:
    case = Case(seed)
    case.program = program = case.attempt("scheduling", lambda: random_program(seed))
    if program is None:
        return case
    case.expected = case.arrays()
    plain = lower_schedule(program.plain, program.args)
    case.attempt("the unscheduled program", lambda: interpret(plain, *case.expected))
    lower = lambda: lower_schedule(program.schedule, program.args, case.name)  # noqa: E731
    case.func = case.attempt("lowering", lower)
    if case.func is None:
        return case
    func = case.func
    if program.needs_device:
        func = case.attempt("lowering for a device", lambda: _synchronized(case))
        if func is None:
            return case
    actual = case.arrays()
    case.attempt("the interpreter", lambda: interpret(func, *actual))
    case.compare("the interpreter", actual)
    return case


def _synchronized(case: Case) -> tir.PrimFunc:
    """The lowered program, whose threads wait for each other where they share memory."""
    module = tvm.lower(tvm.IRModule({case.name: case.func}))
    return ThreadSync("shared")(module)[case.name]


def _lowered(cases: list[Case]) -> dict[str, tvm.IRModule]:
    """What ``tvm.lower`` makes of each program."""
    found = {}
    for case in cases:
        single = tvm.IRModule({case.name: case.func})
        module = case.attempt("tvm.lower", lambda single=single: tvm.lower(single))
        if module is not None and not verify_ssa(module[case.name]):
            case.fail("tvm.lower defines a variable twice")
        found[case.name] = module
    return found


def _run_compiled(cases: list[Case], modules: dict[str, tvm.IRModule], target: str) -> None:
    together = tvm.IRModule({})
    for case in cases:
        together.update(modules[case.name])
    try:
        library = BUILDERS[target](together)
    except Exception:
        if len(cases) == 1:
            cases[0].attempt(f"target {target}", lambda: BUILDERS[target](together))
            return
        for case in cases:
            _run_compiled([case], modules, target)
        return
    for case in cases:
        given = [tvm.nd.array(array) for array in case.arrays()]
        case.attempt(target, lambda case=case, given=given: library[case.name](*given))
        case.compare(target, [array.numpy() for array in given])


def main() -> int:
    """A run over many seeds; the exit code tells whether all agreed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--targets", nargs="*", choices=BUILDERS, default=["llvm", "c"])
    given = parser.parse_args()
    start, failures = time.monotonic(), 0
    for first in range(given.seed, given.seed + given.count, BATCH):
        last = min(first + BATCH, given.seed + given.count)
        for text in disagreements(range(first, last), given.targets):
            failures += 1
            print(text, flush=True)
        done, seconds = last - given.seed, time.monotonic() - start
        print(f"{done} programs, {failures} failures, {seconds:.0f} s", file=sys.stderr, flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
