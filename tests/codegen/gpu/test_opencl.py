"""Kernels in OpenCL C run on the OpenCL device that there is, and agree with numpy."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tests.codegen.gpu.programs import PROGRAMS
from tests.system_tools import needs_opencl

pytestmark = needs_opencl()


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_on_the_device(name: str) -> None:
    program = PROGRAMS[name]()
    dev = tvm.opencl(0)
    func = tvm.build(program.schedule, program.args, target="opencl")
    result = tvm.nd.empty(program.expected.shape, program.args[-1].dtype, dev)
    func(*[tvm.nd.array(array, dev) for array in program.inputs], result)
    tolerance = 2e-3 if program.args[-1].dtype == "float16" else 1e-5
    np.testing.assert_allclose(result.numpy(), program.expected, rtol=tolerance, atol=tolerance)
