"""Linear algebra of batches of matrices, against numpy."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

import tvm
from tvm import te, topi

RANDOM = np.random.default_rng(0)
CLOSE = {"float32": 2e-5, "float64": 1e-12}


def run(function: Callable, *arrays: np.ndarray) -> list[np.ndarray]:
    """Build a compute and call it."""
    inputs = [te.placeholder(a.shape, str(a.dtype), name=f"x{i}") for i, a in enumerate(arrays)]
    made = function(*inputs)
    outputs = made if isinstance(made, list) else [made]
    built = tvm.build(te.create_schedule([outputs[0].op]), [*inputs, *outputs], "llvm")
    results = [tvm.nd.empty([int(d) for d in out.shape], out.dtype) for out in outputs]
    built(*[tvm.nd.array(a) for a in arrays], *results)
    return [result.numpy() for result in results]


def matrices(*shape: int, dtype: str = "float64") -> np.ndarray:
    return RANDOM.standard_normal(shape).astype(dtype)


def assert_same(actual: np.ndarray, expected: np.ndarray) -> None:
    scale = max(np.abs(expected).max(initial=0), 1.0)
    assert np.abs(actual - expected).max(initial=0) <= CLOSE[str(actual.dtype)] * scale


@pytest.mark.parametrize("dtype", CLOSE)
@pytest.mark.parametrize("shape", [(5, 5), (2, 6, 4), (3, 4, 6), (2, 1, 1)])
def test_lu_factors_give_the_rows_back_in_another_order(shape: Sequence[int], dtype: str) -> None:
    data = matrices(*shape, dtype=dtype)
    factors, pivots, info = run(topi.linalg.lu_factor, data)
    (order,) = run(lambda p: topi.linalg.pivots_to_permutation(p, shape[-2]), pivots[..., None, :])
    count = min(shape[-2:])
    lower = np.tril(factors[..., :count], -1) + np.eye(shape[-2], count)
    assert np.abs(lower).max() <= 1 and not info.any()
    expected = np.take_along_axis(data, order[..., None], -2)
    assert_same((lower @ np.triu(factors[..., :count, :])).astype(dtype), expected)


def test_singular_matrices_have_a_zero_pivot() -> None:
    data = np.array([[1.0, 2, 3], [2, 4, 6], [1, 0, 1]])
    _, _, info = run(topi.linalg.lu_factor, data)
    assert info.tolist() == [3]


def test_cholesky_factor_and_the_minor_that_is_not_positive() -> None:
    data = matrices(2, 4, 4)
    positive = data @ data.swapaxes(1, 2) + np.eye(4)
    factor, info = run(topi.linalg.cholesky, positive)
    assert_same(factor, np.linalg.cholesky(positive))
    assert info.tolist() == [[0], [0]]
    assert run(topi.linalg.cholesky, np.diag([1.0, -1.0, 1.0]))[1].tolist() == [2]


@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("unit", [False, True])
def test_triangular_systems_are_solved(upper: bool, unit: bool) -> None:
    data, values = matrices(3, 4, 4) + 3 * np.eye(4), matrices(3, 4, 2)
    (found,) = run(lambda a, b: topi.linalg.solve_triangular(a, b, upper, unit), data, values)
    matrix = np.triu(data) if upper else np.tril(data)
    if unit:
        matrix = matrix - matrix * np.eye(4) + np.eye(4)
    assert_same(matrix @ found, values)


@pytest.mark.parametrize("shape", [(4, 4), (2, 6, 3), (2, 3, 6), (1, 5)])
def test_reflections_make_an_orthogonal_and_an_upper_factor(shape: Sequence[int]) -> None:
    data = matrices(*shape)
    found, factors = run(topi.linalg.householder_qr, data)
    rows = shape[-2]
    (basis,) = run(lambda v, f: topi.linalg.householder_product(v, f, rows), found, factors)
    assert_same(basis @ np.triu(found), data)
    assert_same(basis @ basis.swapaxes(-1, -2), np.broadcast_to(np.eye(rows), basis.shape))


@pytest.mark.parametrize("dtype", CLOSE)
@pytest.mark.parametrize("upper", [False, True])
def test_symmetric_matrices_have_eigenvectors(upper: bool, dtype: str) -> None:
    data = matrices(2, 7, 7, dtype=dtype)
    values, rows, _ = run(lambda a: topi.linalg.eigh(a, upper), data)
    assert_same(values, np.linalg.eigvalsh(data, "U" if upper else "L"))
    triangle = np.triu(data) if upper else np.tril(data)
    symmetric = triangle + triangle.swapaxes(1, 2) - triangle * np.eye(7, dtype=dtype)
    assert_same(rows @ symmetric, values[..., None] * rows)
    assert_same(rows @ rows.swapaxes(1, 2), np.broadcast_to(np.eye(7), rows.shape))


@pytest.mark.parametrize("dtype", CLOSE)
@pytest.mark.parametrize("shape", [(3, 3), (2, 4, 7), (1, 6)])
def test_singular_values_and_vectors_make_up_the_matrix(shape: Sequence[int], dtype: str) -> None:
    data = matrices(*shape, dtype=dtype)
    values, left, right = run(topi.linalg.svd, data)
    assert_same(values, np.linalg.svd(data, compute_uv=False))
    assert_same(left.swapaxes(-1, -2) @ (values[..., None] * right), data)
    assert_same(left @ left.swapaxes(-1, -2), np.broadcast_to(np.eye(shape[-2]), left.shape))


def test_eigenvalues_of_scaled_and_repeated_matrices() -> None:
    for data in (np.eye(4), np.zeros((3, 3)), np.diag([1e8, 1.0, 1e-8]), np.full((3, 3), 1e-30)):
        values = run(topi.linalg.eigh, data)[0]
        expected = np.linalg.eigvalsh(data)
        assert np.abs(values - expected).max() <= 1e-14 * np.abs(expected).max()


@pytest.mark.parametrize("dtype", CLOSE)
@pytest.mark.parametrize("rank", [0, 1, 2])
def test_singular_vectors_of_values_of_zero_are_orthonormal(rank: int, dtype: str) -> None:
    data = matrices(4, rank, dtype=dtype) @ matrices(rank, 6, dtype=dtype)
    values, left, right = run(topi.linalg.svd, data)
    for vectors in (left, right):
        assert_same(vectors @ vectors.T, np.eye(4, dtype=dtype))
    assert_same(left.T @ (values[:, None] * right), data)
