"""Sparse tensors given by the indices of their elements: rows without any, and new shapes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import te, tir
from tvm.tir.ir_builder import BufferVar, IRBuilder

from .sort import argsort
from .utils import dims, equals


def sparse_fill_empty_rows(
    sparse_indices: te.Tensor,
    sparse_values: te.Tensor,
    dense_shape: te.Tensor,
    default_value: te.Tensor,
    new_sparse_indices_shape: Sequence[Any],
    new_sparse_values_shape: Sequence[Any],
    empty_row_indicator_shape: Sequence[Any],
) -> list[te.Tensor]:
    """Give each row without an element one, at its beginning.

    Parameters
    ----------
    sparse_indices, sparse_values : te.Tensor
        (elements, rank) and (elements,).
    dense_shape : te.Tensor
        (rank,).
    default_value : te.Tensor
        The new elements' value, of one element.
    new_sparse_indices_shape, new_sparse_values_shape, empty_row_indicator_shape : sequence
        The results' shapes.

    Returns
    -------
    list of te.Tensor
        The new indices and values in the order of rows, and which rows had no element.
    """
    count, rank = dims(sparse_indices.shape)
    rows, total = empty_row_indicator_shape[0], new_sparse_values_shape[0]
    kind = sparse_indices.dtype

    def body(ins: Sequence[tir.Buffer], outs: Sequence[tir.Buffer]) -> tir.Stmt:
        ib = tir.ir_builder.create()
        old, values = ib.buffer_ptr(ins[0]), ib.buffer_ptr(ins[1])
        default = tir.BufferLoad(ins[2], (tir.const(0, "int32"),) * len(ins[2].shape))
        indices, filled, is_empty, positions = [ib.buffer_ptr(x) for x in outs]
        _first_positions(ib, old, is_empty, positions, rows, count)
        with ib.for_range(0, rows, "r") as r, ib.if_scope(is_empty[r]):
            indices[positions[r], 0] = r.astype(kind)
            with ib.for_range(1, rank, "axis") as axis:
                indices[positions[r], axis] = tir.const(0, kind)
            filled[positions[r]] = default
        with ib.for_range(0, count, "i") as i, ib.if_scope(rows > 0):
            row = ib.let("row", old[i, 0].astype("int32"))
            at = ib.let("at", positions[row])
            with ib.if_scope(at < total):
                with ib.for_range(0, rank, "axis") as axis:
                    indices[at, axis] = old[i, axis]
                filled[at] = values[i]
            positions[row] = at + 1
        return ib.get()

    found = te.extern(
        [new_sparse_indices_shape, new_sparse_values_shape, empty_row_indicator_shape, (rows,)],
        [sparse_indices, sparse_values, default_value],
        body,
        dtype=[kind, sparse_values.dtype, "bool", "int32"],
        name="sparse_fill_empty_rows",
        tag="sparse_fill_empty_rows",
    )
    return list(found[:3])


def _first_positions(
    ib: IRBuilder, old: BufferVar, is_empty: BufferVar, next_slot: BufferVar, rows: Any, count: Any
) -> None:
    """Where each row begins once empty ones hold an element, and which are empty."""
    with ib.for_range(0, rows, "r") as r:
        next_slot[r] = 0
    with ib.for_range(0, count, "i") as i, ib.if_scope(rows > 0):
        row = ib.let("row", old[i, 0].astype("int32"))
        next_slot[row] = next_slot[row] + 1
    start = ib.allocate("int32", 1, "start", scope="local")
    start[0] = 0
    with ib.for_range(0, rows, "r") as r:
        elements = ib.allocate("int32", 1, "elements", scope="local")
        elements[0] = next_slot[r]
        is_empty[r] = equals(elements[0], 0)
        next_slot[r] = start[0]
        start[0] = start[0] + tir.max(elements[0], 1)


def sparse_fill_empty_rows_shapes(
    sparse_indices: te.Tensor, dense_shape: te.Tensor
) -> list[te.Tensor]:
    """The shapes of what `sparse_fill_empty_rows` gives, in int64."""
    count, rank = dims(sparse_indices.shape)
    rows_of = te.compute((count,), lambda i: sparse_indices[i, 0], "rows")
    order = argsort(rows_of, None, 0, True, "int32")

    def body(ins: Sequence[tir.Buffer], outs: Sequence[tir.Buffer]) -> tir.Stmt:
        ib = tir.ir_builder.create()
        row, by_row, extents = [ib.buffer_ptr(x) for x in ins]
        indices, values, rows = [ib.buffer_ptr(x) for x in outs]
        rows[0] = extents[0].astype("int64")
        # an element for each row, and those that are not the first of their row
        values[0] = rows[0]
        with ib.for_range(0, count, "i") as i, ib.if_scope(tir.all(i > 0, rows[0] > 0)):
            before = by_row[tir.max(i - 1, 0)]
            with ib.if_scope(tir.EQ(row[by_row[i]], row[before])):
                values[0] = values[0] + tir.const(1, "int64")
        indices[0] = values[0]
        indices[1] = tir.cast(rank, "int64")
        return ib.get()

    return list(
        te.extern(
            [(2,), (1,), (1,)],
            [rows_of, order, dense_shape],
            body,
            dtype=["int64"] * 3,
            name="sparse_fill_empty_rows_shapes",
        )
    )


def sparse_reshape(
    sparse_indices: te.Tensor,
    prev_shape: te.Tensor,
    new_shape: te.Tensor,
    new_sparse_indices_shape: Sequence[Any],
    new_shape_shape: Sequence[Any],
) -> list[te.Tensor]:
    """The indices of elements in a tensor of another shape.

    Parameters
    ----------
    sparse_indices : te.Tensor
        (elements, rank).
    prev_shape, new_shape : te.Tensor
        The dense shapes before and after; one extent of the new one may be -1.
    new_sparse_indices_shape, new_shape_shape : sequence
        The results' shapes.

    Returns
    -------
    list of te.Tensor
        The new indices, and the new shape without -1.
    """
    count, old_rank = dims(sparse_indices.shape)
    new_rank = dims(new_shape.shape)[0]
    kind = sparse_indices.dtype

    def body(ins: Sequence[tir.Buffer], outs: Sequence[tir.Buffer]) -> tir.Stmt:
        ib = tir.ir_builder.create()
        old, before, wanted = [ib.buffer_ptr(x) for x in ins]
        new, extents = [ib.buffer_ptr(x) for x in outs]
        _fill_missing(ib, before, wanted, extents, old_rank, new_rank)
        with ib.for_range(0, count, "i", kind="parallel") as i:
            flat = ib.allocate("int64", 1, "flat", scope="local")
            flat[0] = tir.const(0, "int64")
            for axis in range(old_rank):
                flat[0] = flat[0] * before[axis].astype("int64") + old[i, axis].astype("int64")
            for axis in reversed(range(new_rank)):
                extent = tir.max(extents[axis].astype("int64"), tir.const(1, "int64"))
                new[i, axis] = tir.truncmod(flat[0], extent).astype(kind)
                flat[0] = tir.truncdiv(flat[0], extent)
        return ib.get()

    return list(
        te.extern(
            [new_sparse_indices_shape, new_shape_shape],
            [sparse_indices, prev_shape, new_shape],
            body,
            dtype=[kind, new_shape.dtype],
            name="sparse_reshape",
            tag="sparse_reshape",
        )
    )


def _fill_missing(
    ib: IRBuilder,
    before: BufferVar,
    wanted: BufferVar,
    extents: BufferVar,
    old_rank: int,
    new_rank: int,
) -> None:
    """The new shape, with what -1 stands for."""
    total = ib.allocate("int64", 1, "total", scope="local")
    known = ib.allocate("int64", 1, "known", scope="local")
    total[0] = tir.const(1, "int64")
    known[0] = tir.const(1, "int64")
    for axis in range(old_rank):
        total[0] = total[0] * before[axis].astype("int64")
    for axis in range(new_rank):
        with ib.if_scope(wanted[axis] >= 0):
            known[0] = known[0] * wanted[axis].astype("int64")
    missing = tir.truncdiv(total[0], tir.max(known[0], tir.const(1, "int64")))
    for axis in range(new_rank):
        extents[axis] = tir.Select(wanted[axis] >= 0, wanted[axis], missing.astype(extents.dtype))
