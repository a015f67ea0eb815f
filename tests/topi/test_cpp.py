"""`topi.cpp`: the library's names in C++."""

import numpy as np
import pytest

import tvm
from tvm import te, topi


def test_computes_are_those_of_topi() -> None:
    a = te.placeholder((2, 3), name="a")
    assert [int(n) for n in topi.cpp.transpose(a, [1, 0]).shape] == [3, 2]
    assert topi.cpp.nn.relu is topi.nn.relu


def test_schedules_take_the_target_first() -> None:
    a = te.placeholder((2, 3), name="a")
    doubled = topi.cpp.add(a, a)
    target = topi.cpp.TEST_create_target("llvm")
    function = tvm.build(topi.cpp.x86.schedule_injective(target, [doubled]), [a, doubled], target)
    given = np.arange(6, dtype="float32").reshape(2, 3)
    result = tvm.nd.empty((2, 3))
    function(tvm.nd.array(given), result)
    np.testing.assert_array_equal(result.numpy(), 2 * given)


def test_schedules_of_gpus_bind_threads() -> None:
    a = te.placeholder((64,), name="a")
    doubled = topi.cpp.add(a, a)
    schedule = topi.cpp.cuda.schedule_injective(topi.cpp.TEST_create_target("opencl"), [doubled])
    assert "threadIdx.x" in str(tvm.lower(schedule, [a, doubled]))


def test_absent_names_are_attribute_errors() -> None:
    with pytest.raises(AttributeError, match="'tvm.topi.cpp' has no attribute 'unknown'"):
        topi.cpp.unknown
    with pytest.raises(AttributeError, match="has no attribute 'dense'"):
        topi.cpp.cuda.dense
