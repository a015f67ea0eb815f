"""Index maps."""

from __future__ import annotations

import numpy as np
import pytest

from tvm import tir
from tvm.tir import IndexMap


def pack(n, c, h, w):
    return [n, c // 4, h, w, c % 4]


def test_map_indices_and_shape() -> None:
    index_map = IndexMap.from_func(pack, index_dtype="int32")
    v = [tir.Var(name, "int32") for name in "nchw"]
    assert [str(e) for e in index_map.map_indices(v)] == ["n", "c // 4", "h", "w", "c % 4"]
    assert [int(e) for e in index_map.map_shape([1, 10, 5, 5])] == [1, 3, 5, 5, 4]


def test_map_ndarray() -> None:
    index_map = IndexMap.from_func(lambda i, j: [j, i])
    source = np.arange(6).reshape(2, 3)
    np.testing.assert_array_equal(index_map.map_ndarray(source), source.T)


def test_variadic_functions() -> None:
    index_map = IndexMap.from_func(lambda i, *rest: [*rest, i], ndim=3)
    assert len(index_map.initial_indices) == 3
    with pytest.raises(ValueError, match=r"an index map of \*args requires ndim"):
        IndexMap.from_func(lambda *rest: rest)
    with pytest.raises(ValueError, match="2 dimensions is required, got 1"):
        IndexMap.from_func(lambda i: [i], ndim=2)


def test_separators() -> None:
    def mapping(i, j):
        return [i, IndexMap.AXIS_SEPARATOR, j]

    _, separators = IndexMap.from_func_with_separators(mapping)
    assert separators == [1]
    with pytest.raises(ValueError, match="without axis separators"):
        IndexMap.from_func(mapping)


def test_equivalence() -> None:
    first = IndexMap.from_func(lambda i, j: [j, i])
    assert first.is_equivalent_to(IndexMap.from_func(lambda x, y: [y, x]))
    assert not first.is_equivalent_to(IndexMap.from_func(lambda x, y: [x, y]))
    assert not first.is_equivalent_to(IndexMap.from_func(lambda x: [x]))
