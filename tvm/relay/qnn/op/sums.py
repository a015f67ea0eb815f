"""What products of quantised tensors share: their types, and integers less a zero point."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tvm.ir.expr import RelayExpr
from tvm.ir.op import Op
from tvm.ir.type import TensorType, Type
from tvm.relay.analysis.infer import tensor_type_of
from tvm.relay.expr import Call, const
from tvm.relay.op.layout_shapes import axis_of
from tvm.relay.op.registry import ops
from tvm.relay.op.types import TypeRelation, expect, shape_of_type

from .common import (
    along_axis,
    constant_array,
    expect_dtype,
    expect_scale,
    expect_zero_point,
    is_zero,
)

INPUTS = (
    "data", "weight", "input_zero_point", "kernel_zero_point", "input_scale", "kernel_scale",
)  # fmt: skip
_DATA = ("int8", "uint8", "int16")
_SUMS = ("int16", "int32", "int64")


def product_type(op: Op, who: str, sums: Sequence[str] = _SUMS) -> TypeRelation:
    """The plain operator's type; the weight's parameters may be vectors over its channels."""

    def relation(attrs: object, arg_types: Sequence[Type]) -> Type:
        """A tensor of the shape that the operator has for floats, and of dtype `out_dtype`: sums of
        products, whose scale is the product of both scales."""
        for i, argument in enumerate(INPUTS[:2]):
            expect_dtype(arg_types[i], _DATA, who, argument)
        assert op.infer_type is not None
        out: TensorType = op.infer_type(attrs, arg_types[:2])
        expect_zero_point(arg_types[2], who, "input_zero_point")
        along = _along(attrs, arg_types[3], arg_types[1], out)
        expect_zero_point(arg_types[3], who, "kernel_zero_point", *along)
        expect_scale(arg_types[4], who, "input_scale")
        expect_scale(
            arg_types[5], who, "kernel_scale", *_along(attrs, arg_types[5], arg_types[1], out)
        )
        expect(out.dtype in sums, f"{who} requires out_dtype of {', '.join(sums)}, got {out.dtype}")
        return out

    return relation


def _along(attrs: object, param: Type, weight: Type, out: TensorType) -> tuple[Type, int]:
    """The tensor and its axis that a vector of a weight's parameters has a number for each place of.

    That is the channels of the result; a depthwise kernel with several filters a channel may have
    one for all of them.
    """
    layout, groups = getattr(attrs, "kernel_layout", ""), getattr(attrs, "groups", 1)
    if layout and groups > 1 and isinstance(param, TensorType):
        axis = axis_of(layout, "O")
        if shape_of_type(param) == (groups,) == (shape_of_type(weight)[axis],):
            return weight, axis
    return out, _channel_axis(attrs, len(out.shape))


def _channel_axis(attrs: object, rank: int) -> int:
    layout = getattr(attrs, "data_layout", "")
    return axis_of(layout, "C") if layout else rank - 1


def sums_of(weight: RelayExpr, axes: Sequence[int], dtype: str) -> RelayExpr:
    """The sums of a weight along axes; those of a constant at once, without a wide copy of it."""
    values = _elements(weight)
    if values is None:
        return ops.sum(ops.cast(weight, dtype=dtype), axis=tuple(axes))
    return const(values.sum(axis=tuple(axes), dtype=dtype), dtype)


def _elements(weight: RelayExpr) -> np.ndarray | None:
    """The value of a constant or of its transposition, which is a view."""
    if isinstance(weight, Call) and weight.op is ops.transpose:
        values = constant_array(weight.args[0])
        return None if values is None else values.transpose(weight.attrs.axes or None)
    return constant_array(weight)


def shifted(value: RelayExpr, zero_point: RelayExpr, axis: int | None = None) -> RelayExpr:
    """`value - zero_point`, in 8 bits where that is exact, else in 16 or 32."""
    if is_zero(zero_point):
        return value
    ty = tensor_type_of(value)
    wide = "int16" if ty.dtype in ("int8", "uint8") else "int32"
    zero = zero_point if axis is None else along_axis(zero_point, len(ty.shape), axis)
    zero = ops.cast(zero, dtype=wide) if constant_array(zero) is None else _constant(zero, wide)
    moved = ops.subtract(ops.cast(value, dtype=wide), zero)
    numbers = constant_array(zero_point)
    if ty.dtype == "uint8" and numbers is not None and (numbers == 128).all():
        return ops.cast(moved, dtype="int8")
    return moved


def _constant(expr: RelayExpr, dtype: str) -> RelayExpr:
    return const(constant_array(expr), dtype)
