"""Running sums and products along an axis."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm import te, tir
from tvm.ir.expr import PrimExpr

from .loops import load, loop, nest, store
from .shaping import reshape
from .utils import dims, prod, real_axis


def scanop(
    data: te.Tensor,
    binop: Callable[[Any, Any], PrimExpr],
    identity_value: float,
    op_name: str,
    axis: int | None = None,
    dtype: str | None = None,
    exclusive: bool | None = None,
) -> te.Tensor:
    """The running combination along an axis (of the flattened tensor without one).

    Parameters
    ----------
    data : te.Tensor
        The tensor.
    binop : callable
        Combines two elements.
    identity_value : float
        The combination of nothing.
    op_name : str
        The operation's name.
    axis : int, optional
        The axis.
    dtype : str, optional
        The dtype of the results, the data's by default.
    exclusive : bool, optional
        Leave each element out of its own combination.
    """
    if axis is None:
        data, axis = reshape(data, (prod(dims(data.shape)),)), 0
    at = real_axis(axis, len(data.shape))
    shape = dims(data.shape)
    kind, trailing = dtype or data.dtype, shape[at + 1 :]

    def body(ins: list[tir.Buffer], outs: list[tir.Buffer]) -> tir.Stmt:
        source, out = ins[0], outs[0]

        def given(place: list[Any]) -> PrimExpr:
            return load(source, place).astype(kind)

        def slab(lead: list[tir.Var]) -> tir.Stmt:
            # neighbours along the trailing axes go through their sums side by side
            def first(trail: list[tir.Var]) -> tir.Stmt:
                place = [*lead, 0, *trail]
                start = tir.const(identity_value, kind) if exclusive else given(place)
                return store(out, start, place)

            def step(k: Any, trail: list[tir.Var]) -> tir.Stmt:
                before, after = [*lead, k, *trail], [*lead, k + 1, *trail]
                value = given(before if exclusive else after)
                return store(out, binop(load(out, before), value), after)

            steps = loop("k", shape[at] - 1, lambda k: nest("j", trailing, lambda v: step(k, v)))
            return tir.stmt_seq(nest("j", trailing, first), steps)

        # nothing is first on an axis of extent 0
        sums = nest("i", shape[:at], slab)
        return tir.IfThenElse(shape[at] > 0, sums)

    return te.extern([data.shape], [data], body, name=op_name, dtype=kind)


def cumsum(
    data: te.Tensor,
    axis: int | None = None,
    dtype: str | None = None,
    exclusive: bool | None = None,
) -> te.Tensor:
    """Running sums."""
    return scanop(data, lambda a, b: a + b, 0, "cumsum_generic", axis, dtype, exclusive)


def cumprod(
    data: te.Tensor,
    axis: int | None = None,
    dtype: str | None = None,
    exclusive: bool | None = None,
) -> te.Tensor:
    """Running products."""
    return scanop(data, lambda a, b: a * b, 1, "cumprod_generic", axis, dtype, exclusive)
