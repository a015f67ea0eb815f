"""Repetition of elements."""

from __future__ import annotations

from typing import Any

from tvm import topi
from tvm.relax.expr import Call
from tvm.tir import IntImm

from .infer import (
    axis_of,
    dims_of,
    made,
    product,
    simplified,
    tensors,
)
from .legalize import topi_call
from .operator import Expr, Int, Ints, operator


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
