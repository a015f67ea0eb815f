"""A batch of matrix products."""

from __future__ import annotations

from typing import Any

from tvm import te, tir
from tvm.te import tensor_ops

from ...configuration import workload_attrs
from ...math import cast
from ...utils import dims, product_dtype, require_equal, rounded_up
from ..dense.compute import crop, padded_rows

COPIED_LINES = "T_batch_matmul_lines"


def batch_matmul(
    tensor_a: te.Tensor,
    tensor_b: te.Tensor,
    oshape: Any = None,
    out_dtype: str | None = None,
    transpose_a: bool = False,
    transpose_b: bool = True,
) -> te.Tensor:
    """A batch of matrix products; a batch of 1 is broadcast.

    Parameters
    ----------
    tensor_a, tensor_b : te.Tensor
        Tensors of three dimensions.
    oshape : sequence, optional
        The output's shape, if it is known better.
    out_dtype : str, optional
        The dtype of the sums, the operands' by default.
    transpose_a, transpose_b : bool
        Whether the matrices come transposed.
    """
    dtype = out_dtype or tensor_a.dtype
    if (wide := product_dtype(dtype)) != dtype:
        flags = (transpose_a, transpose_b)
        return cast(batch_matmul(tensor_a, tensor_b, oshape, wide, *flags), dtype)
    a, b = dims(tensor_a.shape), dims(tensor_b.shape)
    rows, inner = (a[2], a[1]) if transpose_a else (a[1], a[2])
    columns, lines = (b[1], b[2]) if transpose_b else (b[2], b[1])
    require_equal("batch_matmul", "equal inner extents", inner, lines)
    (batch,) = dims(tensor_ops.broadcast_shape(tensor_a.shape[:1], tensor_b.shape[:1]))
    k = te.reduce_axis((0, inner), name="k")
    batch_of = tir.const(batch, "int32") if isinstance(batch, int) else batch

    # schedules copy a right operand whose columns are strided or fill no full vectors
    height, width = padded_rows(rows), padded_columns(columns)
    right = tensor_b
    if transpose_b or width != columns:
        right = _copied_lines(tensor_b, transpose_b, width)

    def element(n: Any, i: Any, j: Any) -> Any:
        na, nb = [
            tensor_ops.broadcast_indices([n], t.shape[:1], [batch_of])[0]
            for t in (tensor_a, tensor_b)
        ]
        i = i if height == rows else tir.min(i, rows - 1)
        x = tensor_a(na, k.var, i) if transpose_a else tensor_a(na, i, k.var)
        y = right(nb, k.var, j)
        return te.sum(x.astype(dtype) * y.astype(dtype), axis=k)

    args = (tensor_a, tensor_b, None, dtype, transpose_a, transpose_b)
    asked = workload_attrs("batch_matmul.x86", *args)
    shape, tag = (batch, height, width), "batch_matmul"
    product = te.compute(shape, element, name="T_batch_matmul", tag=tag, attrs=asked)
    if (height, width) == (rows, columns):
        return product
    return crop(product, tuple(oshape or (batch, rows, columns)))


def padded_columns(columns: Any) -> Any:
    """A number of columns that fills vectors: itself, or a little more."""
    if not isinstance(columns, int) or columns <= 16 or columns % 8 == 0:
        return columns
    return rounded_up(columns, 16)


def _copied_lines(tensor: te.Tensor, is_transposed: bool, width: Any) -> te.Tensor:
    """The right operand as lines of `width` columns, zeros beyond its own."""
    batch, first, second = tensor.shape
    inner, columns = (second, first) if is_transposed else (first, second)

    def element(n: Any, k: Any, j: Any) -> Any:
        value = tensor(n, j, k) if is_transposed else tensor(n, k, j)
        if dims((columns,))[0] == width:
            return value
        return tir.if_then_else(j < columns, value, tir.const(0, tensor.dtype))

    return te.compute((batch, inner, width), element, name=COPIED_LINES, tag="injective")
