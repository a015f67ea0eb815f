"""Matrix products: plain, and with the weight packed in panels of columns."""

from __future__ import annotations

from typing import Any

from tvm import te, tir
from tvm.te import tensor_ops

from ...configuration import workload_attrs
from ...math import cast
from ...utils import dims, product_dtype, require_equal, rounded_up

PACK_TASK = "dense_pack.x86"


def matmul(
    tensor_a: te.Tensor,
    tensor_b: te.Tensor,
    bias: te.Tensor | None = None,
    out_dtype: str | None = None,
    transpose_a: bool = False,
    transpose_b: bool = False,
) -> te.Tensor:
    """A matrix product; leading axes are those of a batch, and broadcast.

    Parameters
    ----------
    tensor_a, tensor_b : te.Tensor
        The matrices.
    bias : te.Tensor, optional
        Added to every row.
    out_dtype : str, optional
        The dtype of the sums, the operands' by default.
    transpose_a, transpose_b : bool
        Whether an operand comes transposed.
    """
    dtype = out_dtype or tensor_a.dtype
    if (wide := product_dtype(dtype)) != dtype:
        return cast(matmul(tensor_a, tensor_b, bias, wide, transpose_a, transpose_b), dtype)
    batches = tensor_a.shape[:-2], tensor_b.shape[:-2]
    lead = tensor_ops.broadcast_shape(*batches)
    rows = list(tensor_a.shape[-2:-1])
    inner = tensor_a.shape[-1]
    if transpose_a:
        rows, inner = [tensor_a.shape[-1]], tensor_a.shape[-2]
    columns, lines = tensor_b.shape[-2:] if transpose_b else reversed(tensor_b.shape[-2:])
    require_equal("a product of matrices", "equal inner extents", inner, lines)
    k = te.reduce_axis((0, inner), name="k")

    def element(*i: Any) -> Any:
        outer, row = i[: len(lead)], i[len(lead) : -1]
        of_a, of_b = [tensor_ops.broadcast_indices(outer, batch, lead) for batch in batches]
        a = tensor_a(*of_a, k.var, *row) if transpose_a else tensor_a(*of_a, *row, k.var)
        b = tensor_b(*of_b, i[-1], k.var) if transpose_b else tensor_b(*of_b, k.var, i[-1])
        return te.sum(a.astype(dtype) * b.astype(dtype), axis=k)

    asked = product_task(tensor_a, tensor_b, dtype, transpose_a, transpose_b)
    product = te.compute(
        (*lead, *rows, columns), element, name="T_matmul", tag="matmul", attrs=asked
    )
    return product if bias is None else with_bias(product, bias, dtype)


def product_task(
    a: te.Tensor, b: te.Tensor, dtype: str, transpose_a: bool, transpose_b: bool
) -> dict[str, Any]:
    """The attributes that name the task of a product of two matrices, if anyone asks."""
    if transpose_b and not transpose_a:
        return workload_attrs("dense_nopack.x86", a, b, None, dtype)
    return workload_attrs("matmul_nopack.x86", a, b, None, dtype, transpose_a, transpose_b)


def with_bias(product: te.Tensor, bias: te.Tensor, dtype: str) -> te.Tensor:
    """A product with a number for each unit added."""
    require_equal("a dense layer", "a bias for each unit", bias.shape[0], product.shape[-1])
    return te.compute(
        product.shape,
        lambda *i: product(*i) + bias(i[-1]).astype(dtype),
        name="T_add",
        tag="broadcast",
    )


def dense(
    data: te.Tensor, weight: te.Tensor, bias: te.Tensor | None = None, out_dtype: str | None = None
) -> te.Tensor:
    """A dense layer: data @ weight.T + bias"""
    return matmul(data, weight, bias, out_dtype, False, True)


# rows of the tiles of symbolic numbers of them: few enough for the registers of any processor
SYMBOLIC_TILE = 6


def dense_pack(
    data: te.Tensor, weight: te.Tensor, bias: te.Tensor | None = None, out_dtype: str | None = None
) -> te.Tensor:
    """A dense layer with the weight in panels: (units / block, inner, block)."""
    dtype = out_dtype or data.dtype
    if (wide := product_dtype(dtype)) != dtype:
        return cast(dense_pack(data, weight, bias, wide), dtype)
    *lead, rows, _ = dims(data.shape)
    padded = padded_rows(rows, SYMBOLIC_TILE)
    panels, inner, block = dims(weight.shape)
    k = te.reduce_axis((0, inner), name="k")

    def element(*i: Any) -> Any:
        *outer, y, x = i
        y = y if padded is rows else tir.min(y, rows - 1)
        w = weight(tir.indexdiv(x, block), k.var, tir.indexmod(x, block))
        return te.sum(data(*outer, y, k.var).astype(dtype) * w.astype(dtype), axis=k)

    shape = (*lead, padded, panels * block)
    rows_alone = ("TENSOR", (rows, inner), data.dtype)
    asked = workload_attrs(PACK_TASK, rows_alone, weight, None, dtype)
    product = te.compute(shape, element, name="T_dense_pack", tag="dense_pack", attrs=asked)
    if padded is not rows:
        product = crop(product, (*lead, rows, panels * block))
    return product if bias is None else with_bias(product, bias, dtype)


def padded_rows(rows: Any, symbolic_tile: int = 1) -> Any:
    """A number of rows that tiles divide: itself, or a little more where it has no good divisor.

    The rows beyond the last are computed from the last one and dropped. A symbolic number fills
    tiles of a given height.
    """
    if not isinstance(rows, int):
        return (
            rows
            if symbolic_tile == 1
            else tir.indexdiv(rows + (symbolic_tile - 1), symbolic_tile) * symbolic_tile
        )
    if rows < 16 or any(rows % d == 0 for d in range(4, 13)):
        return rows
    return min(rounded_up(rows, height) for height in (8, 7, 6))


def crop(tensor: te.Tensor, shape: tuple[Any, ...]) -> te.Tensor:
    """The leading elements along each axis."""
    return te.compute(shape, lambda *i: tensor(*i), name="T_crop", tag="injective,crop")
