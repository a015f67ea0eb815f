"""Factors of matrices: LU with rows exchanged, Cholesky; systems with triangular matrices."""

from __future__ import annotations

from typing import Any

from tvm import te, tir
from tvm.tir.ir_builder import IRBuilder

from ..utils import dims, equals
from .batch import Block, copy, local, over_batch, swap_rows


def lu_factor(data: te.Tensor) -> list[te.Tensor]:
    """Lower and upper factor of matrices whose rows are exchanged for the largest pivots.

    Parameters
    ----------
    data : te.Tensor
        (..., m, n).

    Returns
    -------
    list of te.Tensor
        Both factors in one matrix, the ones of the lower one left out; for each column the row,
        counted from 1, that was exchanged with; the first pivot that is zero, counted from 1, or 0.
    """
    rows, columns = dims(data.shape)[-2:]
    count = tir.min(rows, columns)

    def kernel(ib: IRBuilder, a: Block, lu: Block, pivots: Block, info: Block) -> None:
        copy(ib, a, lu, rows, columns)
        info[0] = tir.const(0, "int32")
        with ib.for_range(0, count, "k") as k:
            best = _pivot(ib, lu, k, rows, data.dtype)
            pivots[k] = best + 1
            with ib.if_scope(tir.NE(best, k)):
                swap_rows(ib, lu, k, best, columns)
            with ib.if_scope(tir.NE(lu[k, k], tir.const(0, data.dtype))):
                _eliminate(ib, lu, k, rows, columns)
            with ib.else_scope(), ib.if_scope(equals(info[0], 0)):
                info[0] = (k + 1).astype("int32")

    return over_batch(
        kernel, [data], [(rows, columns), (count,), (1,)], [data.dtype, "int32", "int32"], "lu_factor"
    )  # fmt: skip


def _pivot(ib: IRBuilder, matrix: Block, k: Any, rows: Any, dtype: str) -> Any:
    """The row, from ``k`` on, of the largest element of a column."""
    best = local(ib, "int32", 0, "best")
    largest = local(ib, dtype, 0.0, "largest")
    best[0] = k.astype("int32")
    largest[0] = tir.abs(matrix[k, k])
    with ib.for_range(k + 1, rows, "i") as i, ib.if_scope(tir.abs(matrix[i, k]) > largest[0]):
        best[0] = i.astype("int32")
        largest[0] = tir.abs(matrix[i, k])
    return ib.let("row", best[0])


def _eliminate(ib: IRBuilder, matrix: Block, k: Any, rows: Any, columns: Any) -> None:
    """Subtract a row from those below it, so that nothing is left in its column."""
    with ib.for_range(k + 1, rows, "i") as i:
        matrix[i, k] = matrix[i, k] / matrix[k, k]
        with ib.for_range(k + 1, columns, "j") as j:
            matrix[i, j] = matrix[i, j] - matrix[i, k] * matrix[k, j]


def cholesky(data: te.Tensor) -> list[te.Tensor]:
    """The lower triangular matrix whose product with its transpose is a positive definite one.

    Parameters
    ----------
    data : te.Tensor
        (..., n, n); the upper triangle is not read.

    Returns
    -------
    list of te.Tensor
        The factor, and the order of the first leading minor that is not positive, or 0.
    """
    size = dims(data.shape)[-1]

    def kernel(ib: IRBuilder, a: Block, factor: Block, info: Block) -> None:
        zero = tir.const(0, data.dtype)
        info[0] = tir.const(0, "int32")
        total = local(ib, data.dtype, 0.0, "total")
        with ib.for_range(0, size, "i") as i, ib.for_range(0, size, "j") as j:
            factor[i, j] = zero
        with ib.for_range(0, size, "i") as i, ib.for_range(0, i + 1, "j") as j:
            total[0] = a[i, j]
            with ib.for_range(0, j, "k") as k:
                total[0] = total[0] - factor[i, k] * factor[j, k]
            with ib.if_scope(tir.EQ(i, j)):
                bad = tir.all(tir.Not(total[0] > zero), equals(info[0], 0))
                with ib.if_scope(bad):
                    info[0] = (i + 1).astype("int32")
                factor[i, j] = tir.sqrt(total[0])
            with ib.else_scope():
                factor[i, j] = total[0] / factor[j, j]

    return over_batch(
        kernel, [data], [(size, size), (1,)], [data.dtype, "int32"], "cholesky"
    )  # fmt: skip


def solve_triangular(
    matrix: te.Tensor, values: te.Tensor, upper: bool = False, unit: bool = False
) -> te.Tensor:
    """Solve ``matrix @ x = values`` for a triangular matrix.

    Parameters
    ----------
    matrix : te.Tensor
        (..., n, n), of which one triangle is read.
    values : te.Tensor
        (..., n, k).
    upper : bool
        Whether it is the upper triangle.
    unit : bool
        Whether the diagonal is ones, whatever the matrix holds there.
    """
    size, columns = dims(values.shape)[-2:]

    def kernel(ib: IRBuilder, a: Block, b: Block, x: Block) -> None:
        copy(ib, b, x, size, columns)
        with ib.for_range(0, size, "step") as step:
            i = ib.let("i", size - 1 - step if upper else step)
            begin, end = (i + 1, size) if upper else (0, i)
            with ib.for_range(begin, end, "k") as k, ib.for_range(0, columns, "j") as j:
                x[i, j] = x[i, j] - a[i, k] * x[k, j]
            if not unit:
                with ib.for_range(0, columns, "j") as j:
                    x[i, j] = x[i, j] / a[i, i]

    return over_batch(
        kernel, [matrix, values], [(size, columns)], [values.dtype], "solve_triangular"
    )[0]  # fmt: skip


def pivots_to_permutation(pivots: te.Tensor, rows: int) -> te.Tensor:
    """The order of rows after the exchanges of `lu_factor`.

    Parameters
    ----------
    pivots : te.Tensor
        (..., 1, k), counted from 1.
    rows : int
        How many rows there are.
    """
    count = dims(pivots.shape)[-1]

    def kernel(ib: IRBuilder, given: Block, order: Block) -> None:
        with ib.for_range(0, rows, "i") as i:
            order[i] = i.astype("int32")
        with ib.for_range(0, count, "k") as k:
            other = ib.let("other", given[0, k] - 1)
            held = ib.let("held", order[k])
            order[k] = order[other]
            order[other] = held

    return over_batch(kernel, [pivots], [(rows,)], ["int32"], "pivots_to_permutation")[0]
