"""Running sums and products along an axis."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm import te, tir
from tvm.ir.expr import PrimExpr

from .loops import load, loop, nest, store
from .shaping import reshape
from .utils import dims, prod


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
    at = axis % len(data.shape)
    shape = dims(data.shape)
    kind = dtype or data.dtype
    others = [d for i, d in enumerate(shape) if i != at]

    def body(ins: list[tir.Buffer], outs: list[tir.Buffer]) -> tir.Stmt:
        source, out = ins[0], outs[0]

        def row(v: list[tir.Var]) -> tir.Stmt:
            def place(k: Any) -> list[Any]:
                return [*v[:at], k, *v[at:]]

            def step(k: Any) -> tir.Stmt:
                if exclusive:
                    value = load(source, place(k)).astype(kind)
                    return store(out, binop(load(out, place(k)), value), place(k + 1))
                value = load(source, place(k + 1)).astype(kind)
                return store(out, binop(load(out, place(k)), value), place(k + 1))

            first = (
                tir.const(identity_value, kind)
                if exclusive
                else load(source, place(0)).astype(kind)
            )
            steps = loop("k", shape[at] - 1, step)
            return tir.stmt_seq(store(out, first, place(0)), steps)

        return nest("i", others, row)

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
