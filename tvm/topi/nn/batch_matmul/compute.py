"""A batch of matrix products."""

from __future__ import annotations

from typing import Any

from tvm import te

from ...utils import dims


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
    a, b = dims(tensor_a.shape), dims(tensor_b.shape)
    rows, inner = (a[2], a[1]) if transpose_a else (a[1], a[2])
    columns = b[1] if transpose_b else b[2]
    one_a, one_b = [isinstance(s[0], int) and s[0] == 1 for s in (a, b)]
    batch = b[0] if one_a else a[0]
    k = te.reduce_axis((0, inner), name="k")
    dtype = out_dtype or tensor_a.dtype

    # the columns of a transposed operand lie apart: schedules may copy it (default: inlined)
    right = _untransposed(tensor_b) if transpose_b else tensor_b

    def element(n: Any, i: Any, j: Any) -> Any:
        na, nb = 0 if one_a else n, 0 if one_b else n
        x = tensor_a(na, k.var, i) if transpose_a else tensor_a(na, i, k.var)
        y = right(nb, k.var, j)
        return te.sum(x.astype(dtype) * y.astype(dtype), axis=k)

    return te.compute(
        oshape or (batch, rows, columns), element, name="T_batch_matmul", tag="batch_matmul"
    )


def _untransposed(tensor: te.Tensor) -> te.Tensor:
    batch, columns, inner = tensor.shape
    return te.compute(
        (batch, inner, columns),
        lambda n, k, j: tensor(n, j, k),
        name="T_batch_matmul_transposed",
        tag="injective",
    )
