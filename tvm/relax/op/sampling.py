"""Sampling of probability distributions."""

from __future__ import annotations

from typing import Any

from .infer import dims_of, fail, made, prove_equal, tensors
from .operator import DataType, Expr, operator


def _infer(call: Any, bb: Any) -> Any:
    """A tensor of shape (samples, 1), and of dtype `dtype`."""
    prob, uniform, indices = tensors(call, 3)
    for info in (prob, uniform):
        if not info.dtype.is_void and not info.dtype.is_float:
            raise fail(call, f"requires probabilities and samples of float, got {info.dtype}")
    if not indices.dtype.is_void and not indices.dtype.is_int:
        raise fail(call, f"requires integers as sample_indices, got {indices.dtype}")
    for info in (prob, uniform, indices):
        if info.ndim not in (-1, 2):
            raise fail(call, f"requires tensors of two dimensions, got {info}")
    dims = [dims_of(i) for i in (prob, uniform, indices)]
    if any([d is None for d in dims]):
        return made(None, call.attrs.dtype, prob.vdevice, 2)
    _, samples, rows = dims
    if not prove_equal(samples[0], rows[0]):  # type: ignore[index]
        raise fail(call, "requires as many samples as indices of rows")
    return made((samples[0], 1), call.attrs.dtype, prob.vdevice)  # type: ignore[index]


@operator("relax.multinomial_from_uniform", "MultinomialFromUniformAttrs", infer=_infer)
def multinomial_from_uniform(
    prob: Expr, uniform_sample: Expr, sample_indices: Expr, dtype: DataType = "int64"
) -> Expr:
    """Draw from distributions by numbers that are uniform in [0, 1).

    Parameters
    ----------
    prob : relax.Expr
        A distribution a row.
    uniform_sample : relax.Expr
        A number a sample, of shape (samples, 1).
    sample_indices : relax.Expr
        The row of each sample, of shape (samples, 1).
    dtype : str
        Of the result.
    """
