"""A sparse matrix times a dense one."""

from __future__ import annotations

from typing import Any

from tvm import te

from .. import tag
from ..nn.sparse import sparse_dense_sp_lhs
from ..utils import dims


def csrmm_default(
    data: te.Tensor,
    indices: te.Tensor,
    indptr: te.Tensor,
    weight: te.Tensor,
    bias: te.Tensor | None = None,
) -> te.Tensor:
    """The product of a sparse matrix (m, k) and a dense one (k, n), and a bias of each row.

    Parameters
    ----------
    data, indices, indptr : te.Tensor
        The sparse matrix by rows.
    weight : te.Tensor
        The dense matrix.
    bias : te.Tensor, optional
        (m,).
    """
    rows, columns = dims(weight.shape)
    turned = te.compute((columns, rows), lambda i, k: weight[k, i], "turned")
    product = sparse_dense_sp_lhs(data, indices, indptr, turned)
    if bias is None:
        return product
    return te.compute(
        product.shape, lambda i, j: product[i, j] + bias[i], "csrmm", tag=tag.BROADCAST
    )


def csrmm(a: Any, b: te.Tensor, c: te.Tensor | None = None) -> te.Tensor:
    """a @ b + c, of a sparse matrix `a` with the fields data, indices and indptr."""
    return csrmm_default(a.data, a.indices, a.indptr, b, c)
