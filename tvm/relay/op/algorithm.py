"""Sorting and searching along an axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tvm import tir, topi
from tvm.ir.expr import RelayExpr
from tvm.ir.type import TensorType, TupleType, Type
from tvm.relay.expr import Call, TupleWrapper, field_of

from .computes import computed_by
from .layout import Layouts
from .layout_axes import layout_along_axis
from .operator import Expr, operator
from .registry import LayoutChoice, ops, zero_gradient
from .run_time_shapes import TOPK
from .scatter_gradient import scattered_back
from .schedules import EXTERN_SCHEDULES
from .types import (
    Dim,
    apply,
    expect,
    expect_countable,
    expect_dim,
    expect_same_dtype,
    is_known,
    positive_axis,
    same_as_input,
    shape_of_type,
    tensor,
)

_COMMON: dict[str, Any] = {"schedules": EXTERN_SCHEDULES}
_INDEX_DTYPES = ("int32", "int64", "float32", "float64")


def _expect_index_dtype(dtype: str, who: str, extent: Dim) -> None:
    expect(
        dtype in _INDEX_DTYPES,
        f"{who} requires a dtype of {', '.join(_INDEX_DTYPES)} for indices, got {dtype!r}",
    )
    expect_countable([extent], dtype, who)


def _ordered(data: np.ndarray, axis: int, is_ascend: bool) -> np.ndarray:
    """Stable indices; descending order keeps equal elements in theirs, and NaN is the greatest."""
    if is_ascend:
        return np.argsort(data, axis=axis, kind="stable")
    backwards = np.argsort(np.flip(data, axis), axis=axis, kind="stable")
    return np.asarray(data.shape[axis] - 1 - np.flip(backwards, axis))


def _sort_gradient(call: Call, grad: RelayExpr) -> list[RelayExpr]:
    data, attrs = call.args[0], call.attrs
    order = ops.argsort(data, axis=attrs.axis, is_ascend=attrs.is_ascend, dtype="int64")
    return [scattered_back(data, order, grad, attrs.axis)]


@operator(
    "sort",
    support_level=6,
    infer_type=same_as_input("sort"),
    compute=computed_by(topi.sort, "axis", "is_ascend"),
    fold=lambda attrs, arrays, out_type: [
        np.take_along_axis(arrays[0], _ordered(arrays[0], attrs.axis, attrs.is_ascend), attrs.axis)
    ],
    gradient=_sort_gradient,
    **_COMMON,
)
def sort(data: Expr, axis: int = -1, is_ascend: bool = True) -> RelayExpr:
    """The elements in order along an axis; stable, NaN is the greatest."""


def _argsort_type(attrs: Any, data: TensorType) -> Type:
    """A tensor of the shape of `data`, and of dtype `dtype`: positions along the axis."""
    shape = shape_of_type(data)
    axis = positive_axis(attrs.axis, len(shape), "argsort")
    _expect_index_dtype(attrs.dtype, "argsort", shape[axis])
    return tensor(shape, attrs.dtype)


@operator(
    "argsort",
    support_level=6,
    infer_type=_argsort_type,
    compute=lambda attrs, inputs, out_type: [
        topi.argsort(inputs[0], None, attrs.axis, attrs.is_ascend, attrs.dtype)
    ],
    fold=lambda attrs, arrays, out_type: [
        _ordered(arrays[0], attrs.axis, attrs.is_ascend).astype(attrs.dtype)
    ],
    gradient=zero_gradient,
    **_COMMON,
)
def argsort(data: Expr, axis: int = -1, is_ascend: bool = True, dtype: str = "int32") -> RelayExpr:
    """The indices that put the elements in order along an axis.

    Parameters
    ----------
    is_ascend : bool
        The smallest first, or the greatest.
    dtype : str
        The indices' dtype: int32, int64, float32 or float64.
    """


def _topk_type(attrs: Any, data: TensorType) -> Type:
    """Tensors of the shape of `data` whose axis has `k` elements, all of them if `k` is below 1:
    values of its dtype, positions of dtype `dtype`, or both, as `ret_type` says."""
    shape = list(shape_of_type(data))
    axis = positive_axis(attrs.axis, len(shape), "topk")
    if attrs.ret_type != "values":
        _expect_index_dtype(attrs.dtype, "topk", shape[axis])
    extent = shape[axis]
    if not is_known(attrs.k):
        shape[axis] = apply(
            lambda k, e: tir.Select(k < 1, e, tir.min(k.astype("int64"), e)), attrs.k, extent
        )
    elif attrs.k >= 1:
        expect(
            not isinstance(extent, int) or attrs.k <= extent,
            f"topk requires k of at most the axis' extent {extent}, got {attrs.k}",
        )
        shape[axis] = attrs.k
    return values_or_indices(attrs, shape, data.dtype, "topk")


def values_or_indices(attrs: Any, shape: Sequence[Dim], dtype: str, who: str) -> Type:
    """The results of `topk` of these extents that are asked for."""
    values, indices = tensor(shape, dtype), tensor(shape, attrs.dtype)
    found = {"values": values, "indices": indices, "both": TupleType((values, indices))}
    expect(
        attrs.ret_type in found,
        f"{who} requires a ret_type of both, values or indices, got {attrs.ret_type!r}",
    )
    return found[attrs.ret_type]


def _fold_topk(attrs: Any, arrays: Sequence[np.ndarray], out_type: Type) -> list[np.ndarray]:
    order = _ordered(arrays[0], attrs.axis, attrs.is_ascend)
    if attrs.k >= 1:
        order = np.take(order, range(attrs.k), axis=attrs.axis)
    found = {
        "values": np.take_along_axis(arrays[0], order, attrs.axis),
        "indices": order.astype(attrs.dtype),
    }
    return [found[what] for what in found if attrs.ret_type in (what, "both")]


def _topk_gradient(call: Call, grad: RelayExpr) -> list[RelayExpr]:
    data, attrs = call.args[0], call.attrs
    if attrs.ret_type == "indices":
        return [ops.zeros_like(data)]
    order = Call(ops.topk, (data,), attrs.replace(ret_type="indices", dtype="int64"))
    to_values = field_of(grad, 0) if attrs.ret_type == "both" else grad
    return [scattered_back(data, order, to_values, attrs.axis)]


def _topk_layout(
    attrs: Any, new_in: Layouts | None, old_in: Layouts, arg_types: Sequence[Type]
) -> LayoutChoice | None:
    rule = layout_along_axis()
    found = rule(attrs, new_in, old_in, arg_types)
    if found is None or attrs.ret_type != "both":
        return found
    return LayoutChoice(found.inputs, found.inputs * 2, found.attrs)


@operator(
    "topk",
    support_level=6,
    results=lambda attrs: 2 if attrs.ret_type == "both" else None,
    infer_type=_topk_type,
    infer_layout=_topk_layout,
    compute=computed_by(topi.topk, "k", "axis", "ret_type", "is_ascend", "dtype"),
    fold=_fold_topk,
    gradient=_topk_gradient,
    run_time=TOPK,
    **_COMMON,
)
def topk(
    data: Expr,
    k: int = 1,
    axis: int = -1,
    ret_type: str = "both",
    is_ascend: bool = False,
    dtype: str = "int32",
) -> RelayExpr | TupleWrapper:
    """The greatest (or smallest) elements along an axis, in order, and their indices."""


def _searchsorted_type(attrs: Any, sorted_sequence: TensorType, values: TensorType) -> Type:
    """A tensor of the shape of `values`, and of dtype `dtype`: positions in the sequence."""
    who = "searchsorted"
    expect_same_dtype((sorted_sequence, values), who)
    rows, wanted = shape_of_type(sorted_sequence), shape_of_type(values)
    expect(len(rows) > 0, f"{who} requires a sorted sequence of rank 1 or more, got a scalar")
    expect(attrs.dtype in ("int32", "int64"), f"{who} gives int32 or int64, not {attrs.dtype!r}")
    expect_countable(rows[-1:], attrs.dtype, who)
    if len(rows) > 1:
        expect(len(rows) == len(wanted), f"{who} requires sequence and values of one rank")
        for row, want in zip(rows[:-1], wanted[:-1], strict=True):
            expect_dim(want, row, who, "the leading dimensions of values")
    return tensor(wanted, attrs.dtype)


@operator(
    "searchsorted",
    "SearchSortedAttrs",
    support_level=4,
    infer_type=_searchsorted_type,
    compute=computed_by(topi.searchsorted, "right", "dtype"),
    gradient=zero_gradient,
    **_COMMON,
)
def searchsorted(
    sorted_sequence: Expr, values: Expr, right: bool = False, dtype: str = "int32"
) -> RelayExpr:
    """Where each value would be inserted so that its row stays sorted.

    Parameters
    ----------
    dtype : str
        The indices' dtype, int32 or int64.
    """
