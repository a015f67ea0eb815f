"""Products of matrices by MKL, where it is installed."""

from __future__ import annotations

from typing import Any

from tvm import te
from tvm.topi.nn.dense.library import matmul_by


def matmul(
    lhs: te.Tensor, rhs: te.Tensor, transa: bool = False, transb: bool = False, **kwargs: Any
) -> te.Tensor:
    """The product of two matrices; parameters as for :func:`tvm.contrib.cblas.matmul`."""
    return matmul_by("tvm.contrib.mkl.matmul", lhs, rhs, transa, transb, **kwargs)


def matmul_u8s8s32(
    lhs: te.Tensor, rhs: te.Tensor, transa: bool = False, transb: bool = False, **kwargs: Any
) -> te.Tensor:
    """The product of a matrix of uint8 and one of int8; not offered."""
    raise NotImplementedError(
        "tvm.contrib.mkl has no products of 8-bit integers: topi.nn.dense computes them with VNNI"
    )


def batch_matmul(
    lhs: te.Tensor,
    rhs: te.Tensor,
    transa: bool = False,
    transb: bool = False,
    iterative: bool = False,
    **kwargs: Any,
) -> te.Tensor:
    """The products of two batches; parameters as for :func:`tvm.contrib.cblas.batch_matmul`."""
    name = f"tvm.contrib.mkl.batch_matmul{'_iterative' if iterative else ''}"
    return matmul_by(name, lhs, rhs, transa, transb, **kwargs)
