"""Every pass at every place of lowering: what it leaves is well formed and computes the same, or it says what it requires.

usage: python -m tests.tir.transform.every_pass [count] [first program]

The first programs are those of the zoo, the others are scheduled at random.
"""

from __future__ import annotations

import sys

import numpy as np

from tests.tir.schedule.random_traces import STEPS, RandomScheduler, run
from tests.tir.schedule.zoo import ZOO
from tvm.error import TVMError
from tvm.ir import IRModule
from tvm.ir.transform import Pass
from tvm.target import Target
from tvm.tir import PrimFunc, transform
from tvm.tir.pipeline import lower_passes
from tvm.tir.verify import LAST_PASSES, Stage, problems

ARGUMENTS = {
    "BindTarget": [Target("llvm")], "LiftAttrScope": ["coproc_scope"], "NarrowDataType": [32],
    "StorageFlatten": [64], "ThreadSync": ["shared"],
}  # fmt: skip
# they take functions of the user, change how a function is called, or call what only a run has
LEFT_OUT = {
    "Apply", "DefaultGPUSchedule", "Filter", "HoistedConditionals", "HoistedLetBindings",
    "InjectCopyIntrin", "InstrumentProfileIntrinsics", "LowerCustomDatatypes", "MakePackedAPI",
    "MakeUnpackedAPI", "PrimFuncPass", "prim_func_pass",
}  # fmt: skip


def passes() -> dict[str, Pass]:
    """The passes that work on any program."""
    names = [name for name in transform.__all__ if name not in LEFT_OUT]
    return {name: getattr(transform, name)(*ARGUMENTS.get(name, [])) for name in sorted(names)}


def stages(func: PrimFunc) -> list[tuple[str, Stage, IRModule]]:
    """The program before lowering and after each pass of it that changes it."""
    attrs = {"global_symbol": "main", "target": Target("llvm")}
    found = [("nothing", Stage.STAGES, IRModule({"main": func.with_attr(attrs)}))]
    for item in lower_passes():
        _, stage, mod = found[-1]
        stage = LAST_PASSES.get(item.info.name, stage)
        if (lowered := item(mod))["main"] is not mod["main"]:
            found.append((item.info.name, stage, lowered))
    return found


def check(func: PrimFunc) -> list[str]:
    """What is wrong after some pass, a line each."""
    expected, every = run(func), passes()
    return [
        f"{name} after {place}: {problem}"
        for place, stage, mod in stages(func)
        for name, item in every.items()
        if (problem := problem_of(item, mod, stage, expected))
    ]


def problem_of(item: Pass, mod: IRModule, stage: Stage, expected: list[np.ndarray]) -> str:
    """What is wrong with what a pass makes of a module, or nothing."""
    try:
        changed = item(mod)
    except TVMError:
        return ""  # the program is not in the form that the pass requires
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    if all([func is mod.functions.get(gvar) for gvar, func in changed.functions.items()]):
        return ""
    for func in changed.functions.values():
        if found := problems(func, stage):
            return found[0]
    if len(changed.functions) > 1:
        return ""  # kernels of their own, which the host launches
    try:
        found_arrays = run(changed["main"])
    except TVMError as error:
        return f"it does not run: {error}"
    pairs = zip(found_arrays, expected, strict=True)
    same = all([np.allclose(a, b, 1e-4, 1e-5) for a, b in pairs])
    return "" if same else "it computes something else"


def program(number: int) -> PrimFunc:
    """A program of the zoo, or one that is scheduled at random."""
    func = ZOO[number % len(ZOO)]
    if number < len(ZOO):
        return func
    scheduler = RandomScheduler(func, number)
    for _ in range(STEPS):
        scheduler.step()
    return scheduler.sch.mod["main"]


def main(count: int, first: int) -> None:
    """Check programs one after the other."""
    for number in range(first, first + count):
        found = check(program(number))
        print(f"program {number}: {len(found)} problems", *found, sep="\n    ", flush=True)


if __name__ == "__main__":
    main(*[int(arg) for arg in (*sys.argv[1:], "100", "0")[:2]])
