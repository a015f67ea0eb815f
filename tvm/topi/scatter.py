"""Writing updates to places given by indices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm import te, tir
from tvm.ir.expr import PrimExpr

from .loops import load, nest, store
from .utils import dims

_COMBINE: dict[str, Callable[[Any, Any], PrimExpr]] = {
    "update": lambda old, new: new,
    "add": lambda old, new: old + new,
    "mul": lambda old, new: old * new,
    "min": lambda old, new: tir.min(old, new),
    "max": lambda old, new: tir.max(old, new),
}


def _copy(source: tir.Buffer, out: tir.Buffer, shape: tuple[Any, ...]) -> tir.Stmt:
    return nest("c", shape, lambda v: store(out, load(source, v), v))


def scatter_elements(
    data: te.Tensor,
    indices: te.Tensor,
    updates: te.Tensor,
    axis: int = 0,
    reduction: str = "update",
) -> te.Tensor:
    """Combine each update with the element its index names along an axis."""
    at = axis % len(data.shape)
    shape = dims(data.shape)
    combine = _COMBINE[reduction]

    def body(ins: list[tir.Buffer], outs: list[tir.Buffer]) -> tir.Stmt:
        source, where, news = ins
        out = outs[0]

        def one(v: list[tir.Var]) -> tir.Stmt:
            index = load(where, v)
            index = tir.if_then_else(index < 0, index + shape[at], index)
            place = [*v[:at], index, *v[at + 1 :]]
            return store(out, combine(load(out, place), load(news, v)), place)

        return tir.stmt_seq(_copy(source, out, shape), nest("u", dims(indices.shape), one))

    return te.extern(
        [data.shape], [data, indices, updates], body, name="scatter_elements", dtype=data.dtype
    )


def scatter_nd(
    data: te.Tensor, indices: te.Tensor, updates: te.Tensor, mode: str = "update"
) -> te.Tensor:
    """Combine slices of updates with the slices that index tuples name (first axis)."""
    shape = dims(data.shape)
    depth = int(dims(indices.shape)[0])
    picked = dims(indices.shape)[1:]
    combine = _COMBINE[mode]

    def body(ins: list[tir.Buffer], outs: list[tir.Buffer]) -> tir.Stmt:
        source, where, news = ins
        out = outs[0]

        def one(v: list[tir.Var]) -> tir.Stmt:
            tuple_at = v[: len(picked)]
            place = [load(where, [k, *tuple_at]) for k in range(depth)] + v[len(picked) :]
            return store(out, combine(load(out, place), load(news, v)), place)

        extents = [*picked, *shape[depth:]]
        return tir.stmt_seq(_copy(source, out, shape), nest("u", extents, one))

    return te.extern(
        [data.shape], [data, indices, updates], body, name="scatter_nd", dtype=data.dtype
    )
