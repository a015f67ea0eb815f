"""Local response normalisation and dilation."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

from tvm import topi
from tvm.ir.expr import RelayExpr
from tvm.ir.type import TensorType, Type
from tvm.relay.analysis.infer import infer_type_of, tensor_type_of
from tvm.relay.expr import Call, const

from ..computes import computed_by
from ..known_shapes import known_shape, sliced
from ..operator import Expr, Ints, operator
from ..registry import OpPattern, Precision, ops
from ..schedules import default_schedules
from ..types import apply, expect, largest, positive_axis, shape_of_type, tensor


def _lrn_type(attrs: Any, data: TensorType) -> Type:
    """A tensor of the shape and dtype of `data`."""
    positive_axis(attrs.axis, len(data.shape), "nn.lrn")
    expect(attrs.size > 0, f"nn.lrn requires a positive size, got {attrs.size}")
    return data


def _dilate_type(attrs: Any, data: TensorType) -> Type:
    """A tensor of the dtype of `data`, each extent (extent - 1) * stride + 1, and 0 if it was."""
    shape = shape_of_type(data)
    expect(
        len(attrs.strides) == len(shape),
        f"nn.dilate requires a stride for each of {len(shape)} axes, got {attrs.strides}",
    )
    spread = [
        apply(lambda e, s=s: largest((e - 1) * s + 1, 0), e)
        for e, s in zip(shape, attrs.strides, strict=True)
    ]
    return tensor(spread, data.dtype)


def _composed_lrn(call: Call, arg_types: Sequence[Type]) -> RelayExpr:
    data, attrs = call.args[0], call.attrs
    shape, dtype = known_shape(data, "nn.lrn"), tensor_type_of(data).dtype
    axis, reach = attrs.axis % len(shape), ((attrs.size - 1) // 2, attrs.size // 2)
    widths = tuple([reach if a == axis else (0, 0) for a in range(len(shape))])
    squares = ops.nn.pad(ops.multiply(data, data), const(0.0, dtype), pad_width=widths)
    infer_type_of(squares)
    windows = [sliced(squares, axis, k, k + shape[axis]) for k in range(attrs.size)]
    share = ops.multiply(reduce(ops.add, windows), const(attrs.alpha / attrs.size, dtype))
    base = ops.add(share, const(attrs.bias, dtype))
    return ops.divide(data, ops.power(base, const(attrs.beta, dtype)))


@operator(
    "nn.lrn",
    "LRNAttrs",
    accumulates=True,
    defaults={"alpha": 0.0001},  # of printed programs, which leave out another value than calls do
    support_level=2,
    infer_type=_lrn_type,
    compute=computed_by(topi.nn.lrn, "size", "axis", "alpha", "beta", "bias"),
    schedules=default_schedules(topi.x86.schedule_pool),
    precision=Precision.KEEP_FLOAT32,
    composition=_composed_lrn,
)
def lrn(
    data: Expr,
    size: int = 5,
    axis: int = 1,
    bias: float = 2,
    alpha: float = 0.00001,
    beta: float = 0.75,
) -> RelayExpr:
    """data / (bias + alpha / size * sum of squares of `size` neighbours) ** beta"""


def _dilate_gradient(call: Call, grad: RelayExpr) -> list[RelayExpr]:
    shape = known_shape(call, "nn.dilate")
    start = (0,) * len(shape)
    return [ops.strided_slice(grad, begin=start, end=shape, strides=call.attrs.strides)]


@operator(
    "nn.dilate",
    infer_type=_dilate_type,
    fuse=OpPattern.INJECTIVE,
    compute=computed_by(topi.nn.dilate, "strides", "dilation_value"),
    gradient=_dilate_gradient,
)
def dilate(data: Expr, strides: Ints, dilation_value: float = 0.0) -> RelayExpr:
    """Put `stride - 1` equal elements between neighbours along each axis."""
