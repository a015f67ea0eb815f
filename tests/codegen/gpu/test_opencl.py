"""Kernels in OpenCL C run on the OpenCL device that there is, and agree with numpy."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tests.codegen.gpu.programs import PROGRAMS, Program, drawn
from tests.system_tools import needs_opencl

pytestmark = needs_opencl()


def check(program: Program) -> None:
    dev = tvm.opencl(0)
    func = tvm.build(program.schedule, program.args, target="opencl")
    result = tvm.nd.empty(program.expected.shape, program.args[-1].dtype, dev)
    func(*[tvm.nd.array(array, dev) for array in program.inputs], result)
    tolerance = 2e-3 if program.args[-1].dtype == "float16" else 1e-5
    np.testing.assert_allclose(result.numpy(), program.expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_on_the_device(name: str) -> None:
    check(PROGRAMS[name]())


@pytest.mark.parametrize("seed", range(5))
def test_schedules_drawn_at_random(seed: int) -> None:
    check(drawn(seed))
