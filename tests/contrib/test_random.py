"""Tensors that the runtime draws."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import te
from tvm.contrib import random


def drawn(tensor: te.Tensor) -> np.ndarray:
    func = tvm.build(te.create_schedule(tensor.op), [tensor], "llvm")
    out = tvm.nd.empty((1024, 64), tensor.dtype)
    func(out)
    return out.numpy()


def test_uniform_fills_its_range() -> None:
    values = drawn(random.uniform(-1, 3, (1024, 64)))
    assert values.min() >= -1
    assert values.max() <= 3
    assert abs(values.mean() - 1) < 0.05


def test_normal_has_its_mean_and_deviation() -> None:
    values = drawn(random.normal(2, 3, (1024, 64)))
    assert abs(values.mean() - 2) < 0.1
    assert abs(values.std() - 3) < 0.1


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint16"])
def test_randint_has_every_value(dtype: str) -> None:
    values = drawn(random.randint(3, 7, (1024, 64), dtype))
    assert set(np.unique(values)) == {3, 4, 5, 6}


def test_a_seed_repeats_the_numbers() -> None:
    seed = tvm.get_global_func("tvm.contrib.random.seed")
    fill = tvm.get_global_func("tvm.contrib.random.uniform")
    results = []
    for _ in range(2):
        seed(7)
        out = tvm.nd.empty((5,))
        fill(0.0, 1.0, out)
        results.append(out.numpy())
    np.testing.assert_array_equal(*results)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "int8", "bool", "uint64"])
def test_inputs_of_measurements_are_tame(dtype: str) -> None:
    out = tvm.nd.empty((64, 8), dtype)
    tvm.get_global_func("tvm.contrib.random.random_fill")(out)
    values = out.numpy().astype("float64")
    assert len(np.unique(values)) > 1
    assert values.min() >= 0
    assert values.max() <= 10


def test_wrong_ranges_and_types_are_rejected() -> None:
    with pytest.raises(ValueError, match="low < high"):
        tvm.get_global_func("tvm.contrib.random.randint")(3, 3, tvm.nd.empty((2,), "int32"))
    with pytest.raises(TypeError, match="float32 or float64"):
        tvm.get_global_func("tvm.contrib.random.uniform")(0.0, 1.0, tvm.nd.empty((2,), "int32"))
    with pytest.raises(TypeError, match="integers"):
        random.randint(0, 2, (2,), "float32")
