"""Orthogonal factors of matrices as products of reflections."""

from __future__ import annotations

from typing import Any

from tvm import te, tir
from tvm.tir.ir_builder import IRBuilder

from ..utils import dims
from .batch import Block, copy, identity, local, over_batch


def householder_qr(data: te.Tensor) -> list[te.Tensor]:
    """The upper factor of matrices, and reflections whose product is the orthogonal one.

    Parameters
    ----------
    data : te.Tensor
        (..., m, n).

    Returns
    -------
    list of te.Tensor
        R, below its diagonal the vectors of the reflections, whose first element is one; and
        factors: reflection k is ``I - factor[k] * v[k] * v[k]^T``.
    """
    rows, columns = dims(data.shape)[-2:]
    count = tir.min(rows, columns)

    def kernel(ib: IRBuilder, a: Block, r: Block, factors: Block) -> None:
        copy(ib, a, r, rows, columns)
        total = local(ib, data.dtype, 0.0, "total")
        zero = tir.const(0, data.dtype)
        with ib.for_range(0, count, "k") as k:
            total[0] = zero
            with ib.for_range(k + 1, rows, "i") as i:
                total[0] = total[0] + r[i, k] * r[i, k]
            factors[k] = zero
            with ib.if_scope(tir.NE(total[0], zero)):
                first = ib.let("first", r[k, k])
                length = ib.let("length", tir.sqrt(first * first + total[0]))
                beta = ib.let("beta", tir.Select(first < zero, length, zero - length))
                factors[k] = (beta - first) / beta
                with ib.for_range(k + 1, rows, "i") as i:
                    r[i, k] = r[i, k] / (first - beta)
                r[k, k] = beta
                with ib.for_range(k + 1, columns, "j") as j:
                    _reflect(ib, r, k, factors[k], r, j, rows, total)

    return over_batch(
        kernel, [data], [(rows, columns), (count,)], [data.dtype, data.dtype], "householder_qr"
    )


def _reflect(
    ib: IRBuilder, vectors: Block, k: Any, factor: Any, target: Block, j: Any, rows: Any, total: Any
) -> None:
    """Apply reflection ``k`` to column ``j`` of a matrix."""
    total[0] = target[k, j]
    with ib.for_range(k + 1, rows, "i") as i:
        total[0] = total[0] + vectors[i, k] * target[i, j]
    total[0] = total[0] * factor
    target[k, j] = target[k, j] - total[0]
    with ib.for_range(k + 1, rows, "i") as i:
        target[i, j] = target[i, j] - total[0] * vectors[i, k]


def householder_product(vectors: te.Tensor, factors: te.Tensor, columns: int) -> te.Tensor:
    """The first columns of the product of reflections.

    Parameters
    ----------
    vectors : te.Tensor
        (..., m, n): below the diagonal, as `householder_qr` gives them.
    factors : te.Tensor
        (..., k).
    columns : int
        How many columns, at most m.
    """
    rows = dims(vectors.shape)[-2]
    count = dims(factors.shape)[-1]

    def kernel(ib: IRBuilder, v: Block, tau: Block, q: Block) -> None:
        identity(ib, q, rows, columns, vectors.dtype)
        total = local(ib, vectors.dtype, 0.0, "total")
        with ib.for_range(0, count, "step") as step:
            k = ib.let("k", count - 1 - step)
            with ib.for_range(0, columns, "j") as j:
                _reflect(ib, v, k, tau[k], q, j, rows, total)

    return over_batch(
        kernel, [vectors, factors], [(rows, columns)], [vectors.dtype], "householder_product"
    )[0]  # fmt: skip
