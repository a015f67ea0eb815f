"""Writing updates to positions given by indices.

An index may count from the end; updates whose position lies outside are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

from tvm import te, tir
from tvm.ir.expr import PrimExpr
from tvm.te import tensor_ops

from .broadcast import added
from .loops import load, nest, store
from .utils import dims, real_axis, wide_index

_COMBINE: dict[str, Callable[[Any, Any], PrimExpr]] = {
    "update": lambda old, new: new,
    "add": added,
    "mul": lambda old, new: old * new,
    "min": lambda old, new: tir.min(old, new),
    "max": lambda old, new: tir.max(old, new),
    "mean": lambda old, new: tir.div(old + new, tir.const(2, old.dtype)),
}


def _copy(source: tir.Buffer, out: tir.Buffer, shape: tuple[Any, ...]) -> tir.Stmt:
    return nest("c", shape, lambda v: store(out, load(source, v), v))


def _from_front(index: PrimExpr, extent: Any) -> PrimExpr:
    index = wide_index(index)
    return tir.Select(index < 0, index + extent, index)


def _is_inside(index: PrimExpr, extent: Any) -> PrimExpr:
    return tir.all(index >= 0, index < extent)


def scatter_elements(
    data: te.Tensor,
    indices: te.Tensor,
    updates: te.Tensor,
    axis: int = 0,
    reduction: str = "update",
) -> te.Tensor:
    """Combine each update with the element its index names along an axis.

    Parameters
    ----------
    data, indices, updates : te.Tensor
        The tensor, the indices, and one update for each.
    axis : int
        The axis.
    reduction : str
        "update", "add", "mul", "min", "max", or "mean": of the element so far and the update.
    """
    at = real_axis(axis, len(data.shape))
    shape = dims(data.shape)
    combine = _COMBINE[reduction]

    def body(ins: list[tir.Buffer], outs: list[tir.Buffer]) -> tir.Stmt:
        source, where, news = ins
        out = outs[0]

        def one(v: list[tir.Var]) -> tir.Stmt:
            index = _from_front(load(where, v), shape[at])
            position = [*v[:at], index, *v[at + 1 :]]
            write = store(out, combine(load(out, position), load(news, v)), position)
            return tir.IfThenElse(_is_inside(index, shape[at]), write)

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
            indices_of = [load(where, [k, *tuple_at]) for k in range(depth)]
            found = [_from_front(i, n) for i, n in zip(indices_of, shape, strict=False)]
            position = [*found, *v[len(picked) :]]
            write = store(out, combine(load(out, position), load(news, v)), position)
            inside = [_is_inside(i, n) for i, n in zip(found, shape, strict=False)]
            return tir.IfThenElse(tir.all(*inside), write) if inside else write

        extents = [*picked, *shape[depth:]]
        return tir.stmt_seq(_copy(source, out, shape), nest("u", extents, one))

    return te.extern(
        [data.shape], [data, indices, updates], body, name="scatter_nd", dtype=data.dtype
    )


def index_put(
    data: te.Tensor, indices: Sequence[te.Tensor], values: te.Tensor, accumulate: bool = False
) -> te.Tensor:
    """Put values where one index tensor for each of the leading axes says; the indices broadcast.

    Parameters
    ----------
    data : te.Tensor
        The tensor.
    indices : sequence of te.Tensor
        The indices of the leading axes.
    values : te.Tensor
        What broadcasts to the indices' shape, followed by the axes without indices.
    accumulate : bool
        Whether values are added, rather than put in the place of elements.

    Returns
    -------
    te.Tensor
        A tensor of the shape of ``data``.
    """
    shape, depth = dims(data.shape), len(indices)
    picked = reduce(tensor_ops.broadcast_shape, [i.shape for i in indices])
    target = [*dims(picked), *shape[depth:]]
    combine = _COMBINE["add" if accumulate else "update"]

    def body(ins: list[tir.Buffer], outs: list[tir.Buffer]) -> tir.Stmt:
        source, news, *where = ins
        out = outs[0]

        def one(v: list[tir.Var]) -> tir.Stmt:
            lead = v[: len(picked)]
            given = [
                load(i, list(tensor_ops.broadcast_indices(lead, i.shape, picked))) for i in where
            ]
            found = [_from_front(i, n) for i, n in zip(given, shape, strict=False)]
            position = [*found, *v[len(picked) :]]
            new = load(news, list(tensor_ops.broadcast_indices(v, news.shape, target)))
            write = store(out, combine(load(out, position), new), position)
            inside = [_is_inside(i, n) for i, n in zip(found, shape, strict=False)]
            return tir.IfThenElse(tir.all(*inside), write)

        return tir.stmt_seq(_copy(source, out, shape), nest("u", target, one))

    return te.extern(
        [data.shape], [data, values, *indices], body, name="index_put", dtype=data.dtype
    )
