"""Prior boxes, and detections from what a network says of them."""

from __future__ import annotations

from typing import Any

from tvm import topi
from tvm.ir.expr import RelayExpr
from tvm.ir.type import TupleType, Type
from tvm.relay.expr import TupleWrapper

from ..computes import computed_by
from ..operator import Expr, Floats, operator
from ..registry import OpPattern
from ..schedules import for_all_targets
from ..types import Tensor2, Tensor3, Tensor4, apply, expect, expect_dim, shape_of_type, tensor


def _prior_type(attrs: Any, data: Tensor4) -> Type:
    """A tensor of shape (1, boxes, 4) and the dtype of `data`; each position has len(sizes) +
    len(ratios) - 1 boxes."""
    who = "vision.multibox_prior"
    expect(len(attrs.sizes) > 0, f"{who} requires at least one size")
    expect(len(attrs.ratios) > 0, f"{who} requires at least one ratio")
    expect(len(attrs.steps) == 2, f"{who} requires two steps, got {attrs.steps}")
    expect(len(attrs.offsets) == 2, f"{who} requires two offsets, got {attrs.offsets}")
    _, _, height, width = shape_of_type(data)
    boxes = len(attrs.sizes) + len(attrs.ratios) - 1
    return tensor((1, apply(lambda h, w: h * w * boxes, height, width), 4), data.dtype)


def _transform_type(attrs: Any, cls_prob: Tensor3, loc_pred: Tensor2, anchor: Tensor3) -> Type:
    who = "vision.multibox_transform_loc"
    batch, _, anchors = shape_of_type(cls_prob)
    expect_dim(shape_of_type(loc_pred)[0], batch, who, "the batch of loc_pred")
    wanted = apply(lambda n: 4 * n, anchors)
    expect_dim(shape_of_type(loc_pred)[1], wanted, who, "the second dimension of loc_pred")
    for value, extent in zip(shape_of_type(anchor), (1, anchors, 4), strict=True):
        expect_dim(value, extent, who, "a dimension of anchor")
    expect(len(attrs.variances) == 4, f"{who} requires four variances, got {attrs.variances}")
    return TupleType((tensor((batch, anchors, 6), cls_prob.dtype), tensor((batch,), "int32")))


@operator(
    "vision.multibox_prior",
    "MultiBoxPriorAttrs",
    support_level=5,
    infer_type=_prior_type,
    fuse=OpPattern.INJECTIVE,
    compute=computed_by(topi.vision.multibox_prior, "sizes", "ratios", "steps", "offsets", "clip"),
)
def multibox_prior(
    data: Expr,
    sizes: Floats = (1.0,),
    ratios: Floats = (1.0,),
    steps: Floats = (-1.0, -1.0),
    offsets: Floats = (0.5, 0.5),
    clip: bool = False,
) -> RelayExpr:
    """Boxes around every position of a map: each size with the first ratio, then the other ratios."""


@operator(
    "vision.multibox_transform_loc",
    "MultiBoxTransformLocAttrs",
    support_level=5,
    results=2,
    infer_type=_transform_type,
    compute=computed_by(
        topi.vision.multibox_transform_loc, "clip", "threshold", "variances", "keep_background"
    ),
    schedules=for_all_targets(topi.generic.schedule_multibox_transform_loc),
)
def multibox_transform_loc(
    cls_prob: Expr,
    loc_pred: Expr,
    anchor: Expr,
    clip: bool = True,
    threshold: float = 0.01,
    variances: Floats = (0.1, 0.1, 0.2, 0.2),
    keep_background: bool = False,
) -> TupleWrapper:
    """Boxes with class and score from what a network says of anchors.

    Returns
    -------
    tuple of relay.Expr
        (batch, anchors, 6): class, score, left, top, right and bottom, those that count first, then
        -1; and how many count.
    """
