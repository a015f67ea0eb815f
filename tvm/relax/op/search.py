"""Choosing elements."""

from __future__ import annotations

from typing import Any

from tvm import topi
from tvm.relax.struct_info import PrimStructInfo, TensorStructInfo

from .infer import (
    broadcast_shape,
    check_count,
    common_dtype,
    common_vdevice,
    fail,
    tensors,
    with_dtype,
)
from .legalize import scalar_or, topi_call
from .operator import Expr, operator
from .statistical import reduced


def _infer_where(call: Any, bb: Any) -> Any:
    """A tensor of the shape that all three operands broadcast to, and of the dtype of the two
    values."""
    check_count(call, 3)
    infos = [arg.struct_info for arg in call.args]
    for info in infos:
        if not isinstance(info, (TensorStructInfo, PrimStructInfo)):
            raise fail(call, f"requires Tensors, got {info}")
    condition = infos[0]
    if not condition.dtype.is_void and not condition.dtype.is_bool:
        raise fail(call, f"requires a condition of bool, got {condition.dtype}")
    kind = common_dtype(call, infos[1:])
    return broadcast_shape(call, infos, kind, common_vdevice(call, infos))


@operator("relax.where", infer=_infer_where, FLegalize=topi_call(topi.where))
def where(condition: Expr, x1: Expr, x2: Expr) -> Expr:
    """Elements of one tensor where a condition holds, of another one elsewhere.

    Parameters
    ----------
    condition : relax.Expr
        The condition, of bool.
    x1, x2 : relax.Expr
        The tensors.
    """


def _infer_arg(call: Any, bb: Any) -> Any:
    """A tensor of dtype int64 without the reduced axes, which have extent 1 if `keepdims`."""
    info = tensors(call, 1)[0]
    axis = call.attrs.axis
    axes = None if axis is None else (axis,)
    return reduced(call, info, axes, call.attrs.keepdims, "int64")


def _legalize(function: Any, name: str) -> Any:
    def legalize(bb: Any, call: Any) -> Any:
        def compute(x: Any, axis: Any, keepdims: bool) -> Any:
            return topi.cast(function(x, axis, keepdims), "int64")

        attrs = call.attrs
        return bb.call_te(
            compute, call.args[0], attrs.axis, attrs.keepdims, primfunc_name_hint=name
        )

    return legalize


@operator(
    "relax.argmax",
    "ArgmaxArgminAttrs",
    infer=_infer_arg,
    FLegalize=_legalize(topi.argmax, "argmax"),
)
def argmax(x: Expr, axis: int | None = None, keepdims: bool = False) -> Expr:
    """The indices of the greatest elements along an axis, or of the whole tensor.

    Parameters
    ----------
    x : relax.Expr
        The tensor.
    axis : int, optional
        The axis.
    keepdims : bool
        Whether the axis stays, with one element.
    """


@operator(
    "relax.argmin",
    "ArgmaxArgminAttrs",
    infer=_infer_arg,
    FLegalize=_legalize(topi.argmin, "argmin"),
)
def argmin(x: Expr, axis: int | None = None, keepdims: bool = False) -> Expr:
    """The indices of the smallest elements along an axis, or of the whole tensor.

    Parameters
    ----------
    x, axis, keepdims :
        As of `argmax`.
    """


def _infer_bucketize(call: Any, bb: Any) -> Any:
    """A tensor of the shape of `input_tensor`; of dtype int32 if `out_int32`, else int64."""
    values, boundaries = tensors(call, 2)
    if boundaries.ndim not in (-1, 1):
        raise fail(call, f"requires boundaries of one dimension, got {boundaries}")
    common_dtype(call, [values, boundaries])
    return with_dtype(values, "int32" if call.attrs.out_int32 else "int64")


def _legalize_bucketize(bb: Any, call: Any) -> Any:
    values, boundaries = call.args
    return bb.call_te(
        topi.searchsorted, boundaries, values, call.attrs.right, str(call.struct_info.dtype),
        primfunc_name_hint="bucketize",
    )  # fmt: skip


@operator(
    "relax.bucketize", "BucketizeAttrs", infer=_infer_bucketize, FLegalize=_legalize_bucketize
)
def bucketize(
    input_tensor: Expr, boundaries: Expr, out_int32: bool = False, right: bool = False
) -> Expr:
    """The indices of the buckets that values fall into.

    Parameters
    ----------
    input_tensor : relax.Expr
        The values.
    boundaries : relax.Expr
        The upper bounds of the buckets, a vector in ascending order.
    out_int32 : bool
        Whether indices are of int32, rather than int64.
    right : bool
        Whether a value that equals a bound is in the bucket behind it.
    """


__all__ = ["argmax", "argmin", "bucketize", "scalar_or", "where"]
