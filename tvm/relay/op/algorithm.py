"""Sorting and searching along an axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tvm import te, topi
from tvm.ir.attrs import Attrs
from tvm.ir.expr import RelayExpr
from tvm.ir.op import Op
from tvm.ir.type import TupleType, Type
from tvm.relay.expr import TupleWrapper

from .attributes import as_int, is_run_time
from .registry import OpPattern, define_op, ops
from .types import (
    expect,
    expect_dim,
    expect_same_dtype,
    expect_tensor,
    positive_axis,
    same_as_input,
    shape_of_type,
    tensor,
)


class SortAttrs(Attrs, key="relay.attrs.SortAttrs"):
    """The axis, and whether the smallest come first."""

    axis: int = -1
    is_ascend: bool = True


class ArgsortAttrs(Attrs, key="relay.attrs.ArgsortAttrs"):
    """The axis, whether the smallest come first, and the indices' dtype."""

    axis: int = -1
    is_ascend: bool = True
    dtype: str = "int32"


class TopKAttrs(Attrs, key="relay.attrs.TopkAttrs"):
    """How many (all below 1), along which axis, what is given, in which order, the indices' dtype."""

    k: int = 1
    axis: int = -1
    ret_type: str = "both"
    is_ascend: bool = False
    dtype: str = "int32"


class SearchSortedAttrs(Attrs, key="relay.attrs.SearchSortedAttrs"):
    """Behind equal elements rather than before them, and the indices' dtype."""

    right: bool = False
    dtype: str = "int32"


_INDEX_DTYPES = ("int32", "int64", "float32", "float64")


def _expect_index_dtype(dtype: str, who: str) -> None:
    expect(
        dtype in _INDEX_DTYPES,
        f"{who} requires a dtype of {', '.join(_INDEX_DTYPES)} for indices, got {dtype!r}",
    )


def _argsort_type(attrs: ArgsortAttrs, arg_types: Sequence[Type]) -> Type:
    data = expect_tensor(arg_types[0], "argsort")
    positive_axis(attrs.axis, len(data.shape), "argsort")
    _expect_index_dtype(attrs.dtype, "argsort")
    return tensor(shape_of_type(data), attrs.dtype)


def _topk_type(attrs: TopKAttrs, arg_types: Sequence[Type]) -> Type:
    data = expect_tensor(arg_types[0], "topk")
    shape = list(shape_of_type(data))
    axis = positive_axis(attrs.axis, len(shape), "topk")
    _expect_index_dtype(attrs.dtype, "topk")
    if attrs.k >= 1:
        extent = shape[axis]
        expect(
            not isinstance(extent, int) or attrs.k <= extent,
            f"topk requires k of at most the axis' extent {extent}, got {attrs.k}",
        )
        shape[axis] = attrs.k
    values, indices = tensor(shape, data.dtype), tensor(shape, attrs.dtype)
    found = {"values": values, "indices": indices, "both": TupleType((values, indices))}
    expect(
        attrs.ret_type in found,
        f"topk requires a ret_type of both, values or indices, got {attrs.ret_type!r}",
    )
    return found[attrs.ret_type]


def _searchsorted_type(attrs: SearchSortedAttrs, arg_types: Sequence[Type]) -> Type:
    who = "searchsorted"
    sequence = expect_tensor(arg_types[0], who, "sorted_sequence")
    values = expect_tensor(arg_types[1], who, "values")
    expect_same_dtype((sequence, values), who)
    rows, wanted = shape_of_type(sequence), shape_of_type(values)
    expect(len(rows) > 0, f"{who} requires a sorted sequence of rank 1 or more, got a scalar")
    expect(attrs.dtype in ("int32", "int64"), f"{who} gives int32 or int64, not {attrs.dtype!r}")
    if len(rows) > 1:
        expect(len(rows) == len(wanted), f"{who} requires sequence and values of one rank")
        for row, want in zip(rows[:-1], wanted[:-1], strict=True):
            expect_dim(want, row, who, "the leading dimensions of values")
    return tensor(wanted, attrs.dtype)


def _ordered(data: np.ndarray, axis: int, is_ascend: bool) -> np.ndarray:
    """Stable indices; descending order keeps equal elements in theirs, and NaN is the greatest."""
    if is_ascend:
        return np.argsort(data, axis=axis, kind="stable")
    backwards = np.argsort(np.flip(data, axis), axis=axis, kind="stable")
    return data.shape[axis] - 1 - np.flip(backwards, axis)


def _fold_topk(attrs: TopKAttrs, arrays: Sequence[np.ndarray], out_type: Type) -> list[np.ndarray]:
    order = _ordered(arrays[0], attrs.axis, attrs.is_ascend)
    if attrs.k >= 1:
        order = np.take(order, range(attrs.k), axis=attrs.axis)
    found = {
        "values": np.take_along_axis(arrays[0], order, attrs.axis),
        "indices": order.astype(attrs.dtype),
    }
    return [found[what] for what in found if attrs.ret_type in (what, "both")]


def _compute_topk(attrs: TopKAttrs, inputs: Sequence[te.Tensor], out_type: Type) -> list[te.Tensor]:
    found = topi.topk(inputs[0], attrs.k, attrs.axis, attrs.ret_type, attrs.is_ascend, attrs.dtype)
    return found if isinstance(found, list) else [found]


def _schedule(attrs: Attrs, outs: Sequence[te.Tensor], target: object) -> te.Schedule:
    return topi.generic.schedule_extern(outs)


_SCHEDULES = {"generic": _schedule, "cpu": _schedule}

define_op(
    "sort",
    SortAttrs,
    inputs=("data",),
    infer_type=same_as_input("sort"),
    fuse=OpPattern.OPAQUE,
    compute=lambda attrs, inputs, out_type: [topi.sort(inputs[0], attrs.axis, attrs.is_ascend)],
    schedules=_SCHEDULES,
    fold=lambda attrs, arrays, out_type: [
        np.take_along_axis(arrays[0], _ordered(arrays[0], attrs.axis, attrs.is_ascend), attrs.axis)
    ],
)
define_op(
    "argsort",
    ArgsortAttrs,
    inputs=("data",),
    infer_type=_argsort_type,
    fuse=OpPattern.OPAQUE,
    compute=lambda attrs, inputs, out_type: [
        topi.argsort(inputs[0], None, attrs.axis, attrs.is_ascend, attrs.dtype)
    ],
    schedules=_SCHEDULES,
    fold=lambda attrs, arrays, out_type: [
        _ordered(arrays[0], attrs.axis, attrs.is_ascend).astype(attrs.dtype)
    ],
)
define_op(
    "topk",
    TopKAttrs,
    inputs=("data",),
    infer_type=_topk_type,
    fuse=OpPattern.OPAQUE,
    compute=_compute_topk,
    schedules=_SCHEDULES,
    fold=_fold_topk,
)
define_op(
    "searchsorted",
    SearchSortedAttrs,
    inputs=("sorted_sequence", "values"),
    infer_type=_searchsorted_type,
    fuse=OpPattern.OPAQUE,
    compute=lambda attrs, inputs, out_type: [
        topi.searchsorted(inputs[0], inputs[1], attrs.right, attrs.dtype)
    ],
    schedules=_SCHEDULES,
)


def sort(data: RelayExpr, axis: int = -1, is_ascend: bool = True) -> RelayExpr:
    """The elements in order along an axis; stable, NaN is the greatest.

    Parameters
    ----------
    data : relay.Expr
        The tensor.
    axis : int
        The axis.
    is_ascend : bool
        The smallest first, or the greatest.
    """
    return ops.sort(data, axis=as_int(axis), is_ascend=bool(is_ascend))


def argsort(
    data: RelayExpr, axis: int = -1, is_ascend: bool = True, dtype: str = "int32"
) -> RelayExpr:
    """The indices that put the elements in order along an axis.

    Parameters
    ----------
    data : relay.Expr
        The tensor.
    axis : int
        The axis.
    is_ascend : bool
        The smallest first, or the greatest.
    dtype : str
        The indices' dtype: int32, int64, float32 or float64.
    """
    return ops.argsort(data, axis=as_int(axis), is_ascend=bool(is_ascend), dtype=str(dtype))


def topk(
    data: RelayExpr,
    k: Any = 1,
    axis: int = -1,
    ret_type: str = "both",
    is_ascend: bool = False,
    dtype: str = "int32",
) -> RelayExpr | TupleWrapper:
    """The greatest (or smallest) elements along an axis, in order, and their indices.

    Parameters
    ----------
    data : relay.Expr
        The tensor.
    k : int or relay.Expr
        How many; all of them if it is below 1.
    axis : int
        The axis.
    ret_type : str
        "both", "values" or "indices".
    is_ascend : bool
        The smallest, from the smallest on.
    dtype : str
        The indices' dtype: int32, int64, float32 or float64.
    """
    if is_run_time(k):
        call = Op.get("dyn.topk")(
            data, k, axis=as_int(axis), ret_type=str(ret_type), is_ascend=bool(is_ascend),
            dtype=str(dtype),
        )  # fmt: skip
        return TupleWrapper(call, 2) if ret_type == "both" else call
    call = ops.topk(
        data, k=as_int(k), axis=as_int(axis), ret_type=str(ret_type),
        is_ascend=bool(is_ascend), dtype=str(dtype),
    )  # fmt: skip
    return TupleWrapper(call, 2) if ret_type == "both" else call


def searchsorted(
    sorted_sequence: RelayExpr, values: RelayExpr, right: bool = False, dtype: str = "int32"
) -> RelayExpr:
    """Where each value would be inserted so that its row stays sorted.

    Parameters
    ----------
    sorted_sequence : relay.Expr
        One row sorted in ascending order for all values, or one for each row of values.
    values : relay.Expr
        What to look for, of the sequence's dtype.
    right : bool
        Behind the elements that equal the value, rather than before them.
    dtype : str
        The indices' dtype, int32 or int64.
    """
    return ops.searchsorted(sorted_sequence, values, right=bool(right), dtype=str(dtype))
