"""Random legal schedules compute what the unscheduled program does, in the interpreter."""

import numpy as np
import pytest

from tvm import te
from tvm.tir.interp import interpret

from ..random_schedules import OPERATORS, random_program


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("seed", range(12))
def test_random_schedule_computes_the_same(operator: str, seed: int) -> None:
    program = random_program(seed, operator)
    expected, actual = program.arrays(seed), program.arrays(seed)
    interpret(te.schedule.lower_schedule(program.plain, program.args), *expected)
    interpret(te.schedule.lower_schedule(program.schedule, program.args), *actual)
    for got, wanted in zip(actual, expected, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-4, err_msg=str(program.steps))
