"""Eigenvalues of symmetric matrices and singular values, by rotations of pairs (Jacobi)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm import te, tir
from tvm.tir.ir_builder import BufferVar, IRBuilder

from ..utils import dims
from .batch import Block, identity, local, over_batch, swap_rows

_MOST_SWEEPS = 40  # each squares the error at the end; ten are usual
_PRECISION = {"float32": 2.0**-24, "float64": 2.0**-53}


def eigh(data: te.Tensor, upper: bool = False) -> list[te.Tensor]:
    """Eigenvalues of symmetric matrices in ascending order, and eigenvectors.

    Parameters
    ----------
    data : te.Tensor
        (..., n, n), of which one triangle is read.
    upper : bool
        Whether it is the upper triangle.

    Returns
    -------
    list of te.Tensor
        (..., n), and (..., n, n) with one eigenvector in each *row*; the last is working memory.
    """
    size, dtype = dims(data.shape)[-1], data.dtype

    def kernel(ib: IRBuilder, a: Block, values: Block, vectors: Block, work: Block) -> None:
        with ib.for_range(0, size, "i") as i, ib.for_range(0, size, "j") as j:
            low, high = tir.min(i, j), tir.max(i, j)
            work[i, j] = a[low, high] if upper else a[high, low]
        identity(ib, vectors, size, size, dtype)
        limit = local(ib, dtype, 0.0, "limit")
        with ib.for_range(0, size, "i") as i, ib.for_range(0, size, "j") as j:
            limit[0] = limit[0] + work[i, j] * work[i, j]
        limit[0] = tir.sqrt(limit[0]) * tir.const(_PRECISION[dtype] / 16, dtype)

        def turn(p: Any, q: Any, moved: BufferVar) -> None:
            inner = ib.let("inner", work[p, q])
            with ib.if_scope(tir.abs(inner) > limit[0]):
                moved[0] = 1
                cosine, sine = _rotation(ib, work[p, p], work[q, q], inner, dtype)
                with ib.for_range(0, size, "k") as k:
                    _rotate(ib, work, (k, p), (k, q), cosine, sine)
                with ib.for_range(0, size, "k") as k:
                    _rotate(ib, work, (p, k), (q, k), cosine, sine)
                with ib.for_range(0, size, "k") as k:
                    _rotate(ib, vectors, (p, k), (q, k), cosine, sine)

        _sweep(ib, size, turn)
        with ib.for_range(0, size, "i") as i:
            values[i] = work[i, i]
        _sort(ib, values, size, [(vectors, size)], lambda a, b: a < b)

    return over_batch(
        kernel, [data], [(size,), (size, size), (size, size)], [dtype] * 3, "eigh"
    )  # fmt: skip


def svd(data: te.Tensor) -> list[te.Tensor]:
    """Singular values and vectors of matrices of at most as many rows as columns.

    Parameters
    ----------
    data : te.Tensor
        (..., m, n), m <= n.

    Returns
    -------
    list of te.Tensor
        The values in descending order (..., m); a left vector in each *row* (..., m, m); a right
        vector in each row (..., m, n). The vectors are orthonormal, those of values of zero too.
    """
    rows, columns = dims(data.shape)[-2:]
    dtype = data.dtype

    def kernel(ib: IRBuilder, a: Block, values: Block, left: Block, right: Block) -> None:
        with ib.for_range(0, rows, "i") as i, ib.for_range(0, columns, "j") as j:
            right[i, j] = a[i, j]
        identity(ib, left, rows, rows, dtype)
        sums = ib.allocate(dtype, 3, "sums", scope="local")
        zero = tir.const(0, dtype)

        def turn(p: Any, q: Any, moved: BufferVar) -> None:
            for position in range(3):
                sums[position] = zero
            with ib.for_range(0, columns, "k") as k:
                sums[0] = sums[0] + right[p, k] * right[p, k]
                sums[1] = sums[1] + right[q, k] * right[q, k]
                sums[2] = sums[2] + right[p, k] * right[q, k]
            bound = tir.sqrt(sums[0]) * tir.sqrt(sums[1]) * tir.const(_PRECISION[dtype] * 4, dtype)
            with ib.if_scope(tir.abs(sums[2]) > bound):
                moved[0] = 1
                cosine, sine = _rotation(ib, sums[0], sums[1], sums[2], dtype)
                with ib.for_range(0, columns, "k") as k:
                    _rotate(ib, right, (p, k), (q, k), cosine, sine)
                with ib.for_range(0, rows, "k") as k:
                    _rotate(ib, left, (p, k), (q, k), cosine, sine)

        _sweep(ib, rows, turn)
        with ib.for_range(0, rows, "i") as i:
            sums[0] = zero
            with ib.for_range(0, columns, "k") as k:
                sums[0] = sums[0] + right[i, k] * right[i, k]
            values[i] = tir.sqrt(sums[0])
            with ib.if_scope(values[i] > zero), ib.for_range(0, columns, "k") as k:
                right[i, k] = right[i, k] / values[i]
        _sort(ib, values, rows, [(left, rows), (right, columns)], lambda a, b: a > b)
        _complete(ib, values, right, rows, columns, dtype)

    return over_batch(
        kernel, [data], [(rows,), (rows, rows), (rows, columns)], [dtype] * 3, "svd"
    )  # fmt: skip


def _complete(
    ib: IRBuilder, values: Block, vectors: Block, rows: Any, columns: Any, dtype: str
) -> None:
    """Vectors for values that are nothing beside the first, orthogonal to all before them."""
    zero, one = tir.const(0, dtype), tir.const(1, dtype)
    largest, rest = local(ib, dtype, 0, "largest"), local(ib, dtype, 0, "rest")
    best = local(ib, "int32", 0, "axis")
    bound = tir.const(_PRECISION[dtype] * 4, dtype)
    with ib.for_range(0, rows, "i") as i, ib.if_scope(values[i] <= values[0] * bound):
        # the axis that the vectors so far span least
        largest[0] = zero
        with ib.for_range(0, columns, "c") as c:
            rest[0] = one
            with ib.for_range(0, i, "l") as before:
                rest[0] = rest[0] - vectors[before, c] * vectors[before, c]
            with ib.if_scope(rest[0] > largest[0]):
                largest[0] = rest[0]
                best[0] = c.astype("int32")
        with ib.for_range(0, columns, "c") as c:
            vectors[i, c] = tir.Select(tir.EQ(c.astype("int32"), best[0]), one, zero)
        # once more, for what rounding left
        with ib.for_range(0, 2, "again"), ib.for_range(0, i, "l") as before:
            rest[0] = zero
            with ib.for_range(0, columns, "k") as k:
                rest[0] = rest[0] + vectors[before, k] * vectors[i, k]
            with ib.for_range(0, columns, "k") as k:
                vectors[i, k] = vectors[i, k] - rest[0] * vectors[before, k]
        rest[0] = zero
        with ib.for_range(0, columns, "k") as k:
            rest[0] = rest[0] + vectors[i, k] * vectors[i, k]
        with ib.for_range(0, columns, "k") as k:
            vectors[i, k] = vectors[i, k] / tir.sqrt(rest[0])


def _rotation(ib: IRBuilder, first: Any, second: Any, inner: Any, dtype: str) -> tuple[Any, Any]:
    """Cosine and sine of the angle that makes the inner product of a pair zero."""
    one, zero = tir.const(1, dtype), tir.const(0, dtype)
    slope = ib.let("slope", (second - first) / (inner * tir.const(2, dtype)))
    size = ib.let("size", one / (tir.abs(slope) + tir.sqrt(slope * slope + one)))
    tangent = ib.let("tangent", tir.Select(slope < zero, zero - size, size))
    cosine = ib.let("cosine", one / tir.sqrt(tangent * tangent + one))
    return cosine, ib.let("sine", tangent * cosine)


def _rotate(ib: IRBuilder, matrix: Block, a: Any, b: Any, cosine: Any, sine: Any) -> None:
    x, y = ib.let("x", matrix[a]), ib.let("y", matrix[b])
    matrix[a] = cosine * x - sine * y
    matrix[b] = sine * x + cosine * y


def _sweep(ib: IRBuilder, size: Any, turn: Callable[[Any, Any, BufferVar], None]) -> None:
    """Turn all pairs, again and again until none needs it."""
    moved = local(ib, "int32", 1, "moved")
    count = local(ib, "int32", 0, "count")
    with ib.while_loop(tir.all(moved[0] > 0, count[0] < _MOST_SWEEPS)):
        moved[0] = 0
        count[0] = count[0] + 1
        with ib.for_range(0, size - 1, "p") as p, ib.for_range(p + 1, size, "q") as q:
            turn(p, q, moved)


def _sort(
    ib: IRBuilder, values: Block, size: Any, matrices: list[tuple[Block, Any]],
    comes_first: Callable[[Any, Any], Any],
) -> None:  # fmt: skip
    """Bring values into order, and the rows of matrices with them."""
    best = local(ib, "int32", 0, "best")
    with ib.for_range(0, size - 1, "i") as i:
        best[0] = i.astype("int32")
        with ib.for_range(i + 1, size, "j") as j:
            is_better = comes_first(values[j], values[best[0]])
            best[0] = tir.Select(is_better, j.astype("int32"), best[0])
        with ib.if_scope(tir.NE(best[0], i)):
            other = ib.let("other", best[0])
            held = ib.let("held", values[i])
            values[i] = values[other]
            values[other] = held
            for matrix, columns in matrices:
                swap_rows(ib, matrix, i, other, columns)
