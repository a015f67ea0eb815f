"""A sparse matrix times a column."""

from __future__ import annotations

from typing import Any

from tvm import te
from tvm.support.docstrings import described_by

from .csrmm import csrmm_default


@described_by(csrmm_default)
def csrmv_default(
    data: te.Tensor,
    indices: te.Tensor,
    indptr: te.Tensor,
    weight: te.Tensor,
    bias: te.Tensor | None = None,
) -> te.Tensor:
    """The product of a sparse matrix (m, k) and a column (k, 1), and a bias of each row.

    Parameters
    ----------
    weight : te.Tensor
        The column.
    """
    return csrmm_default(data, indices, indptr, weight, bias)


def csrmv(a: Any, x: te.Tensor, y: te.Tensor | None = None) -> te.Tensor:
    """a @ x + y, of a sparse matrix `a` with the fields data, indices and indptr."""
    return csrmv_default(a.data, a.indices, a.indptr, x, y)
