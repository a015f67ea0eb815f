"""The positions of elements that are not zero."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tvm import te, tir
from tvm.error import RuntimeValueError
from tvm.ir.expr import PrimExpr

from .loops import load
from .utils import dims, prod, unravel_index


def argwhere(output_shape: Any, condition: te.Tensor) -> te.Tensor:
    """The indices of the elements that are not zero, in row-major order.

    Parameters
    ----------
    output_shape : sequence, or te.Tensor of that shape
        (how many, the rank of the condition); more are left out.
    condition : te.Tensor
        Any tensor.

    Returns
    -------
    te.Tensor
        One row of int32 for each element found.
    """
    wanted = output_shape.shape if isinstance(output_shape, te.Tensor) else output_shape
    shape = dims(condition.shape)

    def body(ins: Sequence[tir.Buffer], outs: Sequence[tir.Buffer]) -> tir.Stmt:
        ib = tir.ir_builder.create()
        rows = ib.buffer_ptr(outs[0])
        count = ib.allocate("int32", 1, "count", scope="local")
        count[0] = 0
        with ib.for_range(0, prod(shape), "i") as i:
            at = unravel_index(i, shape)
            found = tir.all(is_nonzero(load(ins[0], at)), count[0] < wanted[0])
            with ib.if_scope(found):
                for axis, index in enumerate(at):
                    rows[count[0], axis] = tir.cast(index, "int32")
                count[0] = count[0] + 1
        return ib.get()

    return te.extern(
        [tuple(wanted)], [condition], body, dtype="int32", name="argwhere", tag="argwhere"
    )


def _of_rank(rank: int) -> Callable[[Any, te.Tensor], te.Tensor]:
    def build(output_shape: Any, condition: te.Tensor) -> te.Tensor:
        if len(condition.shape) != rank:
            raise RuntimeValueError(
                f"hybrid_argwhere_{rank}d requires a condition of {rank} dimensions, got "
                f"{len(condition.shape)}"
            )
        return argwhere(output_shape, condition)

    build.__name__ = build.__qualname__ = f"hybrid_argwhere_{rank}d"
    build.__doc__ = f"As `argwhere`, of a condition of {rank} dimensions."
    return build


hybrid_argwhere_1d, hybrid_argwhere_2d = _of_rank(1), _of_rank(2)
hybrid_argwhere_3d, hybrid_argwhere_4d, hybrid_argwhere_5d = [_of_rank(n) for n in (3, 4, 5)]


def count_nonzero(condition: te.Tensor, rank: int) -> te.Tensor:
    """(how many elements are not zero, rank): the shape of what `argwhere` gives, in int64."""
    shape = dims(condition.shape)

    def body(ins: Sequence[tir.Buffer], outs: Sequence[tir.Buffer]) -> tir.Stmt:
        ib = tir.ir_builder.create()
        out = ib.buffer_ptr(outs[0])
        out[0] = tir.const(0, "int64")
        out[1] = tir.const(rank, "int64")
        with ib.for_range(0, prod(shape), "i") as i:
            found = is_nonzero(load(ins[0], unravel_index(i, shape)))
            out[0] = out[0] + found.astype("int64")
        return ib.get()

    return te.extern([(2,)], [condition], body, dtype="int64", name="argwhere_shape")


def is_nonzero(value: PrimExpr) -> PrimExpr:
    """Whether an element counts as true."""
    return value if value.dtype == "bool" else tir.NE(value, tir.const(0, value.dtype))
