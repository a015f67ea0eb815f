"""Draws of tokens from probabilities, restricted to the likeliest."""

from __future__ import annotations

from typing import Any

from tvm import te, tir
from tvm.relax import op as _op
from tvm.relax.expr import PrimValue

from .core import Tensor, current_builder, wrap_nested


def multinomial_from_uniform(
    prob: Tensor,
    uniform_sample: Tensor,
    sample_indices: Tensor | None = None,
    dtype: str = "int64",
    name: str = "multinomial_from_uniform",
) -> Tensor:
    """Draw from distributions by numbers that are uniform in [0, 1).

    Parameters
    ----------
    prob : Tensor
        A distribution a row.
    uniform_sample : Tensor
        A number a sample, of shape (samples, 1).
    sample_indices : Tensor, optional
        The row of each sample, of shape (samples, 1); by default the i-th sample is of the i-th row.
    dtype : str
        Of the result.
    name : str
        Of the variable.

    Returns
    -------
    Tensor
        Of shape (samples, 1): the first place where the sum of the row up to it is above the number.
    """
    rows = _rows(prob, uniform_sample, sample_indices)
    call = _op.multinomial_from_uniform(prob._expr, uniform_sample._expr, rows._expr, dtype)
    return _wrapped(call, name)


def sample_top_p_top_k_from_sorted_prob(
    sorted_prob: Tensor,
    sorted_index: Tensor,
    top_p: Tensor,
    top_k: Tensor,
    uniform_sample: Tensor,
    sample_indices: Tensor | None = None,
) -> Tensor:
    """Draw from the likeliest of each row, whose probabilities descend.

    A row keeps the first ``top_k`` at most, of which the sum of those before the last is below
    ``top_p``; the first is always kept.

    Parameters
    ----------
    sorted_prob, sorted_index : Tensor
        The probabilities of rows in descending order, and what they are of.
    top_p, top_k : Tensor
        The limits of each row, of shape (rows, 1).
    uniform_sample : Tensor
        A number in [0, 1) a sample, of shape (samples, 1).
    sample_indices : Tensor, optional
        The row of each sample, of shape (samples, 1); by default the i-th sample is of the i-th row.

    Returns
    -------
    Tensor
        Of shape (samples, 1), elements of ``sorted_index``.
    """
    rows = _rows(sorted_prob, uniform_sample, sample_indices)
    sums = _wrapped(_op.cumsum(sorted_prob._expr, axis=1), "cumsum")
    last = _last_kept(sums, top_p, top_k)

    def drawn(sums: Any, last: Any, index: Any, uniform: Any, rows: Any) -> Any:
        size = sums.shape[1]
        axis = te.reduce_axis((0, size), "j")

        def places(i: Any, _: Any) -> Any:
            row = rows[i, 0]
            is_below = sums[row, axis] / sums[row, last[row, 0]] <= uniform[i, 0]
            return te.sum(tir.if_then_else(is_below, tir.const(1, "int64"), 0), axis=axis)

        found = te.compute(uniform.shape, places, name="place")
        limit = size.astype("int64") - 1
        return te.compute(
            uniform.shape, lambda i, j: index[rows[i, 0], te.min(found[i, j], limit)], name="drawn"
        )

    operands = (sums, last, sorted_index, uniform_sample, rows)
    return _computed(drawn, "get_index_from_sorted", *operands)


def renormalize_top_p_top_k_prob(
    prob: Tensor, sorted_prob: Tensor, top_p: Tensor, top_k: Tensor
) -> Tensor:
    """Probabilities without the unlikely, such that rows have the sum one.

    Parameters
    ----------
    prob : Tensor
        A distribution a row.
    sorted_prob : Tensor
        The same in descending order.
    top_p, top_k : Tensor
        The limits of each row, of shape (rows, 1): see `sample_top_p_top_k_from_sorted_prob`.

    Returns
    -------
    Tensor
        Of the shape of ``prob``. What is as likely as the last that is kept is kept, too.
    """
    sums = _wrapped(_op.cumsum(sorted_prob._expr, axis=1), "cumsum")
    last = _last_kept(sums, top_p, top_k)

    def kept(prob: Any, sorted_prob: Any, last: Any) -> Any:
        return te.compute(
            prob.shape,
            lambda i, j: tir.Select(
                prob[i, j] >= sorted_prob[i, last[i, 0]], prob[i, j], tir.const(0, prob.dtype)
            ),
            name="kept",
        )

    likely = _computed(kept, "filter_with_top_p_top_k", prob, sorted_prob, last)
    total = _op.sum(likely._expr, axis=1, keepdims=True)
    return _wrapped(_op.divide(likely._expr, total), "renormalized")


def _last_kept(sums: Tensor, top_p: Tensor, top_k: Tensor) -> Tensor:
    """The place of the last that a row keeps."""

    def last(sums: Any, top_p: Any, top_k: Any) -> Any:
        rows, size = sums.shape
        axis = te.reduce_axis((0, size), "j")

        def count(i: Any, _: Any) -> Any:
            goes_on = tir.all(sums[i, axis] < top_p[i, 0], axis + 1 < top_k[i, 0])
            return te.sum(tir.if_then_else(goes_on, tir.const(1, "int64"), 0), axis=axis)

        found = te.compute((rows, 1), count, name="count")
        limit = size.astype("int64") - 1
        return te.compute((rows, 1), lambda i, j: te.min(found[i, j], limit), name="last")

    return _computed(last, "last_of_top_p_top_k", sums, top_p, top_k)


def _rows(prob: Tensor, uniform: Tensor, given: Tensor | None) -> Tensor:
    """The row of each sample."""
    samples = uniform.shape[0]
    if given is not None:
        return given
    rows = prob.shape[0]
    if isinstance(rows, int) and isinstance(samples, int) and rows != samples:
        raise ValueError(
            f"sample_indices are required where there are {samples} samples of {rows} rows"
        )
    first, bound, step = [
        PrimValue(tir.const(b, "int64") if isinstance(b, int) else b) for b in (0, samples, 1)
    ]
    numbers = current_builder().emit(_op.arange(first, bound, step, "int64"))
    return _wrapped(_op.reshape(numbers, (samples, 1)), "sample_indices")


def _computed(function: Any, name: str, *operands: Tensor) -> Tensor:
    values = [operand._expr for operand in operands]
    return _wrapped(current_builder().call_te(function, *values, primfunc_name_hint=name), name)


def _wrapped(call: Any, name: str) -> Tensor:
    made: Tensor = wrap_nested(call, name)
    return made
