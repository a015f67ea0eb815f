"""Pooling of regions, and the regions that a network proposes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from tvm import topi
from tvm.ir.expr import RelayExpr
from tvm.ir.type import Type
from tvm.support.docstrings import described_by
from tvm.topi.vision.rcnn.roi_align import MODES

from ..computes import computed_by
from ..layout_shapes import axes_extents, shape_in_layout
from ..operator import Expr, Floats, operator, spatial
from ..parameters import documented_by
from ..sampling import composed_roi_align
from ..schedules import for_all_targets
from ..types import (
    Tensor2,
    Tensor4,
    TypeRelation,
    apply,
    expect,
    expect_dim,
    expect_tensor,
    shape_of_type,
    tensor,
)

Size = Annotated[int | Sequence[int], spatial(2)]


def _regions_type(who: str) -> TypeRelation:
    def relation(attrs: Any, arg_types: Sequence[Type]) -> Type:
        """A tensor in the layout of `data` and of its dtype: `pooled_size` positions for each
        region."""
        data = expect_tensor(arg_types[0], who, rank=4)
        regions = expect_tensor(arg_types[1], who, "rois", 2)
        count, numbers = shape_of_type(regions)
        expect_dim(numbers, 5, who, "the numbers of a region")
        expect(
            attrs.layout in ("NCHW", "NHWC"),
            f"{who} requires a layout of NCHW or NHWC, got {attrs.layout!r}",
        )
        expect(
            getattr(attrs, "mode", "avg") in MODES,
            f"{who} requires a mode of {', '.join(MODES)}, got {getattr(attrs, 'mode', '')!r}",
        )
        extents = axes_extents(shape_of_type(data), attrs.layout, who)
        extents["N"] = count
        extents.update(zip("HW", attrs.pooled_size, strict=True))
        return tensor(shape_in_layout(extents, attrs.layout), data.dtype)

    return relation


def _proposal_type(attrs: Any, cls_prob: Tensor4, bbox_pred: Tensor4, im_info: Tensor2) -> Type:
    who = "vision.proposal"
    anchors = len(attrs.scales) * len(attrs.ratios)
    batch, channels, height, width = shape_of_type(cls_prob)
    expect_dim(channels, 2 * anchors, who, "the channels of cls_prob")
    for value, wanted in zip(
        shape_of_type(bbox_pred), (batch, 4 * anchors, height, width), strict=True
    ):
        expect_dim(value, wanted, who, "a dimension of bbox_pred")
    expect_dim(shape_of_type(im_info)[0], batch, who, "the batch of im_info")
    expect_dim(shape_of_type(im_info)[1], 3, who, "the second dimension of im_info")
    expect(attrs.rpn_post_nms_top_n > 0, f"{who} requires a positive rpn_post_nms_top_n")
    return tensor((apply(lambda b: b * attrs.rpn_post_nms_top_n, batch), 5), cls_prob.dtype)


_OPAQUE: dict[str, Any] = {
    "schedules": for_all_targets(topi.generic.schedule_roi_align)
}  # fmt: skip
_ALIGN = {"NCHW": topi.vision.roi_align_nchw, "NHWC": topi.vision.roi_align_nhwc}
_POOL = {"NCHW": topi.vision.roi_pool_nchw, "NHWC": topi.vision.roi_pool_nhwc}


@operator(
    "vision.roi_align",
    "ROIAlignAttrs",
    support_level=5,
    fields=("pooled_size", "spatial_scale", "sample_ratio", "mode", "aligned", "layout"),
    infer_type=_regions_type("vision.roi_align"),
    compute=lambda attrs, inputs, out_type: [
        _ALIGN[attrs.layout](
            inputs[0], inputs[1], attrs.pooled_size, attrs.spatial_scale, attrs.mode,
            attrs.sample_ratio, attrs.aligned,
        )
    ],
    composition=composed_roi_align,
    **_OPAQUE,
)  # fmt: skip
@documented_by(topi.vision.roi_align_nchw)
def roi_align(
    data: Expr,
    rois: Expr,
    pooled_size: Size,
    spatial_scale: float,
    sample_ratio: int = -1,
    layout: str = "NCHW",
    mode: str = "avg",
    aligned: bool = False,
) -> RelayExpr:
    """Pool regions of maps by interpolated samples.

    Parameters
    ----------
    data : relay.Expr
        The maps.
    layout : str
        "NCHW" or "NHWC".
    """


@operator(
    "vision.roi_pool",
    "ROIPoolAttrs",
    support_level=5,
    infer_type=_regions_type("vision.roi_pool"),
    compute=lambda attrs, inputs, out_type: [
        _POOL[attrs.layout](inputs[0], inputs[1], attrs.pooled_size, attrs.spatial_scale)
    ],
    **_OPAQUE,
)
@described_by(roi_align)
def roi_pool(
    data: Expr, rois: Expr, pooled_size: Size, spatial_scale: float, layout: str = "NCHW"
) -> RelayExpr:
    """The greatest element in each bin of each region; 0 in empty bins.

    Parameters
    ----------
    rois : relay.Expr
        (regions, 5): the batch's index, left, top, right and bottom.
    pooled_size : int or pair of int
        The height and width of the results.
    spatial_scale : float
        The factor from the regions' coordinates to the maps'.
    """


@operator(
    "vision.proposal",
    support_level=5,
    infer_type=_proposal_type,
    compute=computed_by(
        topi.vision.proposal, "scales", "ratios", "feature_stride", "threshold",
        "rpn_pre_nms_top_n", "rpn_post_nms_top_n", "rpn_min_size", "iou_loss",
    ),
    **_OPAQUE,
)  # fmt: skip
def proposal(
    cls_prob: Expr,
    bbox_pred: Expr,
    im_info: Expr,
    scales: Floats,
    ratios: Floats,
    feature_stride: int,
    threshold: float,
    rpn_pre_nms_top_n: int,
    rpn_post_nms_top_n: int,
    rpn_min_size: int,
    iou_loss: bool,
) -> RelayExpr:
    """The regions of the highest scores that do not overlap much.

    Returns
    -------
    relay.Expr
        (batch * rpn_post_nms_top_n, 5): the batch's index and the corners.
    """
