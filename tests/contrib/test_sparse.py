"""Sparse matrices in memory and in expressions."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import te, topi
from tvm.contrib import sparse

RNG = np.random.default_rng(0)
DENSE = RNG.uniform(-1, 1, (5, 7)).astype("float32") * (RNG.uniform(0, 1, (5, 7)) < 0.3)


def test_a_dense_matrix_goes_in_and_out() -> None:
    matrix = sparse.array(DENSE, tvm.cpu())
    assert matrix.shape == (5, 7)
    assert matrix.dtype == "float32"
    assert matrix.data.shape == (np.count_nonzero(DENSE),)
    np.testing.assert_array_equal(matrix.numpy(), DENSE)
    np.testing.assert_array_equal(matrix.asnumpy(), DENSE)


def test_three_arrays_make_a_matrix() -> None:
    parts = (np.array([1.0, 2.0], "float32"), np.array([2, 0]), np.array([0, 1, 2]))
    matrix = sparse.CSRNDArray(parts, shape=(2, 3))
    np.testing.assert_array_equal(matrix.numpy(), [[0, 0, 1], [2, 0, 0]])


def test_a_product_with_a_dense_matrix() -> None:
    a = sparse.placeholder((5, 7), name="a")
    b = te.placeholder((7, 4), name="b")
    c = topi.sparse.csrmm(a, b)
    func = tvm.build(te.create_schedule(c.op), [a.data, a.indices, a.indptr, b, c], "llvm")
    matrix, other = sparse.array(DENSE), RNG.uniform(-1, 1, (7, 4)).astype("float32")
    out = tvm.nd.empty((5, 4))
    func(matrix.data, matrix.indices, matrix.indptr, tvm.nd.array(other), out)
    np.testing.assert_allclose(out.numpy(), DENSE @ other, rtol=1e-5, atol=1e-6)


def test_other_forms_are_rejected() -> None:
    with pytest.raises(NotImplementedError, match="stored as csr"):
        sparse.array(DENSE, stype="coo")
    with pytest.raises(ValueError, match="2 dimensions"):
        sparse.array(np.zeros(3))
    with pytest.raises(ValueError, match="indptr"):
        sparse.CSRNDArray((1, 2))
