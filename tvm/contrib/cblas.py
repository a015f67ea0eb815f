"""Products of matrices by the BLAS library that is there: OpenBLAS, the reference one, MKL."""

from __future__ import annotations

from typing import Any

from tvm import te
from tvm.topi.nn.dense.library import matmul_by


def matmul(
    lhs: te.Tensor, rhs: te.Tensor, transa: bool = False, transb: bool = False, **kwargs: Any
) -> te.Tensor:
    """The product of two matrices of float32 or float64.

    Parameters
    ----------
    lhs, rhs : te.Tensor
        The matrices.
    transa, transb : bool
        Whether a matrix is transposed first.
    kwargs : dict
        Passed to :func:`tvm.te.extern`: ``name``, ``tag`` ...
    """
    return matmul_by("tvm.contrib.cblas.matmul", lhs, rhs, transa, transb, **kwargs)


def batch_matmul(
    lhs: te.Tensor,
    rhs: te.Tensor,
    transa: bool = False,
    transb: bool = False,
    iterative: bool = False,
    **kwargs: Any,
) -> te.Tensor:
    """The products of two batches of matrices; parameters as for :func:`matmul`.

    A batch of one matrix goes with any other. ``iterative`` chooses the function of that name,
    which computes the same.
    """
    name = f"tvm.contrib.cblas.batch_matmul{'_iterative' if iterative else ''}"
    return matmul_by(name, lhs, rhs, transa, transb, **kwargs)
