"""Draws from distributions."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import relax
from tvm.error import TVMError
from tvm.relax.backend import DispatchSampling
from tvm.script import relax as R


@pytest.mark.parametrize("dtype", ["int64", "int32"])
def test_samples_are_the_first_places_above_the_numbers(dtype: str) -> None:
    @R.function
    def main(
        prob: R.Tensor(("n", "v"), "float32"),
        uniform: R.Tensor(("k", 1), "float32"),
        rows: R.Tensor(("k", 1), "int64"),
    ):
        return R.multinomial_from_uniform(prob, uniform, rows, dtype=dtype)

    machine = relax.VirtualMachine(relax.build(tvm.IRModule({"main": main}), "llvm"), tvm.cpu())
    rng = np.random.default_rng(0)
    prob = rng.random((3, 17)).astype("float32")
    prob /= prob.sum(axis=1, keepdims=True)
    uniform = np.concatenate([rng.random((20, 1)), [[0.0], [0.9999999]]]).astype("float32")
    rows = rng.integers(0, 3, (22, 1))
    found = machine["main"](*[tvm.nd.array(a) for a in (prob, uniform, rows)]).numpy()
    sums = np.cumsum(prob, axis=1, dtype="float32")
    above = [int((sums[row[0]] <= u[0]).sum()) for u, row in zip(uniform, rows, strict=True)]
    assert found.dtype == dtype
    np.testing.assert_array_equal(found[:, 0], np.minimum(above, 16))


def test_sampling_on_a_gpu_is_rejected() -> None:
    @R.function
    def main(
        prob: R.Tensor((3, 5), "float32"),
        uniform: R.Tensor((6, 1), "float32"),
        rows: R.Tensor((6, 1), "int64"),
    ):
        return R.multinomial_from_uniform(prob, uniform, rows)

    with tvm.target.Target("cuda"), pytest.raises(TVMError, match="for CPUs only"):
        DispatchSampling()(tvm.IRModule({"main": main}))
