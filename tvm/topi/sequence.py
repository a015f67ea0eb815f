"""Operators on rows of different lengths, windows that slide, and diagonals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import te, tir
from tvm.error import RuntimeValueError

from . import tag
from .utils import cast_scalar, dims, real_axis


def sequence_mask(
    data: te.Tensor, valid_length: te.Tensor, mask_value: float = 0, axis: int = 0
) -> te.Tensor:
    """Put one value behind the end of each sequence.

    Parameters
    ----------
    data : te.Tensor
        (length, batch, ...), or (batch, length, ...) with axis 1.
    valid_length : te.Tensor
        The length of each sequence, (batch,).
    mask_value : float
        What stands behind the end.
    axis : int
        The axis of the positions in the sequence, 0 or 1.
    """
    value = cast_scalar(mask_value, data.dtype)

    def element(*i: Any) -> Any:
        behind = i[axis] >= valid_length(i[1 - axis]).astype("int32")
        return tir.if_then_else(behind, value, data(*i))

    return te.compute(data.shape, element, name="T_sequence_mask", tag=tag.INJECTIVE)


def reverse_sequence(
    a: te.Tensor, seq_lengths: te.Tensor, seq_axis: int = 1, batch_axis: int = 0
) -> te.Tensor:
    """Reverse the beginning of each sequence.

    Parameters
    ----------
    a : te.Tensor
        The sequences.
    seq_lengths : te.Tensor
        How many elements of each sequence are reversed, (batch,).
    seq_axis, batch_axis : int
        The axes of positions and of sequences.
    """
    rank = len(a.shape)
    along, batch = real_axis(seq_axis, rank), real_axis(batch_axis, rank)
    (given,), extent = dims(seq_lengths.shape), dims(a.shape)[batch]
    if isinstance(given, int) and isinstance(extent, int) and given != extent:
        raise RuntimeValueError(
            f"reverse_sequence requires a length for each of {extent} sequences, got {given}",
            classic="For reverse_sequnece seq_lengths size should match with dimension of batch "
            f"axis, but got dimension of batch_axis = {extent}, and seq_length size = {given}",
        )

    def element(*i: Any) -> Any:
        length = tir.min(seq_lengths(i[batch]).astype("int32"), dims(a.shape)[along])
        # a sequence of length 0 or 1 stays as it is
        position = tir.if_then_else(i[along] < length, length - 1 - i[along], i[along])
        return a(*i[:along], position, *i[along + 1 :])

    return te.compute(a.shape, element, name="T_reverse_sequence", tag=tag.INJECTIVE)


def sliding_window(
    data: te.Tensor, axis: int, window_shape: Sequence[int], strides: Sequence[int]
) -> te.Tensor:
    """All positions of a window over the axes from `axis` on.

    Parameters
    ----------
    data : te.Tensor
        The tensor.
    axis : int
        The first axis that the window covers; it covers all that follow.
    window_shape, strides : sequence of int
        The window's extents and steps.

    Returns
    -------
    te.Tensor
        The shape before `axis`, the counts of positions, the window's shape.
    """
    shape, window, steps = dims(data.shape), dims(window_shape), dims(strides)
    first = real_axis(axis, len(shape))
    counts = [(e - w) // s + 1 for e, w, s in zip(shape[first:], window, steps, strict=True)]

    def element(*i: Any) -> Any:
        positions, inner = i[first : first + len(window)], i[first + len(window) :]
        at = [p * s + k for p, s, k in zip(positions, steps, inner, strict=True)]
        return data(*i[:first], *at)

    return te.compute(
        [*shape[:first], *counts, *window], element, name="T_sliding_window", tag=tag.INJECTIVE
    )


def matrix_set_diag(
    data: te.Tensor,
    diagonal: te.Tensor,
    k: int | Sequence[int] = 0,
    align: str = "RIGHT_LEFT",
) -> te.Tensor:
    """Replace diagonals of the last two axes.

    Parameters
    ----------
    data : te.Tensor
        Matrices.
    diagonal : te.Tensor
        The new diagonals: (..., length), or (..., count, length) from the highest to the lowest.
    k : int or pair of int
        The diagonal, or the lowest and the highest; 0 is the main one, above it count positive.
    align : str
        Where shorter diagonals stand: those above the main one, then those below it, "LEFT" or
        "RIGHT" each.
    """
    low, high = (k, k) if isinstance(k, int) else (int(k[0]), int(k[-1]))
    rows, columns = dims(data.shape)[-2:]
    longest = dims(diagonal.shape)[-1]
    above, below = align.split("_")
    has_band = len(diagonal.shape) == len(data.shape)

    def element(*i: Any) -> Any:
        row, column = i[-2], i[-1]
        which = column - row
        # the length of the diagonal, and its position along it
        start = tir.max(which, 0)
        length = tir.min(rows + tir.min(which, 0), columns - start)
        is_right = tir.Select(
            which >= 0, tir.const(above == "RIGHT", "bool"), tir.const(below == "RIGHT", "bool")
        )
        moved = longest - length
        position = column - start + tir.Select(is_right, moved, tir.const(0, moved.dtype))
        at = [high - which, position] if has_band else [column - start]
        inside = tir.all(which >= low, which <= high)
        return tir.if_then_else(inside, diagonal(*i[:-2], *at), data(*i))

    return te.compute(data.shape, element, name="matrix_set_diag", tag=tag.INJECTIVE)
