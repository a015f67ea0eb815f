"""Linear algebra by LU factors, for both importers."""

from __future__ import annotations

import numpy as np

from tvm.ir.expr import RelayExpr
from tvm.relay import op as _op
from tvm.relay.frontend.common import constant, infer_dtype, infer_shape, scalar_like
from tvm.relay.frontend.matmul import matmul, swap_last


def together(a: RelayExpr, b: RelayExpr) -> tuple[RelayExpr, RelayExpr]:
    """Two batches of matrices broadcast to one batch."""
    shapes = [infer_shape(x) for x in (a, b)]
    if shapes[0][:-2] == shapes[1][:-2]:
        return a, b
    batch = np.broadcast_shapes(*[shape[:-2] for shape in shapes])
    first, second = [(*batch, *shape[-2:]) for shape in shapes]
    return _op.broadcast_to(a, first), _op.broadcast_to(b, second)


def eye(rows: int, columns: int, dtype: str) -> RelayExpr:
    """Ones on the diagonal."""
    return constant(np.eye(rows, columns), dtype)


def diagonals(x: RelayExpr) -> RelayExpr:
    """The diagonals of matrices."""
    *batch, rows, columns = infer_shape(x)
    if not min(rows, columns):
        return constant(np.empty((*batch, 0)), infer_dtype(x))
    positions = np.arange(min(rows, columns)) * (columns + 1)
    flat = _op.reshape(x, (*[0] * len(batch), rows * columns))
    return _op.take(flat, constant(positions, "int64"), -1)


def solve_triangular(
    matrix: RelayExpr, values: RelayExpr, upper: bool, unit: bool = False
) -> RelayExpr:
    """The solution of a triangular system; with ``unit``, of ones on the diagonal."""
    a, b = together(matrix, values)
    return _op.linalg.solve_triangular(a, b, upper, unit)


def permutation_matrix(pivots: RelayExpr, rows: int, dtype: str) -> RelayExpr:
    """The matrix P of ``P @ L @ U``."""
    order = _op.linalg.pivots_to_permutation(_op.expand_dims(pivots, -2), rows)
    numbers = constant(np.arange(rows)[:, None], "int32")
    return _op.cast(_op.equal(numbers, _op.expand_dims(order, -2)), dtype)


def lu_solve(
    factors: RelayExpr, pivots: RelayExpr, values: RelayExpr, adjoint: bool = False
) -> RelayExpr:
    """The solution of a system, or of its adjoint, by factors of its matrix."""
    exchange = permutation_matrix(pivots, infer_shape(factors)[-1], infer_dtype(factors))
    if not adjoint:
        inner = matmul(*together(swap_last(exchange), values))
        inner = solve_triangular(factors, inner, False, unit=True)
        return solve_triangular(factors, inner, True)
    transposed = swap_last(factors)
    inner = solve_triangular(transposed, values, False)
    return matmul(*together(exchange, solve_triangular(transposed, inner, True, unit=True)))


def sign_of_permutation(pivots: RelayExpr, dtype: str) -> RelayExpr:
    """The determinant of the exchanges."""
    positions = constant(np.arange(1, infer_shape(pivots)[-1] + 1), "int32")
    moved = _op.sum(_op.cast(_op.not_equal(pivots, positions), "int32"), axis=[-1])
    odd = _op.cast(_op.mod(moved, constant(2, "int32")), dtype)
    return scalar_like(1.0, odd) - scalar_like(2.0, odd) * odd


def determinant(factors: RelayExpr, pivots: RelayExpr) -> RelayExpr:
    """The determinants of factored matrices."""
    product = _op.prod(diagonals(factors), axis=[-1])
    return product * sign_of_permutation(pivots, infer_dtype(factors))


def inverse(x: RelayExpr) -> RelayExpr:
    """The inverses of matrices."""
    factors, pivots, _ = _op.linalg.lu_factor(x)
    size = infer_shape(x)[-1]
    return lu_solve(factors, pivots, eye(size, size, infer_dtype(x)))
