"""The distinct elements of a row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import te, tir
from tvm.tir.ir_builder import BufferVar, IRBuilder

from .sort import argsort
from .utils import dims, equals


def unique(data: te.Tensor, is_sorted: bool = True, return_counts: bool = False) -> list[te.Tensor]:
    """The distinct elements of a row, where they are first, and which each element is.

    Parameters
    ----------
    data : te.Tensor
        A tensor of rank 1.
    is_sorted : bool
        In ascending order, or in that of their first positions.
    return_counts : bool
        Tell how often each occurs.

    Returns
    -------
    list of te.Tensor
        The distinct elements, their first positions, each element's number among them, how many there
        are (1,), and their counts. All but the last but one are as long as the data; zeros fill them.
    """
    (count,) = dims(data.shape)
    order = argsort(data, None, 0, True, "int32")

    def body(ins: Sequence[tir.Buffer], outs: Sequence[tir.Buffer]) -> tir.Stmt:
        ib = tir.ir_builder.create()
        values, by_value = [ib.buffer_ptr(x) for x in ins]
        elements, first, inverse, total, counts, rank = [ib.buffer_ptr(x) for x in outs]
        with ib.for_range(0, count, "i") as i:
            elements[i] = tir.const(0, data.dtype)
            first[i] = 0
            counts[i] = 0
        _number_groups(ib, values, by_value, inverse, total, rank, count)
        if not is_sorted:
            _renumber_by_place(ib, inverse, rank, count)
        with ib.for_range(0, count, "i") as i:
            number = ib.let("number", inverse[i])
            with ib.if_scope(equals(counts[number], 0)):
                elements[number] = values[i]
                first[number] = i.astype("int32")
            counts[number] = counts[number] + 1
        return ib.get()

    kinds = [data.dtype, *["int32"] * 5]
    shapes: list[Any] = [(count,), (count,), (count,), (1,), (count,), (count + 1,)]
    found = te.extern(shapes, [data, order], body, dtype=kinds, name="unique", tag="unique")
    return list(found[: 5 if return_counts else 4])


def _number_groups(
    ib: IRBuilder,
    values: BufferVar,
    by_value: BufferVar,
    number: BufferVar,
    total: BufferVar,
    rank: BufferVar,
    count: Any,
) -> None:
    """Number equal elements alike, in ascending order; -1 is no group's rank yet."""
    total[0] = 0
    with ib.for_range(0, count, "i") as i:
        at = ib.let("at", by_value[i])
        before = by_value[tir.max(i - 1, 0)]
        with ib.if_scope(tir.any(equals(i, 0), tir.NE(values[at], values[before]))):
            rank[total[0]] = -1
            total[0] = total[0] + 1
        number[at] = total[0] - 1


def _renumber_by_place(ib: IRBuilder, number: BufferVar, rank: BufferVar, count: Any) -> None:
    """Number groups by their first elements instead; the last element of `rank` counts them."""
    rank[count] = 0
    with ib.for_range(0, count, "i") as i:
        group = ib.let("group", number[i])
        with ib.if_scope(rank[group] < 0):
            rank[group] = rank[count]
            rank[count] = rank[count] + 1
        number[i] = rank[group]
