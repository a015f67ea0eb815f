from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import te, topi


@pytest.mark.parametrize(("start", "step"), [(0, 1), (2, 3), (11, -2), (3, 1)])
def test_numbers_up_to_an_open_stop(start: int, step: int) -> None:
    x = te.placeholder((te.var("n", "int64"),), "int64", name="x")
    numbers = topi.arange(te.const(start, "int64"), x.shape[0], te.const(step, "int64"), "int64")
    func = tvm.build(te.create_schedule(numbers.op), [x, numbers], "llvm")
    for stop in (4, 5, 9):
        expected = np.arange(start, stop, step, dtype="int64")
        result = tvm.nd.empty(expected.shape, "int64")
        func(tvm.nd.empty((stop,), "int64"), result)
        np.testing.assert_array_equal(result.numpy(), expected)
