"""Sorting along an axis."""

from __future__ import annotations

from typing import Any

from tvm import topi
from tvm.relax.expr import Call
from tvm.relax.struct_info import TupleStructInfo

from .infer import axis_of, dims_of, fail, made, same, tensors, with_dtype
from .operator import DataType, Expr, Int, operator


def _legalize_sort(bb: Any, call: Call) -> Any:
    attrs = call.attrs
    return bb.call_te(topi.sort, call.args[0], attrs.axis, not attrs.descending)


@operator("relax.sort", "SortAttrs", infer=same, FLegalize=_legalize_sort)
def sort(x: Expr, axis: int = -1, descending: bool = False) -> Expr:
    """The elements in order.

    Parameters
    ----------
    x : relax.Expr
        The tensor.
    axis : int
        The axis.
    descending : bool
        Whether the greatest comes first.
    """


def _infer_argsort(call: Any, bb: Any) -> Any:
    """A tensor of the operand's shape; of dtype `dtype`, or that of the operand."""
    info = tensors(call, 1)[0]
    kind = info.dtype if call.attrs.dtype.is_void else call.attrs.dtype
    return with_dtype(info, kind)


def _legalize_argsort(bb: Any, call: Call) -> Any:
    attrs = call.attrs
    return bb.call_te(
        topi.argsort, call.args[0], axis=attrs.axis, is_ascend=not attrs.descending,
        dtype=attrs.dtype,
    )  # fmt: skip


@operator("relax.argsort", "ArgsortAttrs", infer=_infer_argsort, FLegalize=_legalize_argsort)
def argsort(
    data: Expr, axis: int = -1, descending: bool = False, dtype: DataType = "int32"
) -> Expr:
    """The indices that put the elements in order.

    Parameters
    ----------
    data : relax.Expr
        The tensor.
    axis : int
        The axis.
    descending : bool
        Whether the greatest comes first.
    dtype : str
        Of the indices.
    """


def _infer_topk(call: Any, bb: Any) -> Any:
    """Tensors of the shape of `data` whose axis has `k` elements: values of its dtype, positions of
    dtype `dtype`, or both, as `ret_type` says."""
    info = tensors(call, 1)[0]
    attrs = call.attrs
    if attrs.ret_type not in ("both", "values", "indices"):
        raise fail(call, f"requires ret_type both, values or indices, got {attrs.ret_type!r}")
    kind = info.dtype if attrs.dtype.is_void else attrs.dtype
    dims = dims_of(info)
    if dims is None:
        found = [made(None, k, info.vdevice, info.ndim) for k in (info.dtype, kind)]
    else:
        axis = axis_of(call, attrs.axis, info.ndim)
        new = list(dims)
        size = getattr(new[axis], "value", None)
        new[axis] = attrs.k if attrs.k > 0 and (size is None or attrs.k < size) else new[axis]
        if attrs.k < 1:
            new = list(dims)
        found = [made(new, k, info.vdevice) for k in (info.dtype, kind)]
    if attrs.ret_type == "both":
        return TupleStructInfo(found)
    return found[attrs.ret_type == "indices"]


def _legalize_topk(bb: Any, call: Call) -> Any:
    attrs = call.attrs
    return bb.call_te(
        topi.topk, call.args[0], k=attrs.k, axis=attrs.axis, ret_type=attrs.ret_type,
        is_ascend=not attrs.largest, dtype=attrs.dtype,
    )  # fmt: skip


@operator("relax.topk", "TopKAttrs", infer=_infer_topk, FLegalize=_legalize_topk)
def topk(
    data: Expr,
    k: Int = 1,
    axis: int = -1,
    ret_type: str = "both",
    largest: bool = True,
    dtype: DataType = "int32",
) -> Expr:
    """The greatest or smallest elements along an axis, and their indices.

    Parameters
    ----------
    data : relax.Expr
        The tensor.
    k : int
        How many; less than 1: all.
    axis : int
        The axis.
    ret_type : str
        ``"both"``, ``"values"`` or ``"indices"``.
    largest : bool
        Whether the greatest, rather than the smallest.
    dtype : str
        Of the indices.
    """
