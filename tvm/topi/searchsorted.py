"""Binary search of values in sorted rows."""

from __future__ import annotations

from tvm import te, tir

from .loops import load, store
from .utils import dims, prod, unravel_index


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
            value = load(ins[1], at)
            low = ib.allocate("int64", 1, "low", scope="local")
            high = ib.allocate("int64", 1, "high", scope="local")
            low[0] = tir.const(0, "int64")
            high[0] = (
                tir.const(extent, "int64") if isinstance(extent, int) else extent.astype("int64")
            )
            with ib.while_loop(low[0] < high[0]):
                middle = ib.let("middle", tir.floordiv(low[0] + high[0], 2))
                there = load(ins[0], [middle] if shared else [*at[:-1], middle])
                with ib.if_scope(there <= value if right else there < value):
                    low[0] = middle + 1
                with ib.else_scope():
                    high[0] = middle
            ib.emit(store(outs[0], low[0].astype(out_dtype), at))
        return ib.get()

    return te.extern(
        [values.shape], [sorted_sequence, values], body, name="searchsorted", dtype=out_dtype
    )
