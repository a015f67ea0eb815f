"""Products of matrices in the forms that the outer products of Arm's SME take."""

from __future__ import annotations

from tvm import te
from tvm.error import TVMError

from .. import nn


class SMEConstraintError(TVMError, AssertionError):
    """Outer products do not take the operands as they lie; once an assertion."""


def compute_matmul_sme(
    data_a: te.Tensor,
    data_b: te.Tensor,
    bias: te.Tensor | None = None,
    out_dtype: str | None = None,
    transpose_a: bool = False,
    transpose_b: bool = False,
) -> te.Tensor:
    """The product of two matrices, whose sums are of float32.

    Parameters
    ----------
    data_a, data_b : te.Tensor
        The matrices, of float32 or float16.
    bias : te.Tensor, optional
        Added to every row.
    out_dtype : str, optional
        The data type of the sums, float32.
    transpose_a, transpose_b : bool
        Whether an operand comes transposed: the left one never, the right one of float16 always.
    """
    if transpose_a:
        raise SMEConstraintError(
            "compute_matmul_sme requires a left operand that is not transposed",
            classic="Transposed lhs not currently supported.",
        )
    if data_b.dtype == "float16" and not transpose_b:
        raise SMEConstraintError(
            "compute_matmul_sme requires a transposed right operand of float16",
            classic="Rhs must be transposed when dtype is float16.",
        )
    return nn.matmul(data_a, data_b, bias, out_dtype or "float32", transpose_a, transpose_b)
