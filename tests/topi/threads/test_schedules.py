"""One schedule for all operators on devices with threads: on OpenCL, against the loops as they are written."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import tvm
from tests.system_tools import needs_opencl
from tvm import te, topi

Case = tuple[list[te.Tensor], te.Tensor]


def placeholder(name: str, *shape: int, dtype: str = "float32") -> te.Tensor:
    return te.placeholder(shape, dtype, name=name)


def conv2d() -> Case:
    data, weight = placeholder("data", 1, 8, 9, 9), placeholder("weight", 12, 8, 3, 3)
    return [data, weight], topi.nn.relu(topi.nn.conv2d_nchw(data, weight, 1, 1, 1))


def dense() -> Case:
    a, b = placeholder("a", 33, 40), placeholder("b", 20, 40)
    return [a, b], topi.nn.dense(a, b)


def matrix_times_vector() -> Case:
    a, b, c = placeholder("a", 1, 300), placeholder("b", 10, 300), placeholder("c", 10)
    return [a, b, c], topi.nn.relu(topi.add(topi.nn.dense(a, b), c))


def batch_matmul() -> Case:
    a, b = placeholder("a", 3, 17, 32), placeholder("b", 3, 12, 32)
    return [a, b], topi.nn.batch_matmul(a, b)


def depthwise() -> Case:
    data, weight = placeholder("data", 1, 8, 9, 9), placeholder("weight", 8, 1, 3, 3)
    return [data, weight], topi.nn.depthwise_conv2d_nchw(data, weight, 1, 1, 1)


def softmax() -> Case:
    a = placeholder("a", 5, 100)
    return [a], topi.nn.softmax(a)


def pool() -> Case:
    a = placeholder("a", 1, 4, 9, 9)
    return [a], topi.nn.pool2d(a, (3, 3), (2, 2), (1, 1), (1, 1, 1, 1), "max")


def argmax() -> Case:
    a = placeholder("a", 7, 30)
    return [a], topi.argmax(a, axis=1)


def transpose() -> Case:
    a = placeholder("a", 3, 4, 5)
    return [a], topi.transpose(topi.tanh(a), (2, 0, 1))


CASES = [
    conv2d, dense, matrix_times_vector, batch_matmul, depthwise, softmax, pool, argmax, transpose,
]  # fmt: skip


@needs_opencl()
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_results_on_opencl(case: Callable[[], Case]) -> None:
    inputs, out = case()
    args = [*inputs, out]
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal([int(d) for d in x.shape]).astype(x.dtype) for x in args]
    plain = tvm.build(te.create_schedule(out.op), args, "llvm")
    with tvm.target.Target("opencl"):
        threads = tvm.build(topi.threads.schedule(out), args)
    on_host = [tvm.nd.array(array) for array in arrays]
    on_device = [tvm.nd.array(array, tvm.opencl(0)) for array in arrays]
    plain(*on_host)
    threads(*on_device)
    np.testing.assert_allclose(on_device[-1].numpy(), on_host[-1].numpy(), rtol=1e-4, atol=1e-4)


def kernel_text(case: Callable[[], Case], target: str = "cuda -arch=sm_80") -> str:
    inputs, out = case()
    with tvm.target.Target(target):
        built = tvm.build(topi.threads.schedule(out), [*inputs, out])
    return str(built.imported_modules[0].get_source())


def test_convolutions_have_tiles_in_shared_memory() -> None:
    text = kernel_text(conv2d)
    assert "data_pad_shared[" in text and "weight_shared[" in text
    # filled, and read, with the threads together: two barriers in the loop over channels
    assert text.count("__syncthreads()") == 2


def test_long_rows_are_summed_by_a_block() -> None:
    text = kernel_text(matrix_times_vector)
    assert "red_buf0[" in text and text.count("__global__") == 1


def test_classic_names_of_schedules_for_gpus() -> None:
    inputs, out = softmax()
    with tvm.target.Target("opencl"):
        for library in (topi.cuda, topi.gpu, topi.mali):
            built = tvm.build(library.schedule_softmax([out]), [*inputs, out])
            assert "__kernel" in built.imported_modules[0].get_source()
    assert topi.cuda.conv2d_nchw is topi.nn.conv2d_nchw
