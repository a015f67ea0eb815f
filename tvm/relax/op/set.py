"""Tensors as sets."""

from __future__ import annotations

from typing import Any

import numpy as np

import tvm
from tvm.relax.struct_info import PrimStructInfo, TensorStructInfo, TupleStructInfo
from tvm.tir import IntImm

from .infer import axis_of, check_count, dims_of, fail, made, tensor, tensors
from .operator import Expr, OptExpr, operator


def _infer_unique(call: Any, bb: Any) -> Any:
    """The values, a tensor of the dtype of `x`; with indices, inverse indices or counts, which are
    int64 vectors, a tuple of all."""
    check_count(call, 5, 6)
    info = tensor(call, 0)
    axis = None
    if len(call.args) == 6:
        known = call.args[5].struct_info
        if not isinstance(known, PrimStructInfo) or not isinstance(known.value, IntImm):
            raise fail(call, f"requires a number as axis, got {known}")
        axis = known.value.value
        if info.ndim >= 0:
            axis = axis_of(call, axis, info.ndim)
    flags = [bool(arg.value.value) for arg in call.args[1:5]]
    if axis is None or info.ndim == 0:
        first = made(None, info.dtype, info.vdevice, 1)
    else:
        first = made(None, info.dtype, info.vdevice, info.ndim)
    if info.ndim == 0:
        first = made((1,), info.dtype, info.vdevice)
    one = made((1,), "int64", info.vdevice) if info.ndim == 0 else None
    counted = one or made(None, "int64", info.vdevice, 1)
    inverse = one or _inverse(info, axis)
    extra = [
        part for wanted, part in zip(flags[1:], (counted, inverse, counted), strict=True) if wanted
    ]
    return TupleStructInfo([first, *extra]) if extra else first


def _inverse(info: Any, axis: int | None) -> Any:
    return made(None, "int64", info.vdevice, 1)


@operator("relax.unique", infer=_infer_unique, FCallPacked="relax.run.unique")
def unique(
    x: Expr,
    sorted: Expr = True,
    return_index: Expr = False,
    return_inverse: Expr = False,
    return_counts: Expr = False,
    axis: OptExpr = None,
) -> Expr:
    """The elements, or slices along an axis, that differ.

    Parameters
    ----------
    x : relax.Expr
        The tensor.
    sorted : bool
        Whether they are in order.
    return_index, return_inverse, return_counts : bool
        Whether their first indices, the index of each element among them and their counts are
        returned too.
    axis : int, optional
        The axis; by default elements.
    """


@tvm.register_func("relax.run.unique", override=True)
def numpy_unique(
    x: Any,
    sorted: int,
    return_index: int,
    return_inverse: int,
    return_counts: int,
    axis: int | None = None,
) -> Any:
    """The same at run time, by numpy."""
    array = x.numpy()
    found: list[Any] = list(
        np.unique(
            array,
            True,
            bool(return_inverse),
            bool(return_counts),
            axis,  # type: ignore[call-overload]
        )
    )
    index = found[1]
    if return_inverse:
        found[2] = found[2].reshape(-1)
    if not sorted:
        order = np.argsort(index)
        found[0] = np.take(found[0], order, axis=axis or 0)
        found[1] = index[order]
        if return_inverse:
            rank = np.empty_like(order)
            rank[order] = np.arange(len(order))
            found[2] = rank[found[2]]
        if return_counts:
            found[-1] = found[-1][order]
    if not return_index:
        del found[1]
    arrays = [tvm.nd.array(np.ascontiguousarray(a)) for a in found]
    return arrays[0] if len(arrays) == 1 else tvm.runtime.convert(arrays)


def _infer_nonzero(call: Any, bb: Any) -> Any:
    """A tensor of dtype int64, with a row for each dimension of `x`."""
    info = tensors(call, 1)[0]
    ndim = -1 if info.ndim < 0 else max(info.ndim, 1) + 1
    return TensorStructInfo(None, "int64", info.vdevice, ndim)


@operator("relax.nonzero", infer=_infer_nonzero, FCallPacked="relax.run.nonzero")
def nonzero(x: Expr) -> Expr:
    """The indices of elements that are not zero, an axis a row.

    Parameters
    ----------
    x : relax.Expr
        The tensor.
    """


@tvm.register_func("relax.run.nonzero", override=True)
def numpy_nonzero(x: Any) -> Any:
    """The same at run time, by numpy."""
    return tvm.nd.array(np.stack(np.atleast_1d(x.numpy()).nonzero()).astype("int64"))


__all__ = ["dims_of", "nonzero", "numpy_nonzero", "numpy_unique", "unique"]
