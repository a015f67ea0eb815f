"""Means of windows of quantised tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from tvm.ir.expr import RelayExpr
from tvm.ir.type import TensorType, Type
from tvm.relay.expr import Call, const
from tvm.relay.op.layout import layout_bound
from tvm.relay.op.operator import Expr, operator, padding, spatial
from tvm.relay.op.registry import ops

from .common import cast, expect_dtype, expect_scale, expect_zero_point, subtract_zero_point
from .requantize import requantized


def _avg_pool2d_type(attrs: Any, arg_types: Sequence[Type]) -> Type:
    """A tensor in `out_layout`, or the layout of `data`, with a position for each place of the
    window; of the dtype of `data`."""
    who = "qnn.avg_pool2d"
    expect_dtype(arg_types[0], ("int8", "uint8", "int16", "int32"), who, "data")
    for i, side in enumerate(("input", "output")):
        expect_scale(arg_types[1 + 2 * i], who, f"{side}_scale")
        expect_zero_point(arg_types[2 + 2 * i], who, f"{side}_zero_point")
    assert ops.nn.avg_pool2d.infer_type is not None
    found: Type = ops.nn.avg_pool2d.infer_type(attrs, arg_types[:1])
    return found


def _canonicalize_avg_pool2d(
    attrs: Any, inputs: Sequence[RelayExpr], types: Sequence[TensorType]
) -> RelayExpr:
    data, scale, zero, out_scale, out_zero = inputs
    wide = cast(data, "int32")
    if any(attrs.padding) and attrs.count_include_pad:
        # the border stands for zero, so the mean is taken of what has no zero point
        wide = subtract_zero_point(wide, zero)
        zero = const(0)
    mean = Call(ops.nn.avg_pool2d, [wide], attrs)
    return requantized(mean, scale, zero, out_scale, out_zero, types[0].dtype)


@operator(
    "qnn.avg_pool2d",
    ops.nn.avg_pool2d.attrs_type,
    infer_type=_avg_pool2d_type,
    infer_layout=layout_bound,
    qnn_canonicalize=_canonicalize_avg_pool2d,
)
def avg_pool2d(
    data: Expr,
    input_scale: Expr,
    input_zero_point: Expr,
    output_scale: Expr,
    output_zero_point: Expr,
    pool_size: Annotated[Any, spatial(2)],
    strides: Annotated[Any, spatial(2)],
    padding: Annotated[Any, padding(2)],
    dilation: Annotated[Any, spatial(2)],
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    layout: str = "NHWC",
    out_layout: str = "",
) -> RelayExpr:
    """The mean of windows of a quantised tensor, truncated to an integer.

    Parameters
    ----------
    data : relay.Expr
        Integers, of the result's dtype.
    input_scale, input_zero_point, output_scale, output_zero_point : relay.Expr
        Scalars.
    pool_size, strides, padding, dilation, ceil_mode, count_include_pad, layout, out_layout
        As in `relay.nn.avg_pool2d`.
    """
