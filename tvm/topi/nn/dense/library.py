"""Products of matrices that a library computes: BLAS, MKL, oneDNN."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tvm import te, tir
from tvm.autotvm.task.space import ConfigSpace
from tvm.error import RuntimeValueError

from ...cpu.injective import schedule_injective
from ...generic import schedule_extern
from ...utils import dims, prod


def matmul_by(
    function: str, lhs: te.Tensor, rhs: te.Tensor, transa: bool, transb: bool, **kwargs: Any
) -> te.Tensor:
    """The product of two matrices, or of two batches of them, by a packed function."""
    batch = [] if len(lhs.shape) == 2 else [tir.max(lhs.shape[0], rhs.shape[0])]
    rows = lhs.shape[-1] if transa else lhs.shape[-2]
    columns = rhs.shape[-2] if transb else rhs.shape[-1]

    def call(ins: list[tir.Buffer], outs: list[tir.Buffer]) -> tir.PrimExpr:
        return tir.call_packed(function, ins[0], ins[1], outs[0], transa, transb)

    options = {"name": "C", **kwargs}
    product: te.Tensor = te.extern([*batch, rows, columns], [lhs, rhs], call, **options)
    return product


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
        raise RuntimeValueError(
            f"{library} multiplies {lhs.dtype} to {lhs.dtype}, got out_dtype {out_dtype!r}"
        )
    name = f"tvm.contrib.{library}.{'matmul' if len(lhs.shape) == 2 else 'batch_matmul'}"
    product = matmul_by(name, lhs, rhs, transpose_a, transpose_b, tag=f"{library}_product")
    if bias is None:
        return product
    return te.compute(product.shape, lambda i, j: product[i, j] + bias[j], tag="broadcast")


def matmul_blas_common(
    cfg: ConfigSpace | None,
    tensor_a: te.Tensor,
    tensor_b: te.Tensor,
    bias: te.Tensor | None,
    out_dtype: str | None,
    transpose_a: bool,
    transpose_b: bool,
    lib: Any,
) -> te.Tensor:
    """The product of two matrices by a module such as `tvm.contrib.cblas`.

    Parameters
    ----------
    cfg : ConfigSpace, optional
        Gets to know the number of operations.
    tensor_a, tensor_b : te.Tensor
        The matrices.
    bias : te.Tensor, optional
        Added to every row.
    out_dtype : str, optional
        The dtype of the sums, the matrices' by default; int32 of uint8 and int8 for a library that
        has such products.
    transpose_a, transpose_b : bool
        Whether a matrix is transposed first.
    lib : module
        Has `matmul`, and perhaps `matmul_u8s8s32`.
    """
    dtypes = (tensor_a.dtype, tensor_b.dtype, out_dtype)
    if dtypes == ("uint8", "int8", "int32") and hasattr(lib, "matmul_u8s8s32"):
        product: te.Tensor = lib.matmul_u8s8s32(
            tensor_a, tensor_b, transpose_a, transpose_b, dtype="int32"
        )
    elif out_dtype in (None, "", tensor_a.dtype):
        product = lib.matmul(tensor_a, tensor_b, transpose_a, transpose_b)
    else:
        raise RuntimeValueError(
            f"{lib.__name__} has no products of {dtypes[0]} and {dtypes[1]} to {out_dtype}"
        )
    _count_operations(cfg, product, tensor_a, transpose_a)
    if bias is None:
        return product
    return te.compute(product.shape, lambda i, j: product[i, j] + bias[j], tag="broadcast")


def batch_matmul_blas_common(
    cfg: ConfigSpace | None,
    tensor_a: te.Tensor,
    tensor_b: te.Tensor,
    out_shape: Sequence[Any] | None,
    trans_a: bool,
    trans_b: bool,
    lib: Any,
) -> te.Tensor:
    """Products of two batches of matrices by a module; parameters as of `matmul_blas_common`."""
    product: te.Tensor = lib.batch_matmul(tensor_a, tensor_b, trans_a, trans_b)
    if out_shape is not None and dims(product.shape) != dims(out_shape):
        raise RuntimeValueError(
            f"batch_matmul_blas_common gives the shape {dims(product.shape)}, got out_shape "
            f"{dims(out_shape)}"
        )
    _count_operations(cfg, product, tensor_a, trans_a)
    return product


def _count_operations(
    cfg: ConfigSpace | None, product: te.Tensor, factor: te.Tensor, is_transposed: bool
) -> None:
    count = 2 * prod(dims(product.shape)) * dims(factor.shape)[-2 if is_transposed else -1]
    if cfg is not None and isinstance(count, int):
        cfg.add_flop(count)


def schedule_product(outs: te.Tensor | Sequence[te.Tensor]) -> te.Schedule:
    """A library's product, with what follows it in vectors."""
    found = [outs] if isinstance(outs, te.Tensor) else list(outs)
    if all(isinstance(t.op, te.tensor.ComputeOp) for t in found):
        return schedule_injective(found)
    return schedule_extern(found)


def _dense_by(library: str, title: str) -> Callable[..., te.Tensor]:
    def dense(
        data: te.Tensor,
        weight: te.Tensor,
        bias: te.Tensor | None = None,
        out_dtype: str | None = None,
    ) -> te.Tensor:
        return _product(library, data, weight, bias, out_dtype, False, True)

    return _named(dense, f"dense_{library}", f"A dense layer by {title}.")


def _matmul_by(library: str, title: str) -> Callable[..., te.Tensor]:
    def matmul(
        tensor_a: te.Tensor,
        tensor_b: te.Tensor,
        bias: te.Tensor | None = None,
        out_dtype: str | None = None,
        transpose_a: bool = False,
        transpose_b: bool = False,
    ) -> te.Tensor:
        return _product(library, tensor_a, tensor_b, bias, out_dtype, transpose_a, transpose_b)

    return _named(matmul, f"matmul_{library}", f"A product of two matrices by {title}.")


def _batch_matmul_by(library: str, title: str) -> Callable[..., te.Tensor]:
    def batch_matmul(
        tensor_a: te.Tensor,
        tensor_b: te.Tensor,
        out_shape: Sequence[Any] | None = None,
        out_dtype: str | None = None,
        transpose_a: bool = False,
        transpose_b: bool = True,
    ) -> te.Tensor:
        found = _product(library, tensor_a, tensor_b, None, out_dtype, transpose_a, transpose_b)
        if out_shape is not None and dims(found.shape) != dims(out_shape):
            raise RuntimeValueError(
                f"batch_matmul_{library} gives the shape {dims(found.shape)}, "
                f"got out_shape {dims(out_shape)}"
            )
        return found

    title = f"Products of two batches of matrices by {title}."
    return _named(batch_matmul, f"batch_matmul_{library}", title)


def _named(function: Callable[..., te.Tensor], name: str, title: str) -> Callable[..., te.Tensor]:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = title
    return function


dense_cblas, matmul_cblas = _dense_by("cblas", "BLAS"), _matmul_by("cblas", "BLAS")
dense_mkl, matmul_mkl = _dense_by("mkl", "MKL"), _matmul_by("mkl", "MKL")
dense_dnnl, matmul_dnnl = _dense_by("dnnl", "oneDNN"), _matmul_by("dnnl", "oneDNN")
batch_matmul_cblas = _batch_matmul_by("cblas", "BLAS")
batch_matmul_mkl = _batch_matmul_by("mkl", "MKL")
