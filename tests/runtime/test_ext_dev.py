"""The extension device: memory apart, kernels that the processor runs."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import te
from tvm.target.ext_dev import code_target

EXT = tvm.ext_dev(0)


def test_arrays_get_there_and_back_by_copies() -> None:
    values = np.arange(6, dtype="float32").reshape(2, 3)
    there = tvm.nd.array(values, EXT)
    assert there.device == EXT and there.copyto(tvm.cpu()).device == tvm.cpu(0)
    np.testing.assert_array_equal(there.numpy(), values)
    there.copyfrom(values + 1)
    np.testing.assert_array_equal(there.copyto(tvm.ext_dev(1)).numpy(), values + 1)


@pytest.mark.parametrize("target", ["ext_dev", "ext_dev -mcpu=x86-64", "ext_dev -keys=npu"])
def test_kernels_take_arrays_that_are_there(target: str) -> None:
    a = te.placeholder((1000,), name="a")
    b = te.compute((1000,), lambda i: te.exp(a[i]), name="b")

    lib = tvm.build(te.create_schedule(b.op), [a, b], target, name="f")
    values = np.linspace(0, 1, 1000, dtype="float32")
    out = tvm.nd.empty((1000,), device=EXT)
    lib["f"](tvm.nd.array(values, EXT), out)
    np.testing.assert_allclose(out.numpy(), np.exp(values), rtol=1e-5)
    with pytest.raises(ValueError, match="needs to be on device ext_dev"):
        lib["f"](tvm.nd.array(values), out)


def test_code_is_that_of_the_host_with_the_keys_of_the_target() -> None:
    target = code_target(tvm.target.Target("ext_dev -keys=npu", host="llvm -mcpu=x86-64-v3"))
    assert (target.kind.name, target.mcpu, target.keys) == ("llvm", "x86-64-v3", ("npu", "cpu"))
    assert target.get_target_device_type() == EXT.device_type
    assert code_target(tvm.target.Target("llvm")) == tvm.target.Target("llvm")
