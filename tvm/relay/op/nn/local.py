"""Local response normalisation and dilation."""

from __future__ import annotations

from collections.abc import Sequence

from tvm import topi
from tvm.ir.attrs import Attrs
from tvm.ir.expr import RelayExpr
from tvm.ir.type import Type

from ..attributes import as_float, as_int, as_ints
from ..registry import OpPattern, Precision, define_op, ops
from ..types import (
    apply,
    expect,
    expect_tensor,
    largest,
    positive_axis,
    shape_of_type,
    tensor,
)


class LRNAttrs(Attrs, key="relay.attrs.LRNAttrs"):
    """How many neighbours along which axis, and the coefficients."""

    size: int = 5
    axis: int = 1
    bias: float = 2.0
    alpha: float = 1e-5
    beta: float = 0.75


class DilateAttrs(Attrs, key="relay.attrs.DilateAttrs"):
    """The step along each axis, and what lies between."""

    strides: tuple[int, ...]
    dilation_value: float = 0.0


def _lrn_type(attrs: LRNAttrs, arg_types: Sequence[Type]) -> Type:
    data = expect_tensor(arg_types[0], "nn.lrn")
    positive_axis(attrs.axis, len(data.shape), "nn.lrn")
    expect(attrs.size > 0, f"nn.lrn requires a positive size, got {attrs.size}")
    return data


def _dilate_type(attrs: DilateAttrs, arg_types: Sequence[Type]) -> Type:
    data = expect_tensor(arg_types[0], "nn.dilate")
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


define_op(
    "nn.lrn",
    LRNAttrs,
    inputs=("data",),
    infer_type=_lrn_type,
    fuse=OpPattern.OPAQUE,
    compute=lambda attrs, inputs, out_type: [
        topi.nn.lrn(inputs[0], attrs.size, attrs.axis, attrs.alpha, attrs.beta, attrs.bias)
    ],
    schedules={
        "generic": lambda attrs, outs, target: topi.generic.default_schedule(outs, True),
        "cpu": lambda attrs, outs, target: topi.x86.schedule_pool(outs),
    },
    precision=Precision.KEEP_FLOAT32,
)
define_op(
    "nn.dilate",
    DilateAttrs,
    inputs=("data",),
    infer_type=_dilate_type,
    fuse=OpPattern.INJECTIVE,
    compute=lambda attrs, inputs, out_type: [
        topi.nn.dilate(inputs[0], attrs.strides, attrs.dilation_value)
    ],
)


def lrn(
    data: RelayExpr,
    size: int = 5,
    axis: int = 1,
    bias: float = 2,
    alpha: float = 0.00001,
    beta: float = 0.75,
) -> RelayExpr:
    """data / (bias + alpha / size * sum of squares of `size` neighbours) ** beta

    Parameters
    ----------
    data : relay.Expr
        The tensor.
    size : int
        How many neighbours count, an odd number.
    axis : int
        Along which axis.
    bias, alpha, beta : float
        Coefficients.
    """
    return ops.nn.lrn(
        data, size=as_int(size), axis=as_int(axis), bias=as_float(bias), alpha=as_float(alpha),
        beta=as_float(beta),
    )  # fmt: skip


def dilate(data: RelayExpr, strides: Sequence[int], dilation_value: float = 0.0) -> RelayExpr:
    """Put `stride - 1` equal elements between neighbours along each axis.

    Parameters
    ----------
    data : relay.Expr
        The tensor.
    strides : sequence of int
        One step for each axis.
    dilation_value : float
        What lies between.
    """
    return ops.nn.dilate(data, strides=as_ints(strides), dilation_value=as_float(dilation_value))
