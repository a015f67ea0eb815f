"""Random schedules give in LLVM what the interpreter gives for the unscheduled program."""

import numpy as np
import pytest

import tvm
from tests.te.random_schedules import random_program
from tvm.tir.interp import interpret

from .helpers import run


@pytest.mark.parametrize("seed", range(120))
def test_llvm_agrees_with_the_interpreter(seed: int) -> None:
    program = random_program(seed)
    arrays = program.arrays(seed)
    expected = [array.copy() for array in arrays]
    interpret(tvm.te.schedule.lower.lower_schedule(program.plain, program.args), *expected)
    func = tvm.build(program.schedule, program.args, "llvm")
    for ours, reference in zip(run(func, *arrays), expected, strict=True):
        np.testing.assert_allclose(
            ours, reference, rtol=1e-5, atol=1e-5, err_msg="\n".join(program.steps)
        )
