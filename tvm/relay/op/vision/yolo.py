"""Darknet's reorganisation of feature maps."""

from __future__ import annotations

from typing import Any

from tvm import topi
from tvm.ir.expr import RelayExpr
from tvm.ir.type import Type

from ..computes import computed_by
from ..operator import Expr, operator
from ..registry import OpPattern
from ..types import Dim, Tensor4, apply, expect, shape_of_type, tensor


def _reorg_type(attrs: Any, data: Tensor4) -> Type:
    """A tensor of shape (batch, channels * stride**2, height // stride, width // stride) and the
    dtype of `data`."""
    who = "vision.yolo_reorg"
    batch, channels, height, width = shape_of_type(data)
    expect(attrs.stride > 0, f"{who} requires a positive stride, got {attrs.stride}")
    square = attrs.stride**2
    for extent, divisor, what in (
        (channels, square, "channels"), (height, attrs.stride, "rows"), (width, attrs.stride, "columns"),
    ):  # fmt: skip
        expect(
            not isinstance(extent, int) or extent % divisor == 0,
            f"{who} requires {what} divisible by {divisor}, got {extent}",
        )

    def part(extent: Dim) -> Dim:
        return apply(lambda e: e // attrs.stride, extent)

    shape = (batch, apply(lambda c: c * square, channels), part(height), part(width))
    return tensor(shape, data.dtype)


@operator(
    "vision.yolo_reorg",
    support_level=5,
    defaults={"stride": 1},
    infer_type=_reorg_type,
    fuse=OpPattern.INJECTIVE,
    compute=computed_by(topi.vision.reorg, "stride"),
)
def yolo_reorg(data: Expr, stride: int) -> RelayExpr:
    """Move each `stride` x `stride` patch of positions to channels, in Darknet's order."""
