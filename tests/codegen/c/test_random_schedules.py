"""Random schedules give in C what the interpreter gives for the unscheduled program."""

import numpy as np
import pytest

import tvm
from tests.system_tools import needs_tool
from tests.te.random_schedules import random_program
from tvm.te.schedule.lower import lower_schedule
from tvm.tir.interp import interpret

from .compiled import build_c

PROGRAMS = 100
# undefined behaviour ends the process
CHECKED = {
    "gcc": ["-fsanitize=undefined", "-fsanitize-undefined-trap-on-error"],
    "clang": ["-fsanitize=undefined", "-fsanitize-trap=all"],
}


@pytest.mark.parametrize(("first", "compiler"), [
    (0, "gcc"), (100, "gcc"), pytest.param(200, "clang", marks=needs_tool("clang")),
])  # fmt: skip
def test_c_agrees_with_the_interpreter(first: int, compiler: str) -> None:
    drawn = {f"program{n}": random_program(n) for n in range(first, first + PROGRAMS)}
    programs = {name: program for name, program in drawn.items() if not program.needs_device}
    functions = {
        name: tvm.lower(program.schedule, program.args, name=name)[name]
        for name, program in programs.items()
    }
    library = build_c(tvm.IRModule(functions), compiler, ["-O0", *CHECKED[compiler]])
    for number, (name, program) in enumerate(programs.items()):
        arrays = program.arrays(number)
        expected = [array.copy() for array in arrays]
        interpret(lower_schedule(program.plain, program.args), *expected)
        given = [tvm.nd.array(array) for array in arrays]
        library[name](*given)
        for ours, reference in zip(given, expected, strict=True):
            np.testing.assert_allclose(
                ours.numpy(), reference, rtol=1e-5, atol=1e-5,
                err_msg="\n".join([name, *program.steps]),
            )  # fmt: skip
