"""Binary search of values in sorted rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm import te, tir
from tvm.ir.expr import PrimExpr
from tvm.tir.ir_builder import IRBuilder

from .loops import load, store
from .utils import cast_scalar, dims, prod, unravel_index


def searchsorted(
    sorted_sequence: te.Tensor, values: te.Tensor, right: bool = False, out_dtype: str = "int64"
) -> te.Tensor:
    """Where each value would be inserted so that its row stays sorted.

    Parameters
    ----------
    sorted_sequence : te.Tensor
        Rows sorted in ascending order: one for all values, or one for each row of values.
    values : te.Tensor
        What to look for; all but the last dimension equal those of the sequence unless that has one.
    right : bool
        Behind the elements that equal the value, rather than before them.
    out_dtype : str
        The indices' dtype.
    """
    extent = dims(sorted_sequence.shape)[-1]
    shared = len(sorted_sequence.shape) == 1

    def body(ins: list[tir.Buffer], outs: list[tir.Buffer]) -> tir.Stmt:
        ib = tir.ir_builder.create()
        shape = dims(values.shape)
        with ib.for_range(0, prod(shape), name="i", kind="parallel") as flat:
            at = unravel_index(flat, shape)
            row = [] if shared else at[:-1]
            found = _place(ib, extent, lambda k: load(ins[0], [*row, k]), load(ins[1], at), right)
            ib.emit(store(outs[0], found.astype(out_dtype), at))
        return ib.get()

    return te.extern(
        [values.shape], [sorted_sequence, values], body, name="searchsorted", dtype=out_dtype
    )


def binary_search(
    ib: IRBuilder,
    sequence_offset: Any,
    search_range: Any,
    sorted_sequence: Any,
    value: PrimExpr,
    right: bool,
    out_dtype: str,
) -> PrimExpr:
    """Where a value would be inserted in a part of a flat buffer that is sorted.

    Parameters
    ----------
    ib : tvm.tir.ir_builder.IRBuilder
        Takes the statements of the search.
    sequence_offset, search_range : PrimExpr
        Where the part begins and how many elements it has.
    sorted_sequence : BufferVar
        The buffer.
    value : PrimExpr
        What to look for.
    right : bool
        Behind the elements that equal the value, rather than before them.
    out_dtype : str
        The position's dtype.
    """
    found = _place(ib, search_range, lambda k: sorted_sequence[sequence_offset + k], value, right)
    return found.astype(out_dtype)


def _place(
    ib: IRBuilder,
    extent: Any,
    element: Callable[[PrimExpr], PrimExpr],
    value: PrimExpr,
    right: bool,
) -> PrimExpr:
    low = ib.allocate("int64", 1, "low", scope="local")
    high = ib.allocate("int64", 1, "high", scope="local")
    low[0] = tir.const(0, "int64")
    high[0] = cast_scalar(extent, "int64")
    with ib.while_loop(low[0] < high[0]):
        middle = ib.let("middle", tir.floordiv(low[0] + high[0], 2))
        there = element(middle)
        with ib.if_scope(there <= value if right else there < value):
            low[0] = middle + 1
        with ib.else_scope():
            high[0] = middle
    position: PrimExpr = low[0]
    return position
