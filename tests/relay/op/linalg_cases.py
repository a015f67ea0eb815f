"""Operators of linear algebra, with what numpy computes."""

from __future__ import annotations

import numpy as np

from tvm import relay

from .cases import Case

_LINALG = relay.op.linalg
_MATRIX = np.random.default_rng(0).standard_normal((2, 4, 4)).astype("float32")
_TALL = np.random.default_rng(1).standard_normal((5, 3)).astype("float32")
_POSITIVE = _MATRIX @ _MATRIX.swapaxes(1, 2) + np.eye(4, dtype="float32")


def linalg_cases() -> list[Case]:
    """One case for each operator; factors are multiplied where they have no sign of their own."""
    upper = np.triu(_MATRIX) + 4 * np.eye(4, dtype="float32")
    dominant = _MATRIX + 9 * np.eye(4, dtype="float32")  # no rows are exchanged
    raw, factors = np.linalg.qr(_TALL, "raw")
    vectors = raw.T.copy()
    pivots = np.array([[3, 2, 3]], "int32")
    return [
        Case("linalg.lu_factor", lambda x: _LINALG.lu_factor(x)[0], (dominant,), _lu),
        Case("linalg.pivots_to_permutation", lambda x: _LINALG.pivots_to_permutation(x, 4),
             (pivots,), lambda x: np.array([2, 1, 0, 3], "int32")),
        Case("linalg.cholesky", lambda x: _LINALG.cholesky(x)[0], (_POSITIVE,), np.linalg.cholesky),
        Case("linalg.solve_triangular",
             lambda a, b: _LINALG.solve_triangular(a, b, upper=True), (upper, _MATRIX),
             np.linalg.solve),
        Case("linalg.householder_qr", lambda x: _LINALG.householder_qr(x)[0], (_TALL,),
             lambda x: np.linalg.qr(x, "raw")[0].T),
        Case("linalg.householder_product", lambda v, f: _LINALG.householder_product(v, f, 5),
             (vectors, factors), lambda v, f: np.linalg.qr(_TALL, "complete")[0]),
        Case("linalg.eigh", lambda x: _LINALG.eigh(x)[0], (_POSITIVE,), np.linalg.eigvalsh),
        Case("linalg.svd", lambda x: _LINALG.svd(x)[0], (_TALL.T.copy(),),
             lambda x: np.linalg.svd(x, compute_uv=False)),
    ]  # fmt: skip


def _lu(data: np.ndarray) -> np.ndarray:
    """By elimination of the first column, then of the rest."""
    found = data.astype("float64")
    for k in range(found.shape[-1]):
        found[:, k + 1 :, k] /= found[:, k, None, k]
        outer = found[:, k + 1 :, k, None] * found[:, None, k, k + 1 :]
        found[:, k + 1 :, k + 1 :] -= outer
    return found.astype("float32")
