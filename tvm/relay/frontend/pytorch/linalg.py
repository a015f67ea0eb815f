"""PyTorch's linear algebra: the operators that all others of ``torch.linalg`` are written in."""

from __future__ import annotations

from typing import Any

import numpy as np

from tvm.error import OpAttributeUnImplemented
from tvm.ir.expr import RelayExpr
from tvm.relay import op as _op
from tvm.relay.frontend.common import constant, infer_dtype, infer_shape, scalar_like
from tvm.relay.frontend.linalg import (
    determinant,
    diagonals,
    eye,
    lu_solve,
    permutation_matrix,
    sign_of_permutation,
    solve_triangular,
    together,
)
from tvm.relay.frontend.matmul import matmul, swap_last

from .products import matrix_product
from .registry import as_dtype, as_number, is_tensor, torch_op, torch_ops


def _triangle(x: RelayExpr, upper: bool, k: int = 0) -> RelayExpr:
    return _op.trilu(x, constant(k, "int64"), upper)


def _info(found: RelayExpr) -> RelayExpr:
    return _op.squeeze(found, [-1])


# ---- LU


@torch_op("linalg_lu_factor_ex", "_lu_with_info")
def _lu_factor_ex(x: RelayExpr, pivot: bool = True, check: bool = False) -> list[RelayExpr]:
    if not pivot:
        raise OpAttributeUnImplemented("an LU factorisation requires pivot=True on the CPU")
    factors, pivots, info = _op.linalg.lu_factor(x)
    return [factors, pivots, _info(info)]


@torch_op("lu_unpack")
def _lu_unpack(
    factors: RelayExpr, pivots: RelayExpr, with_data: bool = True, with_pivots: bool = True
) -> list[RelayExpr]:
    *_, rows, columns = infer_shape(factors)
    dtype, count = infer_dtype(factors), min(rows, columns)
    nothing = constant(np.empty(0), dtype)
    permutation = permutation_matrix(pivots, rows, dtype) if with_pivots else nothing
    if not with_data:
        return [permutation, nothing, nothing]
    tall = _op.strided_slice(factors, [0], [count], [1], [-1])
    wide = _op.strided_slice(factors, [0], [count], [1], [-2])
    lower = _triangle(tall, False, -1) + eye(rows, count, dtype)
    return [permutation, lower, _triangle(wide, True)]


@torch_op("linalg_lu")
def _lu(x: RelayExpr, pivot: bool = True) -> list[RelayExpr]:
    factors, pivots, _ = _lu_factor_ex(x, pivot)
    return _lu_unpack(factors, pivots)


@torch_op("linalg_lu_solve")
def _linalg_lu_solve(
    factors: RelayExpr, pivots: RelayExpr, values: RelayExpr, left: bool = True,
    adjoint: bool = False,
) -> RelayExpr:  # fmt: skip
    if not left:  # X A = B is A^T X^T = B^T
        transposed = _linalg_lu_solve(factors, pivots, swap_last(values), True, not adjoint)
        return swap_last(transposed)
    return lu_solve(factors, pivots, values, adjoint)


@torch_op("_linalg_solve_ex")
def _solve_ex(
    matrix: RelayExpr, values: RelayExpr, left: bool = True, check: bool = False
) -> list[RelayExpr]:
    shape = infer_shape(matrix)
    is_vector = len(infer_shape(values)) == 1 or (
        len(infer_shape(values)) == len(shape) - 1 and infer_shape(values) == shape[:-1]
    )
    given = _op.expand_dims(values, -1) if is_vector else values
    factors, pivots, info = _lu_factor_ex(matrix)
    solution = _linalg_lu_solve(factors, pivots, given, left or is_vector)
    return [_op.squeeze(solution, [-1]) if is_vector else solution, factors, pivots, info]


@torch_op("linalg_inv_ex")
def _inv_ex(x: RelayExpr, check: bool = False) -> list[RelayExpr]:
    factors, pivots, info = _lu_factor_ex(x)
    size = infer_shape(x)[-1]
    return [_linalg_lu_solve(factors, pivots, eye(size, size, infer_dtype(x))), info]


@torch_op("_linalg_det")
def _det(x: RelayExpr) -> list[RelayExpr]:
    factors, pivots, _ = _lu_factor_ex(x)
    return [determinant(factors, pivots), factors, pivots]


@torch_op("_linalg_slogdet")
def _slogdet(x: RelayExpr) -> list[RelayExpr]:
    factors, pivots, _ = _lu_factor_ex(x)
    diagonal = diagonals(factors)
    sign = _op.prod(_op.sign(diagonal), axis=[-1]) * sign_of_permutation(pivots, infer_dtype(x))
    size = _op.sum(_op.log(_op.abs(diagonal)), axis=[-1])
    return [sign, size, factors, pivots]


@torch_op("_linalg_check_errors")
def _check_errors(*_: Any) -> None:
    """Singular matrices give infinities; nothing is raised while a model runs."""


# ---- Cholesky and triangular matrices


@torch_op("linalg_cholesky_ex")
def _cholesky_ex(x: RelayExpr, upper: bool = False, check: bool = False) -> list[RelayExpr]:
    factor, info = _op.linalg.cholesky(swap_last(x) if upper else x)
    return [swap_last(factor) if upper else factor, _info(info)]


@torch_op("cholesky_solve")
def _cholesky_solve(values: RelayExpr, factor: RelayExpr, upper: bool = False) -> RelayExpr:
    lower = swap_last(factor) if upper else factor
    inner = solve_triangular(lower, values, False)
    return solve_triangular(swap_last(lower), inner, True)


@torch_op("cholesky_inverse")
def _cholesky_inverse(factor: RelayExpr, upper: bool = False) -> RelayExpr:
    size = infer_shape(factor)[-1]
    return _cholesky_solve(eye(size, size, infer_dtype(factor)), factor, upper)


@torch_op("linalg_solve_triangular")
def _linalg_solve_triangular(
    matrix: RelayExpr, values: RelayExpr, upper: bool, left: bool = True, unit: bool = False
) -> RelayExpr:
    if left:
        return solve_triangular(matrix, values, upper, unit)
    transposed = solve_triangular(swap_last(matrix), swap_last(values), not upper, unit)
    return swap_last(transposed)


@torch_op("triangular_solve")
def _triangular_solve(
    values: RelayExpr, matrix: RelayExpr, upper: bool = True, transpose: bool = False,
    unit: bool = False,
) -> list[RelayExpr]:  # fmt: skip
    a, b = together(matrix, values)
    given = swap_last(a) if transpose else a
    return [_op.linalg.solve_triangular(given, b, upper != transpose, unit), a]


# ---- orthogonal factors


@torch_op("ormqr")
def _ormqr(
    vectors: RelayExpr, factors: RelayExpr, other: RelayExpr, left: bool = True,
    transpose: bool = False,
) -> RelayExpr:  # fmt: skip
    full = _op.linalg.householder_product(vectors, factors, infer_shape(vectors)[-2])
    transposed = swap_last(full) if transpose else full
    return matmul(*(together(transposed, other) if left else together(other, transposed)))


@torch_op("linalg_qr")
def _qr(x: RelayExpr, mode: str = "reduced") -> list[RelayExpr]:
    *_, rows, columns = infer_shape(x)
    found, factors = _op.linalg.householder_qr(x)
    height = rows if mode == "complete" else min(rows, columns)
    upper = _triangle(_op.strided_slice(found, [0], [height], [1], [-2]), True)
    if mode == "r":
        return [constant(np.empty(0), infer_dtype(x)), upper]
    return [_op.linalg.householder_product(found, factors, height), upper]


@torch_op("linalg_matrix_exp", "matrix_exp")
def _matrix_exp(x: RelayExpr) -> RelayExpr:
    """Taylor's series of the matrix over 2^12 in float64, squared twelve times."""
    size, squarings = infer_shape(x)[-1], 12
    wide = _op.cast(x, "float64") * constant(2.0**-squarings, "float64")
    result = term = constant(np.eye(size), "float64")
    for k in range(1, 13):
        term = matrix_product(term, wide) * constant(1.0 / k, "float64")
        result = result + term
    for _ in range(squarings):
        result = matrix_product(result, result)
    return _op.cast(_op.broadcast_to(result, infer_shape(x)), infer_dtype(x))


# ---- eigenvalues and singular values


@torch_op("_linalg_eigh")
def _eigh(x: RelayExpr, triangle: str = "L", with_vectors: bool = True) -> list[RelayExpr]:
    values, rows = _op.linalg.eigh(x, triangle.upper() == "U")
    return [values, swap_last(rows) if with_vectors else constant(np.empty(0), infer_dtype(x))]


@torch_op("_linalg_svd")
def _svd(
    x: RelayExpr, full: bool = False, with_vectors: bool = True, driver: Any = None
) -> list[RelayExpr]:
    *_, rows, columns = infer_shape(x)
    is_tall = rows > columns
    values, square, others = _op.linalg.svd(swap_last(x) if is_tall else x)
    if not with_vectors:
        nothing = constant(np.empty(0), infer_dtype(x))
        return [nothing, values, nothing]
    completed = _completed(swap_last(others)) if full else swap_last(others)
    if is_tall:
        return [completed, values, square]
    return [swap_last(square), values, swap_last(completed)]


def _completed(columns: RelayExpr) -> RelayExpr:
    """Orthonormal columns and those that are missing of a full basis.

    The orthogonal factor of their QR factorisation is the columns themselves, up to their signs.
    """
    *batch, rows, count = infer_shape(columns)
    if not count:
        return _op.broadcast_to(eye(rows, rows, infer_dtype(columns)), (*batch, rows, rows))
    found, factors = _op.linalg.householder_qr(columns)
    basis = _op.linalg.householder_product(found, factors, rows)
    diagonal = diagonals(found)
    signs = _op.where(
        _op.less(diagonal, scalar_like(0.0, diagonal)),
        scalar_like(-1.0, diagonal), scalar_like(1.0, diagonal),
    )  # fmt: skip
    if rows > count:
        rest = constant(np.ones((*batch, rows - count)), infer_dtype(columns))
        signs = _op.concatenate([signs, rest], -1)
    return basis * _op.expand_dims(signs, -2)


@torch_op("linalg_lstsq")
def _lstsq(
    matrix: RelayExpr, values: RelayExpr, cutoff: Any = None, driver: str | None = None
) -> list[RelayExpr]:
    """The solution of the least squares, the smallest of several."""
    *batch, rows, columns = infer_shape(matrix)
    dtype, driver = infer_dtype(matrix), driver or "gelsy"
    is_vector = len(infer_shape(values)) == len(batch) + 1
    b = _op.expand_dims(values, -1) if is_vector else values
    left, sizes, right = _svd(matrix)
    share = as_number(cutoff)
    inverse = _inverses(sizes, sizes, None, share, max(rows, columns))
    counts = _op.greater(inverse, scalar_like(0.0, inverse))
    inner = matmul(*together(swap_last(left), b)) * _op.expand_dims(inverse, -1)
    solution = matmul(*together(swap_last(right), inner))
    nothing = constant(np.empty(0), dtype)
    residuals = nothing
    if rows > columns and driver != "gelsy":
        missed = matmul(*together(matrix, solution)) - b
        residuals = _op.sum(missed * missed, axis=[-2])
    ranks = _op.sum(_op.cast(counts, "int64"), axis=[-1])
    return [
        _op.squeeze(solution, [-1]) if is_vector else solution,
        _op.squeeze(residuals, [-1]) if is_vector and residuals is not nothing else residuals,
        constant(np.empty(0), "int64") if driver == "gels" else ranks,
        sizes if driver in ("gelsd", "gelss") else nothing,
    ]


# ---- pseudo-inverses


def _limit(value: Any, sizes: RelayExpr, default: float) -> RelayExpr:
    """A tolerance, one for all matrices or one for each."""
    if value is None:
        return scalar_like(default, sizes)
    if not is_tensor(value):
        return scalar_like(float(value), sizes)
    found = as_dtype(value, infer_dtype(sizes))
    return _op.expand_dims(found, -1) if infer_shape(found) else found


def _inverses(values: RelayExpr, sizes: RelayExpr, atol: Any, rtol: Any, order: int) -> RelayExpr:
    """One over the values whose sizes count, zero for the others."""
    epsilon = order * float(np.finfo(infer_dtype(sizes)).eps)
    absolute, relative = _limit(atol, sizes, 0.0), _limit(rtol, sizes, epsilon)
    zero, one = scalar_like(0.0, sizes), scalar_like(1.0, sizes)
    if rtol is None and atol is not None:
        relative = _op.where(_op.greater(absolute, zero), _op.zeros_like(absolute), relative)
    largest = _op.max(sizes, axis=[-1], keepdims=True)
    counts = _op.greater(sizes, _op.maximum(absolute, relative * largest))
    return _op.where(counts, one / values, _op.zeros_like(values))


@torch_op("linalg_pinv.atol_rtol_tensor", "linalg_pinv.atol_rtol_float")
def _pinv(x: RelayExpr, atol: Any = None, rtol: Any = None, hermitian: bool = False) -> RelayExpr:
    *batch, rows, columns = infer_shape(x)
    if not rows * columns:
        return constant(np.zeros((*batch, columns, rows)), infer_dtype(x))
    if hermitian:
        values, vectors = _eigh(x)
        inverses = _inverses(values, _op.abs(values), atol, rtol, rows)
        return matmul(vectors * _op.expand_dims(inverses, -2), swap_last(vectors))
    left, sizes, right = _svd(x)
    inverses = _inverses(sizes, sizes, atol, rtol, max(rows, columns))
    return matmul(swap_last(right) * _op.expand_dims(inverses, -2), swap_last(left))


torch_ops({
    "cholesky": lambda x, upper=False: _cholesky_ex(x, upper)[0],
    "geqrf": lambda x: list(_op.linalg.householder_qr(x)),
    "linalg_householder_product orgqr": lambda vectors, factors: _op.linalg.householder_product(
        vectors, factors, infer_shape(vectors)[-1]
    ),
})  # fmt: skip
