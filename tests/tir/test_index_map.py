"""Index maps."""

from __future__ import annotations

import numpy as np
import pytest

from tvm import tir
from tvm.arith import Analyzer
from tvm.tir import IndexMap
from tvm.tir.stmt_functor import substitute

simplify = Analyzer().simplify


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


@pytest.mark.parametrize(
    ("mapping", "shape"),
    [
        (lambda i, j: [j, i], (4, 6)),
        (pack, (2, 16, 3, 3)),
        (lambda i, j: [i * 6 + j], (4, 6)),
        (lambda i: [i // 8, i % 8 // 2, i % 2], (32,)),
        (lambda i, j: [(i * 8 + j) // 4, (i * 8 + j) % 4], (4, 8)),
        (lambda i, j: [i, 0, j], (4, 5)),
        (lambda i, j: [i // 2, j // 4, i % 2 * 4 + j % 4], (4, 8)),
    ],
)
def test_inverse(mapping, shape) -> None:
    index_map = IndexMap.from_func(mapping, index_dtype="int32")
    back = index_map.inverse(shape)
    source = np.arange(int(np.prod(shape))).reshape(shape)
    np.testing.assert_array_equal(back.map_ndarray(index_map.map_ndarray(source)), source)


def test_inverse_with_padding() -> None:
    index_map = IndexMap.from_func(lambda i: [i // 4, i % 4], index_dtype="int32")
    back, padding = index_map.non_surjective_inverse([10])
    assert str(back.final_indices[0]) == "axis0 * 4 + axis1"
    assert str(padding) == "axis0 == 2 and 2 <= axis1"
    with pytest.raises(ValueError, match="hint: non_surjective_inverse allows padding"):
        index_map.inverse([10])


@pytest.mark.parametrize(
    ("mapping", "shape", "text"),
    [
        (lambda i: [(i + 2) // 8, (i + 2) % 8], [14], "axis0 == 0 and axis1 < 2"),
        (lambda i: [i // 8, i % 8], [23], "axis0 == 2 and axis1 == 7"),
        (
            lambda i: [i % 6, (i + 12) // 6],
            [20],
            "axis1 == 5 and 2 <= axis0",
        ),
        (lambda c, n: [n, c // 4, c % 4], [3, 2], "axis2 == 3"),
    ],
)
def test_padding_is_told_by_index(mapping, shape, text) -> None:
    index_map = IndexMap.from_func(mapping, index_dtype="int32")
    back, padding = index_map.non_surjective_inverse(shape)
    assert str(padding) == text
    covered = index_map.map_range([tir.Range(0, extent) for extent in shape])
    filled = {
        tuple([int(simplify(i)) for i in index_map.map_indices(list(place))])
        for place in np.ndindex(*shape)
    }
    for place in np.ndindex(*[int(r.extent) for r in covered]):
        values = [int(r.min) + at for r, at in zip(covered, place, strict=True)]
        stands = substitute(padding, dict(zip(back.initial_indices, values, strict=True)))
        assert bool(simplify(stands)) == (tuple(values) not in filled)


@pytest.mark.parametrize(
    "mapping", [lambda i, j: [i], lambda i, j: [i + j], lambda i, j: [i, j // 2]]
)
def test_maps_that_lose_information_have_no_inverse(mapping) -> None:
    with pytest.raises(ValueError, match="an inverse requires"):
        IndexMap.from_func(mapping).inverse([4, 4])


def test_parameters_behind_args_are_the_last_indices() -> None:
    index_map = IndexMap.from_func(lambda *outer, n: [*outer, n // 4, n % 4], ndim=3)
    assert [var.name for var in index_map.initial_indices] == ["outer_0", "outer_1", "n"]
    assert [int(extent) for extent in index_map.map_shape([2, 3, 8])] == [2, 3, 2, 4]
    with pytest.raises(ValueError, match=r"requires parameters for its indices, got \*\*rest"):
        IndexMap.from_func(lambda **rest: [], ndim=1)


def test_maps_that_bring_elements_together_have_no_way_back() -> None:
    index_map = IndexMap.from_func(lambda i, j: [i // 2, j])
    assert not index_map.is_injective([8, 6])
    with pytest.raises(ValueError, match="requires a place of its own for each element"):
        index_map.non_surjective_inverse([8, 6])
