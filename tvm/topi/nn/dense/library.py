"""Products of matrices that a library computes: BLAS, MKL, oneDNN."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import te, tir

from ...generic import schedule_extern
from ...x86.injective import schedule_injective


def matmul_by(
    function: str, lhs: te.Tensor, rhs: te.Tensor, transa: bool, transb: bool, **kwargs: Any
) -> te.Tensor:
    """The product of two matrices, or of two batches of them, by a packed function."""
    batch = [] if len(lhs.shape) == 2 else [tir.max(lhs.shape[0], rhs.shape[0])]
    rows = lhs.shape[-1] if transa else lhs.shape[-2]
    columns = rhs.shape[-2] if transb else rhs.shape[-1]

    def call(ins: list[tir.Buffer], outs: list[tir.Buffer]) -> tir.PrimExpr:
        return tir.call_packed(function, ins[0], ins[1], outs[0], transa, transb)

    return te.extern([*batch, rows, columns], [lhs, rhs], call, **{"name": "C", **kwargs})


def _product(
    library: str,
    lhs: te.Tensor,
    rhs: te.Tensor,
    bias: te.Tensor | None,
    out_dtype: str | None,
    transpose_a: bool,
    transpose_b: bool,
) -> te.Tensor:
    if out_dtype not in (None, "", lhs.dtype):
        raise ValueError(
            f"{library} multiplies {lhs.dtype} to {lhs.dtype}, got out_dtype {out_dtype!r}"
        )
    name = f"tvm.contrib.{library}.{'matmul' if len(lhs.shape) == 2 else 'batch_matmul'}"
    product = matmul_by(name, lhs, rhs, transpose_a, transpose_b, tag=f"{library}_product")
    if bias is None:
        return product
    return te.compute(product.shape, lambda i, j: product[i, j] + bias[j], tag="broadcast")


def schedule_product(outs: te.Tensor | Sequence[te.Tensor]) -> te.Schedule:
    """A library's product, with what follows it in vectors."""
    found = [outs] if isinstance(outs, te.Tensor) else list(outs)
    if all(isinstance(t.op, te.tensor.ComputeOp) for t in found):
        return schedule_injective(found)
    return schedule_extern(found)


def dense_cblas(
    data: te.Tensor, weight: te.Tensor, bias: te.Tensor | None = None, out_dtype: str | None = None
) -> te.Tensor:
    """A dense layer by BLAS."""
    return _product("cblas", data, weight, bias, out_dtype, False, True)


def dense_mkl(
    data: te.Tensor, weight: te.Tensor, bias: te.Tensor | None = None, out_dtype: str | None = None
) -> te.Tensor:
    """A dense layer by MKL."""
    return _product("mkl", data, weight, bias, out_dtype, False, True)


def dense_dnnl(
    data: te.Tensor, weight: te.Tensor, bias: te.Tensor | None = None, out_dtype: str | None = None
) -> te.Tensor:
    """A dense layer by oneDNN."""
    return _product("dnnl", data, weight, bias, out_dtype, False, True)


def matmul_cblas(
    tensor_a: te.Tensor,
    tensor_b: te.Tensor,
    bias: te.Tensor | None = None,
    out_dtype: str | None = None,
    transpose_a: bool = False,
    transpose_b: bool = False,
) -> te.Tensor:
    """A product of two matrices by BLAS."""
    return _product("cblas", tensor_a, tensor_b, bias, out_dtype, transpose_a, transpose_b)


def matmul_mkl(
    tensor_a: te.Tensor,
    tensor_b: te.Tensor,
    bias: te.Tensor | None = None,
    out_dtype: str | None = None,
    transpose_a: bool = False,
    transpose_b: bool = False,
) -> te.Tensor:
    """A product of two matrices by MKL."""
    return _product("mkl", tensor_a, tensor_b, bias, out_dtype, transpose_a, transpose_b)


def matmul_dnnl(
    tensor_a: te.Tensor,
    tensor_b: te.Tensor,
    bias: te.Tensor | None = None,
    out_dtype: str | None = None,
    transpose_a: bool = False,
    transpose_b: bool = False,
) -> te.Tensor:
    """A product of two matrices by oneDNN."""
    return _product("dnnl", tensor_a, tensor_b, bias, out_dtype, transpose_a, transpose_b)


def batch_matmul_cblas(
    tensor_a: te.Tensor,
    tensor_b: te.Tensor,
    out_dtype: str | None = None,
    transpose_a: bool = False,
    transpose_b: bool = True,
) -> te.Tensor:
    """Products of two batches of matrices by BLAS."""
    return _product("cblas", tensor_a, tensor_b, None, out_dtype, transpose_a, transpose_b)


def batch_matmul_mkl(
    tensor_a: te.Tensor,
    tensor_b: te.Tensor,
    out_dtype: str | None = None,
    transpose_a: bool = False,
    transpose_b: bool = True,
) -> te.Tensor:
    """Products of two batches of matrices by MKL."""
    return _product("mkl", tensor_a, tensor_b, None, out_dtype, transpose_a, transpose_b)
