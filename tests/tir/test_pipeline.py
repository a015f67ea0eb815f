"""The lowering pipeline as a whole: programs mean the same, and are legal, after every pass."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.te.random_schedules import random_program
from tvm import nd, te, tir
from tvm.codegen import build_module
from tvm.error import TVMError
from tvm.ir import IRModule
from tvm.ir.transform import PassContext
from tvm.target import Target
from tvm.te.schedule.lower import lower_schedule
from tvm.tir import transform
from tvm.tir.interp import interpret
from tvm.tir.pipeline import lower_for_host, lower_module, lower_passes
from tvm.tir.stmt import For, ForKind
from tvm.tir.verify import VerifyStages


def lowered(schedule: te.Schedule, args: list[Any], simple_mode: bool = False) -> IRModule:
    """The module after all phases of ``lower``, checked after each pass."""
    with PassContext(instruments=[VerifyStages()], config=dict(PassContext.current().config)):
        return lower_module(IRModule({"main": lower_schedule(schedule, args)}), simple_mode)


def close(a: Any, b: Any) -> None:
    np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("seed", range(60))
def test_random_schedules_keep_their_meaning(seed: int) -> None:
    program = random_program(seed)
    expected, found = program.arrays(), program.arrays()
    interpret(lower_schedule(program.plain, program.args), *expected)
    module = lowered(program.schedule, program.args)
    interpret(module["main"], *found)
    for a, b in zip(found, expected, strict=True):
        close(a, b)


# what is bound to threads of a device does not run on the host
ON_HOST = [seed for seed in range(60, 100) if not random_program(seed).needs_device]


@pytest.mark.parametrize("seed", ON_HOST)
def test_random_schedules_run_as_machine_code(seed: int) -> None:
    program = random_program(seed)
    expected = program.arrays()
    interpret(lower_schedule(program.plain, program.args), *expected)
    module = lowered(program.schedule, program.args)
    target = Target("llvm")
    arrays = [nd.array(a) for a in program.arrays()]
    build_module(lower_for_host(module, target), target)["main"](*arrays)
    for a, b in zip(arrays, expected, strict=True):
        close(a.numpy(), b)


def small() -> tuple[te.Schedule, list[te.Tensor]]:
    A = te.placeholder((16,), name="A")
    B = te.compute((16,), lambda i: A[i] + 1.0, name="B")
    schedule = te.create_schedule(B.op)
    _, inner = schedule[B].split(B.op.axis[0], 4)
    schedule[B].vectorize(inner)
    return schedule, [A, B]


def kinds(module: IRModule) -> set[ForKind]:
    found: set[ForKind] = set()
    tir.stmt_functor.post_order_visit(
        module["main"].body, lambda s: found.add(s.kind) if isinstance(s, For) else None
    )
    return found


def test_vectorization_can_be_disabled() -> None:
    with PassContext(config={"tir.disable_vectorize": True}):
        module = lowered(*small())
    assert "Ramp" not in repr(module["main"].body) and kinds(module) == {ForKind.SERIAL}


@pytest.mark.parametrize("phase", [0, 1, 2, 3])
def test_users_passes_run_in_their_phase(phase: int) -> None:
    seen: list[str] = []

    @transform.prim_func_pass(opt_level=0, name="user")
    def look(func: tir.PrimFunc, mod: IRModule, ctx: PassContext) -> tir.PrimFunc:
        seen.append(str(func.body))
        return func

    with PassContext(config={"tir.add_lower_pass": [(phase, look)]}):
        lowered(*small())
    (text,) = seen
    # phase 0 sees stages with loops, from phase 2 on the vector is there
    assert ("vectorized" in text) == (phase < 2)


def test_a_users_pass_must_be_callable() -> None:
    context = PassContext(config={"tir.add_lower_pass": [(1, "Simplify")]})
    with context, pytest.raises(TVMError, match="add_lower_pass requires passes"):
        lower_passes()


def test_unknown_options_are_rejected_with_a_suggestion() -> None:
    with pytest.raises(TVMError, match="tir.UnrollLoop"):
        PassContext(config={"tir.UnrolLoop": {}})
    with pytest.raises(TVMError, match="auto_max_step"):
        PassContext(config={"tir.UnrollLoop": {"auto_max_stepp": 3}})


def test_lowering_twice_gives_the_same_text() -> None:
    assert str(lowered(*small())) == str(lowered(*small()))


def test_lowering_is_done_once() -> None:
    module = lowered(*small())
    assert lower_module(module) is module


def test_threads_need_a_device_target() -> None:
    A = te.placeholder((16,), name="A")
    B = te.compute((16,), lambda i: A[i] + 1.0, name="B")
    schedule = te.create_schedule(B.op)
    schedule[B].bind(B.op.axis[0], te.thread_axis("threadIdx.x"))
    module = lowered(schedule, [A, B])
    with pytest.raises(TVMError, match="thread binding needs a device target"):
        lower_for_host(module, Target("llvm"))
