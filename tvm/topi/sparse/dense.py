"""Dense layers with sparse data or a sparse weight."""

from __future__ import annotations

from typing import Any

from tvm import te
from tvm.error import RuntimeValueError

from .. import tag
from ..nn.sparse import sparse_dense_sp_lhs, sparse_dense_sp_rhs


def _biased(product: te.Tensor, bias: te.Tensor | None) -> te.Tensor:
    if bias is None:
        return product
    return te.compute(
        product.shape, lambda i, j: product[i, j] + bias[j], "dense", tag=tag.BROADCAST
    )


def dense_si(
    data: te.Tensor,
    indices: te.Tensor,
    indptr: te.Tensor,
    weight: te.Tensor,
    bias: te.Tensor | None = None,
) -> te.Tensor:
    """data @ weight.T + bias, of sparse data (data, indices, indptr)."""
    return _biased(sparse_dense_sp_lhs(data, indices, indptr, weight), bias)


def dense_sw(
    data: te.Tensor,
    w_data: te.Tensor,
    w_indices: te.Tensor,
    w_indptr: te.Tensor,
    bias: te.Tensor | None = None,
) -> te.Tensor:
    """data @ weight.T + bias, of a sparse weight (w_data, w_indices, w_indptr)."""
    return _biased(sparse_dense_sp_rhs(data, w_data, w_indices, w_indptr), bias)


def dense(data: Any, weight: Any, bias: te.Tensor | None = None) -> te.Tensor:
    """data @ weight.T + bias; one of them is sparse, with the fields data, indices and indptr.

    Parameters
    ----------
    data : te.Tensor or sparse matrix
        (batch, inputs).
    weight : te.Tensor or sparse matrix
        (outputs, inputs).
    bias : te.Tensor, optional
        (outputs,).
    """
    if hasattr(data, "indptr") == hasattr(weight, "indptr"):
        raise RuntimeValueError("sparse.dense requires either the data or the weight to be sparse")
    if hasattr(data, "indptr"):
        return dense_si(data.data, data.indices, data.indptr, weight, bias)
    return dense_sw(data, weight.data, weight.indices, weight.indptr, bias)
