"""Reductions along axes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from tvm import te, tir
from tvm.error import TVMError
from tvm.ir import structural_equal
from tvm.ir.expr import PrimExpr

from . import tag
from .math import elementwise
from .utils import dims, equals, ravel_index, real_axis


def real_axes(ndim: int, axis: int | Sequence[int] | None) -> list[int]:
    """Axes in order, counted from the front.

    Parameters
    ----------
    ndim : int
        The number of dimensions.
    axis : int or sequence of int, optional
        The axes, all by default; negative ones count from the end.

    Returns
    -------
    list of int
        Each axis once.
    """
    if axis is None:
        return list(range(ndim))
    named = [axis] if isinstance(axis, int) else list(axis)
    return sorted({real_axis(a, ndim) for a in named})


def reduce_axes(
    data: te.Tensor,
    axis: int | Sequence[int] | None,
    keepdims: bool,
    function: Callable[..., Any],
    name: str,
    combine: Callable[[Callable[[Sequence[Any]], PrimExpr], list[Any], list[Any]], Any]
    | None = None,
    tag_name: str = tag.COMM_REDUCE,
) -> Any:
    """The reduction `function(expr, axis=...)` of a tensor along axes.

    Parameters
    ----------
    data : te.Tensor
        The tensor.
    axis : int or sequence of int, optional
        The axes, all by default.
    keepdims : bool
        Whether they stay, with extent 1.
    function : callable
        The reducer.
    name : str
        The name of the new stage.
    combine : callable, optional
        Makes the reduction of a function that loads an element, the indices and the axes.
    tag_name : str
        The tag of the new stage.

    Returns
    -------
    te.Tensor or list of te.Tensor
        Without the axes; several where the reducer has several results.
    """
    ndim = len(data.shape)
    axes = real_axes(ndim, axis)
    reduced = [te.reduce_axis((0, data.shape[a]), name=f"k{a}") for a in axes]
    if keepdims:
        shape = [1 if i in axes else d for i, d in enumerate(data.shape)]
    else:
        shape = [d for i, d in enumerate(data.shape) if i not in axes]

    def body(*indices: Any) -> Any:
        kept = iter([v for i, v in enumerate(indices) if i not in axes] if keepdims else indices)
        ks = iter(reduced)
        full = [next(ks).var if i in axes else next(kept) for i in range(ndim)]
        if combine is not None:
            return combine(lambda at: data(*at), full, reduced)
        return function(data(*full), axis=reduced)

    return te.compute(shape, body, name=name, tag=tag_name)


def _reduction(name: str, function: Callable[..., PrimExpr]) -> Callable[..., te.Tensor]:
    def build(
        data: te.Tensor, axis: int | Sequence[int] | None = None, keepdims: bool = False
    ) -> te.Tensor:
        if not real_axes(len(data.shape), axis):
            return elementwise(data, lambda v: v, f"T_{name}")
        # truth values are added as `topi.add` does
        reducer = _any if name == "sum" and data.dtype == "bool" else function
        out: te.Tensor = reduce_axes(data, axis, keepdims, reducer, f"{data.op.name}_red")
        return out

    build.__name__ = build.__qualname__ = name
    build.__doc__ = f"""`{name}` along axes.

    Parameters
    ----------
    data : te.Tensor
        The tensor.
    axis : int or sequence of int, optional
        The axes, all by default; negative ones count from the end.
    keepdims : bool
        Whether they stay, with extent 1.

    Returns
    -------
    te.Tensor
        Of the dtype of `data`, without the axes.
    """
    return build


_prod = tir.comm_reducer(lambda x, y: x * y, lambda dtype: tir.const(1, dtype), name="prod")
_all = tir.comm_reducer(
    lambda x, y: tir.all(x, y), lambda dtype: tir.const(True, dtype), name="all"
)
_any = tir.comm_reducer(
    lambda x, y: tir.any(x, y), lambda dtype: tir.const(False, dtype), name="any"
)

sum = _reduction("sum", te.sum)
max = _reduction("max", te.max)
min = _reduction("min", te.min)
prod = _reduction("prod", _prod)
all = _reduction("all", _all)
any = _reduction("any", _any)


def _arg_reducer(
    name: str,
    better: Callable[[Any, Any], PrimExpr],
    identity: Callable[[Any], PrimExpr],
    last: bool,
) -> Any:
    """The position and value of what is best; NaN is better than every number, as in numpy."""

    def beats(a: Any, b: Any, earlier: PrimExpr) -> PrimExpr:
        if not a.dtype.is_float:
            return tir.any(better(a, b), tir.all(tir.EQ(a, b), earlier))
        a_is_nan, b_is_number = tir.NE(a, a), tir.EQ(b, b)
        tie = tir.all(earlier, tir.any(tir.EQ(a, b), a_is_nan))
        return tir.any(better(a, b), tir.all(a_is_nan, b_is_number), tie)

    def combine(lhs: Any, rhs: Any) -> tuple[PrimExpr, PrimExpr]:
        earlier = lhs[0] > rhs[0] if last else lhs[0] < rhs[0]
        # the identity's index is -1: any other wins, whatever its value, which is the greatest
        # or least there is and must not be computed with
        wins = tir.all(lhs[0] >= 0, tir.any(rhs[0] < 0, beats(lhs[1], rhs[1], earlier)))
        return tir.Select(wins, lhs[0], rhs[0]), tir.Select(wins, lhs[1], rhs[1])

    return tir.comm_reducer(combine, lambda t0, t1: (tir.const(-1, t0), identity(t1)), name=name)


def _arg_reduction(
    data: te.Tensor,
    axis: int | Sequence[int] | None,
    keepdims: bool,
    reducer: Any,
    name: str,
) -> te.Tensor:
    axes = real_axes(len(data.shape), axis)
    if not axes:
        return te.compute(data.shape, lambda *_: tir.const(0, "int32"), name=f"T_{name}")

    extents = dims([data.shape[a] for a in axes])
    known = [extent for extent in extents if isinstance(extent, int)]
    if 0 in known:
        raise TVMError(f"topi.{name} requires an element along its axes, got none: {data.shape}")
    # positions in a row of more elements than int32 counts
    kind = "int32" if math.prod(known) < 1 << 31 else "int64"

    def combine(
        load: Callable[[Sequence[Any]], PrimExpr], at: list[Any], reduced: list[Any]
    ) -> Any:
        position = ravel_index([iv.var.astype(kind) for iv in reduced], extents)
        return reducer((position, load(at)), axis=reduced)

    found = reduce_axes(
        data, axis, keepdims, reducer, f"{data.op.name}_red_temp", combine, tag.COMM_REDUCE_IDX
    )
    index = found[0]
    return te.compute(
        index.shape, lambda *i: index(*i).astype(kind), f"{data.op.name}_red", tag.COMM_REDUCE
    )


def argmax(
    data: te.Tensor,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    select_last_index: bool = False,
) -> te.Tensor:
    """The position of the largest element along axes; that of a NaN if there is one.

    Parameters
    ----------
    data : te.Tensor
        The tensor.
    axis : int or sequence of int, optional
        The axes, all by default.
    keepdims : bool
        Whether they stay, with extent 1.
    select_last_index : bool
        Whether the last of several equal elements counts, instead of the first.

    Returns
    -------
    te.Tensor
        Positions in the flattened axes, without them; int32, or int64 where those do not fit.

    Raises
    ------
    TVMError
        If there is no element along the axes.
    """
    reducer = _arg_reducer("argmax", lambda a, b: a > b, tir.min_value, select_last_index)
    return _arg_reduction(data, axis, keepdims, reducer, "argmax")


def argmin(
    data: te.Tensor,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    select_last_index: bool = False,
) -> te.Tensor:
    """The position of the smallest element along axes; that of a NaN if there is one.

    Parameters
    ----------
    data : te.Tensor
        The tensor.
    axis : int or sequence of int, optional
        The axes, all by default.
    keepdims : bool
        Whether they stay, with extent 1.
    select_last_index : bool
        Whether the last of several equal elements counts, instead of the first.

    Returns
    -------
    te.Tensor
        Positions in the flattened axes, without them; int32, or int64 where those do not fit.

    Raises
    ------
    TVMError
        If there is no element along the axes.
    """
    reducer = _arg_reducer("argmin", lambda a, b: a < b, tir.max_value, select_last_index)
    return _arg_reduction(data, axis, keepdims, reducer, "argmin")


def collapse_sum(data: te.Tensor, target_shape: Sequence[Any]) -> te.Tensor:
    """Sum over axes to reach a shape from which the tensor's could be broadcast."""
    have, want = dims(data.shape), dims(target_shape)
    leading = len(have) - len(want)
    spans = [*have[:leading], *[_span(*d) for d in zip(have[leading:], want, strict=True)]]
    reduced = {
        a: te.reduce_axis((0, n), name=f"k{a}")
        for a, n in enumerate(spans)
        if a < leading or not isinstance(n, int) or n != 1
    }
    if not reduced:
        return elementwise(data, lambda v: v, "T_collapse_sum")

    def place(a: int, indices: Sequence[Any]) -> Any:
        if a not in reduced:
            return indices[a - leading]
        k = reduced[a].var
        # where only the run knows whether the axis goes away, one of them is zero
        is_open = a >= leading and not isinstance(want[a - leading], int)
        return indices[a - leading] + k if is_open else k

    def body(*indices: Any) -> Any:
        at = [place(a, indices) for a in range(len(have))]
        return te.sum(data(*at), axis=list(reduced.values()))

    return te.compute(list(target_shape), body, name="T_collapse_sum", tag=tag.COMM_REDUCE)


def _span(have: Any, want: Any) -> Any:
    """How many elements along an axis one sum takes."""
    if isinstance(want, int):
        return have if want == 1 else 1
    if have is want or structural_equal(have, want):
        return 1
    return tir.Select(equals(want, 1), have, tir.const(1, want.dtype))


__all__ = [
    "all",
    "any",
    "argmax",
    "argmin",
    "collapse_sum",
    "max",
    "min",
    "prod",
    "real_axes",
    "reduce_axes",
    "sum",
]
