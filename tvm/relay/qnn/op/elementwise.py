"""Sums, differences and products of quantised tensors, and their concatenation.

Operands are brought to the output's scale and zero point in 32 bits first:
q_c = q_a' + q_b' - zero_c.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tvm.ir.expr import RelayExpr
from tvm.ir.type import TensorType, Type
from tvm.relay.analysis.infer import tensor_type_of
from tvm.relay.expr import Call, Tuple, const, fields_of
from tvm.relay.op.binary import broadcast_type
from tvm.relay.op.joining import concatenate as plain_concatenate
from tvm.relay.op.layout import layout_concatenate
from tvm.relay.op.layout_axes import layout_with_two_axes
from tvm.relay.op.operator import Expr, Tensors, operator
from tvm.relay.op.parameters import same_parameters
from tvm.relay.op.registry import ops
from tvm.relay.op.types import expect, expect_tuple, shape_of_type
from tvm.relay.op.types import tensor as tensor_type

from .common import (
    add_zero_point,
    along_axis,
    are_equal,
    cast,
    constant_array,
    expect_dtype,
    expect_scale,
    expect_zero_point,
    saturate,
    subtract_zero_point,
)
from .requantize import requantized

_DTYPES = ("int8", "uint8", "int16", "int32")


def _binary_type(who: str) -> Callable[[Any, Sequence[Type]], Type]:
    def relation(attrs: Any, arg_types: Sequence[Type]) -> Type:
        """A tensor of the shape that both operands broadcast to, and of their dtype."""
        sides = (("lhs", attrs.lhs_axis), ("rhs", attrs.rhs_axis))
        for i, (side, axis) in enumerate(sides):
            data = expect_dtype(arg_types[i], _DTYPES, who, side)
            expect_scale(arg_types[2 + 2 * i], who, f"{side}_scale", data, axis)
            expect_zero_point(arg_types[3 + 2 * i], who, f"{side}_zero_point", data, axis)
        expect_scale(arg_types[6], who, "output_scale")
        expect_zero_point(arg_types[7], who, "output_zero_point")
        return broadcast_type(who)(attrs, arg_types[:2])

    return relation


def _mul_type(attrs: Any, arg_types: Sequence[Type]) -> Type:
    """A tensor of the shape that both operands broadcast to, and of their dtype."""
    result = _binary_type("qnn.mul")(attrs, arg_types)
    axes = _axes_of_scales(attrs, arg_types)
    expect(
        len(axes) < 2,
        "qnn.mul requires the vectors of scales of lhs and rhs along one axis of the result, got "
        f"the axes {' and '.join([str(axis) for axis in axes])}",
    )
    return result


def _axes_of_scales(attrs: Any, types: Sequence[Type]) -> list[int]:
    """The axes along which scales differ, counted from the end."""
    sides = ((types[0], types[2], attrs.lhs_axis), (types[1], types[4], attrs.rhs_axis))
    found = [
        axis % rank - rank
        for data, scale, axis in sides
        if (rank := len(shape_of_type(data))) and shape_of_type(scale) not in ((), (1,))
    ]
    return list(dict.fromkeys(found))


def _operands(attrs: Any, inputs: Sequence[RelayExpr]) -> list[RelayExpr]:
    """Both operands on the output's scale and zero point, in 32 bits."""
    out_scale, out_zero = inputs[6:]
    axes = (attrs.lhs_axis, attrs.rhs_axis)
    return [
        requantized(operand, scale, zero, out_scale, out_zero, "int32", axis)
        for operand, scale, zero, axis in zip(
            inputs[:2], inputs[2:6:2], inputs[3:6:2], axes, strict=True
        )
    ]


def _canonicalize_add(
    attrs: Any, inputs: Sequence[RelayExpr], types: Sequence[TensorType]
) -> RelayExpr:
    total = subtract_zero_point(ops.add(*_operands(attrs, inputs)), inputs[7])
    return saturate(total, types[0].dtype)


def _canonicalize_subtract(
    attrs: Any, inputs: Sequence[RelayExpr], types: Sequence[TensorType]
) -> RelayExpr:
    difference = add_zero_point(ops.subtract(*_operands(attrs, inputs)), inputs[7])
    return saturate(difference, types[0].dtype)


def _canonicalize_mul(
    attrs: Any, inputs: Sequence[RelayExpr], types: Sequence[TensorType]
) -> RelayExpr:
    """(q_a - zero_a) * (q_b - zero_b) has the scale scale_a * scale_b and no zero point."""
    lhs, rhs, lhs_scale, lhs_zero, rhs_scale, rhs_zero, out_scale, out_zero = inputs
    shifted = [
        subtract_zero_point(
            cast(data, "int32"), along_axis(zero, len(tensor_type_of(data).shape), axis)
        )
        for data, zero, axis in ((lhs, lhs_zero, attrs.lhs_axis), (rhs, rhs_zero, attrs.rhs_axis))
    ]
    scale = _product_of_scales(lhs_scale, rhs_scale)
    axis = next(iter(_axes_of_scales(attrs, types)), -1)
    return requantized(
        ops.multiply(*shifted), scale, const(0), out_scale, out_zero, types[0].dtype, axis
    )  # fmt: skip


def _product_of_scales(a: RelayExpr, b: RelayExpr) -> RelayExpr:
    left, right = constant_array(a), constant_array(b)
    if left is None or right is None:
        return ops.multiply(a, b)
    return const(np.squeeze(left * right).astype("float32"))


def _concatenate_type(attrs: Any, arg_types: Sequence[Type]) -> Type:
    """A tensor of the operands' dtype and shape; along the axis it has the sum of their extents."""
    who = "qnn.concatenate"
    fields = expect_tuple(arg_types[0], who)
    scales, zeros = [expect_tuple(ty, who, "the parameters") for ty in arg_types[1:3]]
    expect(
        len(scales) == len(zeros) == len(fields),
        f"{who} requires a scale and a zero point for each of the {len(fields)} tensors, "
        f"got {len(scales)} and {len(zeros)}",
    )
    for field, scale, zero in zip(fields, scales, zeros, strict=True):
        expect_dtype(field, _DTYPES, who, "data")
        expect_scale(scale, who, "input_scales")
        expect_zero_point(zero, who, "input_zero_points")
    expect_scale(arg_types[3], who, "output_scale")
    expect_zero_point(arg_types[4], who, "output_zero_point")
    assert ops.concatenate.infer_type is not None
    joined = ops.concatenate.infer_type(attrs, [arg_types[0]])
    return tensor_type(joined.shape, joined.dtype)


def _canonicalize_concatenate(
    attrs: Any, inputs: Sequence[RelayExpr], types: Sequence[Any]
) -> RelayExpr:
    count = len(types[0].fields)
    data, scales, zeros = [fields_of(value, count) for value in inputs[:3]]
    parts = []
    for field, scale, zero in zip(data, scales, zeros, strict=True):
        if not (are_equal(scale, inputs[3]) and are_equal(zero, inputs[4])):
            field = requantized(field, scale, zero, inputs[3], inputs[4], types[-1].dtype)
        parts.append(field)
    return Call(ops.concatenate, [Tuple(parts)], attrs)


@operator(
    "qnn.add",
    "BroadcastAttrs",
    infer_type=_binary_type("qnn.add"),
    infer_layout=layout_with_two_axes,
    qnn_canonicalize=_canonicalize_add,
)
def add(
    lhs: Expr,
    rhs: Expr,
    lhs_scale: Expr,
    lhs_zero_point: Expr,
    rhs_scale: Expr,
    rhs_zero_point: Expr,
    output_scale: Expr,
    output_zero_point: Expr,
    lhs_axis: int = -1,
    rhs_axis: int = -1,
) -> RelayExpr:
    """The sum of quantised tensors, with numpy's broadcasting.

    Parameters
    ----------
    lhs, rhs : relay.Expr
        Integers of one dtype, also the result's.
    lhs_scale, lhs_zero_point, rhs_scale, rhs_zero_point : relay.Expr
        The operands' parameters: scalars, or vectors along the axes.
    output_scale, output_zero_point : relay.Expr
        The result's parameters, scalars.
    lhs_axis, rhs_axis : int
        The axes of the vectors.
    """


@operator(
    "qnn.subtract",
    add,
    infer_type=_binary_type("qnn.subtract"),
    infer_layout=layout_with_two_axes,
    qnn_canonicalize=_canonicalize_subtract,
)
@same_parameters(add)
def subtract() -> None:
    """The difference of quantised tensors; parameters as in `add`."""


@operator(
    "qnn.mul",
    add,
    infer_type=_mul_type,
    infer_layout=layout_with_two_axes,
    qnn_canonicalize=_canonicalize_mul,
)
@same_parameters(add)
def mul() -> None:
    """The product of quantised tensors; parameters as in `add`."""


@operator(
    "qnn.concatenate",
    plain_concatenate,
    infer_type=_concatenate_type,
    infer_layout=layout_concatenate,
    qnn_canonicalize=_canonicalize_concatenate,
)
def concatenate(
    data: Tensors,
    input_scales: Tensors,
    input_zero_points: Tensors,
    output_scale: Expr,
    output_zero_point: Expr,
    axis: int,
) -> RelayExpr:
    """Join quantised tensors along an axis.

    Parameters
    ----------
    data : relay.Expr or sequence of relay.Expr
        The tensors, or a tuple of them.
    input_scales, input_zero_points : sequence of relay.Expr
        One scalar for each tensor.
    output_scale, output_zero_point : relay.Expr
        The result's parameters, scalars.
    """
