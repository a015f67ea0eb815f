"""Repetition and scattering of elements."""

from __future__ import annotations

from typing import Any

from tvm import topi
from tvm.relax.expr import Call
from tvm.tir import IntImm

from .infer import (
    axis_of,
    dims_of,
    fail,
    is_number,
    made,
    product,
    simplified,
    tensors,
)
from .legalize import topi_call
from .operator import Expr, Int, Ints, operator

# ---- repetition


def _infer_repeat(call: Any, bb: Any) -> Any:
    """A tensor of the dtype of `data`, whose axis is `repeats` times as long; flat without an axis."""
    info = tensors(call, 1)[0]
    axis, repeats = call.attrs.axis, call.attrs.repeats
    if axis is not None and info.ndim >= 0:
        axis = axis_of(call, axis, info.ndim)
    dims = dims_of(info)
    if dims is None:
        if repeats == 1 and (axis is not None or info.ndim == 1):
            return info
        return made(None, info.dtype, info.vdevice, info.ndim if axis is not None else 1)
    if axis is None:
        total = simplified(product(dims) * repeats)
        return made((total,), info.dtype, info.vdevice)
    new = list(dims)
    new[axis] = simplified(new[axis] * repeats)
    return made(new, info.dtype, info.vdevice)


def _legalize_repeat(bb: Any, call: Call) -> Any:
    def compute(x: Any, repeats: int, axis: Any) -> Any:
        if axis is None:
            total = product(x.shape)
            return topi.repeat(topi.reshape(x, [total]), repeats, 0)
        return topi.repeat(x, repeats, axis)

    return bb.call_te(
        compute, call.args[0], call.attrs.repeats, call.attrs.axis, primfunc_name_hint="repeat"
    )


@operator("relax.repeat", "RepeatAttrs", infer=_infer_repeat, FLegalize=_legalize_repeat)
def repeat(data: Expr, repeats: Int, axis: int | None = None) -> Expr:
    """Each element several times.

    Parameters
    ----------
    data : relax.Expr
        The tensor.
    repeats : int
        How often.
    axis : int, optional
        The axis; by default the tensor is flattened.
    """


def _infer_tile(call: Any, bb: Any) -> Any:
    """A tensor of the dtype of `data`: the shape and `repeats` are filled up by ones in front, and
    multiplied."""
    info = tensors(call, 1)[0]
    repeats = call.attrs.repeats
    dims = dims_of(info)
    if dims is None:
        if info.ndim < 0:
            return made(None, info.dtype, info.vdevice)
        if all([r == 1 for r in repeats]) and len(repeats) <= info.ndim:
            return info
        return made(None, info.dtype, info.vdevice, max(len(repeats), info.ndim))
    count = max(len(repeats), len(dims))
    ones = [IntImm("int64", 1)]
    old = [*ones * (count - len(dims)), *dims]
    times = [*[1] * (count - len(repeats)), *repeats]
    new = [simplified(d * t) for d, t in zip(old, times, strict=True)]
    return made(new, info.dtype, info.vdevice)


@operator(
    "relax.tile", "TileAttrs", infer=_infer_tile, FLegalize=topi_call(topi.tile, "tile", "repeats")
)
def tile(data: Expr, repeats: Ints) -> Expr:
    """The whole tensor several times.

    Parameters
    ----------
    data : relax.Expr
        The tensor.
    repeats : int or list of int
        How often along each axis, from the last.
    """


def _infer_flip(call: Any, bb: Any) -> Any:
    """A tensor of the shape and dtype of the operand."""
    info = tensors(call, 1)[0]
    if info.ndim >= 0:
        axis_of(call, call.attrs.axis, info.ndim)
    return info


@operator(
    "relax.flip", "FlipAttrs", infer=_infer_flip, FLegalize=topi_call(topi.flip, "flip", "axis")
)
def flip(data: Expr, axis: Int) -> Expr:
    """The elements in reverse order along an axis.

    Parameters
    ----------
    data : relax.Expr
        The tensor.
    axis : int
        The axis.
    """


# ---- scattering


def _infer_scatter_elements(call: Any, bb: Any) -> Any:
    """A tensor of the shape and dtype of `data`."""
    data, indices, updates = tensors(call, 3)
    ndims = [i.ndim for i in (data, indices, updates)]
    known = {n for n in ndims if n >= 0}
    if len(known) > 1:
        raise fail(call, f"requires tensors of one rank, got {ndims}")
    if data.ndim >= 0:
        axis_of(call, call.attrs.axis, data.ndim)
    if not data.dtype.is_void and not updates.dtype.is_void and data.dtype != updates.dtype:
        raise fail(call, f"requires updates of {data.dtype}, got {updates.dtype}")
    if not indices.dtype.is_void and not indices.dtype.is_int:
        raise fail(call, f"requires indices of an integer dtype, got {indices.dtype}")
    a, b = dims_of(indices), dims_of(updates)
    if a is not None and b is not None:
        for x, y in zip(a, b, strict=True):
            if is_number(x) and is_number(y) and x.value != y.value:
                raise fail(call, "requires indices and updates of one shape")
    if dims_of(data) is not None:
        return made(data.shape, data.dtype, data.vdevice)
    return made(None, data.dtype, data.vdevice, data.ndim)


def _legalize_scatter(bb: Any, call: Call) -> Any:
    return bb.call_te(topi.scatter_elements, *call.args, call.attrs.axis, call.attrs.reduction)


@operator(
    "relax.scatter_elements",
    "ScatterElementsAttrs",
    infer=_infer_scatter_elements,
    FLegalize=_legalize_scatter,
)
def scatter_elements(
    data: Expr, indices: Expr, updates: Expr, axis: int = 0, reduction: str = "update"
) -> Expr:
    """A tensor with some elements along an axis replaced or combined.

    Parameters
    ----------
    data : relax.Expr
        The tensor.
    indices : relax.Expr
        Where along the axis.
    updates : relax.Expr
        The new elements.
    axis : int
        The axis.
    reduction : str
        ``"update"``, ``"add"``, ``"mul"``, ``"mean"``, ``"max"`` or ``"min"``.
    """


def _infer_scatter_nd(call: Any, bb: Any) -> Any:
    """A tensor of the shape and dtype of `data`."""
    data, indices, updates = tensors(call, 3)
    if not data.dtype.is_void and not updates.dtype.is_void and data.dtype != updates.dtype:
        raise fail(call, f"requires updates of {data.dtype}, got {updates.dtype}")
    if not indices.dtype.is_void and not indices.dtype.is_int:
        raise fail(call, f"requires indices of an integer dtype, got {indices.dtype}")
    if data.shape is not None:
        return made(data.shape, data.dtype, data.vdevice)
    return made(None, data.dtype, data.vdevice, data.ndim)


def _legalize_scatter_nd(bb: Any, call: Call) -> Any:
    def compute(data: Any, indices: Any, updates: Any, mode: str) -> Any:
        last = len(indices.shape) - 1
        moved = topi.transpose(indices, axes=[last, *range(last)])
        return topi.scatter_nd(data, moved, updates, mode)

    return bb.call_te(compute, *call.args, call.attrs.reduction, primfunc_name_hint="scatter_nd")


@operator(
    "relax.scatter_nd", "ScatterNDAttrs", infer=_infer_scatter_nd, FLegalize=_legalize_scatter_nd
)
def scatter_nd(data: Expr, indices: Expr, updates: Expr, reduction: str = "update") -> Expr:
    """A tensor with slices replaced or combined.

    Parameters
    ----------
    data : relax.Expr
        The tensor.
    indices : relax.Expr
        Of the slices, along the last axis.
    updates : relax.Expr
        The new slices.
    reduction : str
        ``"update"``, ``"add"``, ``"mul"``, ``"max"`` or ``"min"``.
    """
