"""What runs where there is a CUDA device, and what is said where there is none."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tests.codegen.gpu.programs import PROGRAMS, vector_add
from tests.system_tools import needs_cuda


@needs_cuda()
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_on_the_device(name: str) -> None:
    program, dev = PROGRAMS[name](), tvm.cuda(0)
    major, minor = str(dev.compute_version).split(".")
    func = tvm.build(program.schedule, program.args, f"cuda -arch=sm_{major}{minor}")
    result = tvm.nd.empty(program.expected.shape, program.args[-1].dtype, dev)
    func(*[tvm.nd.array(array, dev) for array in program.inputs], result)
    tolerance = 2e-3 if program.args[-1].dtype == "float16" else 1e-5
    np.testing.assert_allclose(result.numpy(), program.expected, rtol=tolerance, atol=tolerance)


@pytest.mark.skipif(tvm.cuda(0).exist, reason="there is a CUDA device")
def test_without_a_device() -> None:
    program = vector_add()
    func = tvm.build(program.schedule, program.args, "cuda -arch=sm_80")
    assert "__global__" in func.imported_modules[0].get_source()
    with pytest.raises(tvm.TVMError, match="CUDA cannot be used: "):
        tvm.nd.empty((1,), device=tvm.cuda(0))
    assert not tvm.runtime.enabled("cuda")
