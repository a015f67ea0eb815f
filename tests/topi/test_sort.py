"""The greatest elements of rows, by the runtime's own code."""

from __future__ import annotations

import numpy as np
import pytest

import tvm


@pytest.mark.parametrize("is_ascend", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float16", "float64", "int64", "int8", "uint8"])
@pytest.mark.parametrize("count", [1, 5, 17, 40, 700, 1000])
def test_the_best_of_rows_with_ties_and_nan(count: int, dtype: str, is_ascend: bool) -> None:
    rng = np.random.default_rng(count)
    least = 0 if dtype == "uint8" else -60
    data = rng.integers(least, least + 120, (6, 1000)).astype(dtype)
    if dtype.startswith("float"):
        data[rng.random(data.shape) < 0.01] = np.nan
        data[0, :50] = np.nan
        data[1, 7], data[1, 11] = np.inf, -np.inf
        data[4, :3] = 0.0, -0.0, -np.nan
    data[2] = np.sort(data[2])
    data[3] = np.sort(data[3])[::-1]
    order = _order(data, is_ascend)[:, :count]
    values, indices = _topk(data, count, 1, is_ascend)
    np.testing.assert_array_equal(indices, order)
    np.testing.assert_array_equal(values, np.take_along_axis(data, order, 1))


@pytest.mark.parametrize("inner", [5, 19])
@pytest.mark.parametrize("count", [2, 20, 150])
def test_the_best_along_an_axis_that_is_not_the_last(count: int, inner: int) -> None:
    data = np.random.default_rng(0).random((3, 150, inner)).astype("float32")
    values, indices = _topk(data, count, 1, False)
    order = np.argsort(-data, 1, kind="stable")[:, :count]
    np.testing.assert_array_equal(indices, order)
    np.testing.assert_array_equal(values, np.take_along_axis(data, order, 1))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "uint64"])
def test_long_rows_are_sorted_by_digits(dtype: str) -> None:
    data = (np.random.default_rng(0).standard_normal((2, 5000)) * 1e9).astype(dtype)
    data[1] = data[1, 0]
    values = tvm.nd.empty(data.shape, dtype)
    tvm.get_global_func("tvm.contrib.sort.sort")(tvm.nd.array(data), values, 1, True)
    np.testing.assert_array_equal(values.numpy(), np.sort(data, 1))


def _order(data: np.ndarray, is_ascend: bool) -> np.ndarray:
    """Stable, NaN as the greatest of all."""
    if not np.issubdtype(data.dtype, np.floating):
        return np.argsort(data if is_ascend else -data.astype("int64"), 1, kind="stable")
    key = np.where(np.isnan(data), np.inf, data.astype("float64"))
    key = np.where((key == np.inf) & ~np.isnan(data), 1e300, key)
    return np.argsort(key if is_ascend else -key, 1, kind="stable")


def _topk(data: np.ndarray, count: int, axis: int, is_ascend: bool) -> list[np.ndarray]:
    shape = list(data.shape)
    shape[axis] = count
    outputs = [tvm.nd.empty(shape, data.dtype), tvm.nd.empty(shape, "int64")]
    topk = tvm.get_global_func("tvm.contrib.sort.topk")
    topk(tvm.nd.array(data), *outputs, count, axis, "both", is_ascend)
    return [x.numpy() for x in outputs]
